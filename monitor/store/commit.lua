-- Compare-and-set of a partition's state: either every command runs and the guard moves to its new offset, or nothing is written.
--
-- KEYS[1]   the guard: a hash with the fields off, writer and seq
-- KEYS[...] every key that a command touches
-- ARGV      expected off, new off, writer, seq, '1' if the guard must already have an offset (else a missing one counts as expected),
--           then commands: name, key index, argument count, arguments...
--
-- Commands:
--   HSET k field value ...      SET k value
--   HSETNX k field value        HDEL k field
--   DEL k                       of any type
--   CELLS k runs bytes          SETRANGE by ranges: (key, byte offset, byte length) as uint32 each; then the bytes of all ranges
--   ANNOUNCE k entries bytes    on the stream k: entries are (id length, value length, number of changes) as uint32 each; then the bytes of
--                               all of them; each is added under its id, as the field latches, with the fields count, and before: how many
--                               changes the entries before it have more than one each, since the stream was empty
--
-- Returns 1, or {off, writer, seq} as stored ('' where missing) when off is not the expected one.
--
-- Redis does not undo a script that fails halfway, so everything that can fail is checked before the first write. Redis's own refusals
-- (out of memory, a replica, a failed disk) come at the first write only.

local MAX_STRING = 536870912
local SLICE = 1000
local FIRST = 6

local TYPES = {HSET = 'hash', HSETNX = 'hash', HDEL = 'hash', DEL = 'any', SET = 'string', CELLS = 'string', ANNOUNCE = 'stream'}
local WRITES = {
  HSET = {{'HSET', 'f', 'v'}}, HSETNX = {{'HSETNX', 'f', 'v'}}, HDEL = {{'HDEL', 'f'}}, DEL = {{'DEL'}}, SET = {{'SET', 'v'}},
  CELLS = {{'SETRANGE', '0', 'v'}}, ANNOUNCE = {{'XADD', '*', 'f', 'v'}},
}

local type_of = {}
local function check_type(key, wanted)
  if not KEYS[key] then return 'a command names key ' .. tostring(key) .. ', which was not declared' end
  if wanted == 'any' then return end
  if not type_of[key] then
    local found = redis.call('TYPE', KEYS[key]).ok
    type_of[key] = found == 'none' and wanted or found
    if found == 'none' then type_of[-key] = true end
  end
  if type_of[key] ~= wanted then
    return KEYS[key] .. ' holds a ' .. type_of[key] .. ' where a ' .. wanted .. ' belongs: something else has written it'
  end
end

-- Stream ids are compared as text: they have more digits than a Lua number.
local function above(id, other)
  local a, b = {id:match('^(%d+)-(%d+)$')}, {other:match('^(%d+)-(%d+)$')}
  for part = 1, 2 do
    if not a[part] then return false end
    if #a[part] ~= #b[part] then return #a[part] > #b[part] end
    if a[part] ~= b[part] then return a[part] > b[part] end
  end
  return false
end

local function field(list, name)
  for i = 1, #list, 2 do
    if list[i] == name then return list[i + 1] end
  end
end

local function last_id(key)
  if type_of[-key] then return '0-0' end
  return field(redis.call('XINFO', 'STREAM', KEYS[key]), 'last-generated-id')
end

local function changes_before(key)
  if redis.call('XLEN', KEYS[key]) == 0 then return 0 end
  local last = field(redis.call('XINFO', 'STREAM', KEYS[key]), 'last-entry')[2]
  return (field(last, 'before') or 0) + (field(last, 'count') or 1) - 1
end

local check = {}

function check.HSET(key, first, count)
  if count < 2 or count % 2 ~= 0 then return 'HSET takes fields and values in pairs' end
end

function check.HSETNX(key, first, count)
  if count ~= 2 then return 'HSETNX takes a field and a value' end
end

function check.HDEL(key, first, count)
  if count ~= 1 then return 'HDEL takes a field' end
end

function check.DEL(key, first, count)
  if count ~= 0 then return 'DEL takes no argument' end
end

function check.SET(key, first, count)
  if count ~= 1 then return 'SET takes a value' end
  if #ARGV[first] > MAX_STRING then return KEYS[key] .. ' would exceed the 512 MB of a string' end
end

