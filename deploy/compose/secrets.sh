#!/bin/sh
# Make the missing secrets in a folder, those of each service in a folder of its own: a service mounts only its own.
#   access      the tokens of rankwatch, hashed          writer, prometheus   a token that may write, and one that may read
#   valkey      the users of the store, hashed           worker, reader       name and password of a user of the store
#   grafana     the password of Grafana's user `admin`
# Other services run as users of their own, and must read their files: SECRET_MODE is the mode of these.
set -eu
umask 077
folder=$1
mode=${SECRET_MODE:-0444}
[ -s "$folder/complete" ] && exit 0
rm -rf "$folder"/access "$folder"/writer "$folder"/prometheus "$folder"/valkey "$folder"/worker "$folder"/reader "$folder"/grafana
for name in access writer prometheus valkey worker reader grafana; do
  mkdir -m 0755 "$folder/$name"
done
random() { head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n'; }
token() { rankwatch token create "$@" --file "$folder/access/access.json" | tr -d '\n'; }
user() {
  password=$(random)
  printf '%s:%s' "$1" "$password" > "$folder/$1/redis-login"
  printf 'user %s on #%s %s\n' "$1" "$(printf %s "$password" | sha256sum | cut -d ' ' -f 1)" "$2" >> "$folder/valkey/users.acl"
}
token live --scope 'write:*' --scope 'declare:*' > "$folder/writer/rankwatch-token"
token prometheus --scope read > "$folder/prometheus/rankwatch-token"
echo 'user default on nopass resetkeys resetchannels -@all +ping' > "$folder/valkey/users.acl"
user worker '~* resetchannels +@all -@admin -flushall -flushdb +config|get'
user reader '~* resetchannels -@all +@read +@connection +@transaction +info'
random > "$folder/grafana/grafana-password"
chmod "$mode" "$folder"/writer/* "$folder"/prometheus/* "$folder"/valkey/* "$folder"/grafana/*
echo yes > "$folder/complete"