function check.CELLS(key, first, count)
  if count ~= 2 or #ARGV[first] % 12 ~= 0 then return 'CELLS takes runs of 12 bytes, and bytes' end
  local runs, total, checked = ARGV[first], 0
  for at = 1, #runs, 12 do
    local k, offset, length = struct.unpack('<I4I4I4', runs, at)
    if k ~= checked then
      local fault = check_type(k, 'string')
      if fault then return fault end
      checked = k
    end
    if offset + length > MAX_STRING then return KEYS[k] .. ' would exceed the 512 MB of a string' end
    total = total + length
  end
  if total ~= #ARGV[first + 1] then return 'the runs of CELLS do not cover its bytes' end
end

function check.ANNOUNCE(key, first, count)
  if count ~= 2 or #ARGV[first] % 12 ~= 0 then return 'ANNOUNCE takes entries of 12 bytes, and bytes' end
  local last, at, body = last_id(key), 1, ARGV[first + 1]
  for entry = 1, #ARGV[first], 12 do
    local id, value = struct.unpack('<I4I4', ARGV[first], entry)
    local this = body:sub(at, at + id - 1)
    if not above(this, last) then return 'the change ' .. this .. ' does not follow ' .. last .. ' in ' .. KEYS[key] end
    last, at = this, at + id + value
  end
  if at ~= #body + 1 then return 'the entries of ANNOUNCE do not cover its bytes' end
end

local run = {}

function run.HSET(key, first, count)
  for i = first, first + count - 1, SLICE do
    redis.call('HSET', KEYS[key], unpack(ARGV, i, math.min(i + SLICE, first + count) - 1))
  end
end

function run.HSETNX(key, first) redis.call('HSETNX', KEYS[key], ARGV[first], ARGV[first + 1]) end
function run.HDEL(key, first) redis.call('HDEL', KEYS[key], ARGV[first]) end
function run.DEL(key) redis.call('DEL', KEYS[key]) end
function run.SET(key, first) redis.call('SET', KEYS[key], ARGV[first]) end

function run.CELLS(key, first)
  local runs, body, at, call = ARGV[first], ARGV[first + 1], 1, redis.call
  for i = 1, #runs, 12 do
    local k, offset, length = struct.unpack('<I4I4I4', runs, i)
    call('SETRANGE', KEYS[k], offset, body:sub(at, at + length - 1))
    at = at + length
  end
end

function run.ANNOUNCE(key, first)
  local entries, body, at, before = ARGV[first], ARGV[first + 1], 1, changes_before(key)
  for i = 1, #entries, 12 do
    local id, value, changes = struct.unpack('<I4I4I4', entries, i)
    local from = at + id
    local latches = body:sub(from, from + value - 1)
    redis.call('XADD', KEYS[key], body:sub(at, from - 1), 'latches', latches, 'count', changes, 'before', before)
    at, before = from + value, before + changes - 1
  end
end

local stored = redis.call('HMGET', KEYS[1], 'off', 'writer', 'seq')
if stored[1] ~= ARGV[1] and (stored[1] or ARGV[5] == '1') then
  return {stored[1] or '', stored[2] or '', stored[3] or ''}
end

local plan, seen, at = {}, {}, FIRST
if ARGV[2] ~= ARGV[1] then seen.HSET = true end
while at <= #ARGV do
  local name, key, count = ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local first = at + 3
  if not TYPES[name] then return redis.error_reply('RANKWATCH ' .. tostring(name) .. ' is not a command of this script') end
  if not key or not count or first + count - 1 > #ARGV then return redis.error_reply('RANKWATCH ' .. name .. ' is cut short') end
  local fault = check_type(key, TYPES[name]) or check[name](key, first, count)
  if fault then return redis.error_reply('RANKWATCH ' .. fault) end
  plan[#plan + 1] = {run[name], key, first, count}
  seen[name] = true
  at = first + count
end
if redis.acl_check_cmd then
  for name in pairs(seen) do
    for _, write in ipairs(WRITES[name]) do
      if not redis.acl_check_cmd(write[1], KEYS[1], unpack(write, 2)) then
        return redis.error_reply('RANKWATCH the user may not run ' .. write[1] .. ': grant it with ACL SETUSER <user> +' .. write[1]:lower())
      end
    end
  end
end

for _, step in ipairs(plan) do step[1](step[2], step[3], step[4]) end
if ARGV[2] ~= ARGV[1] then redis.call('HSET', KEYS[1], 'off', ARGV[2], 'writer', ARGV[3], 'seq', ARGV[4]) end
return 1
