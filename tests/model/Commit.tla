------------------------------- MODULE Commit -------------------------------
(* The commit protocol of one partition (monitor/store: commit.lua, redis_store.py, load.py; monitor/publish/relay.py): workers that each
   take the partition for theirs, every order of their steps, and some faults.

   Records 1..N are in the log. Record 2 belongs to a benchmark of its own, so that a transaction may begin with either. Some records close a
   latch. A state is right when it is the fold of the log up to its offset.

   Pauses, rebalances and late packets are part of the steps: a worker may stay where it is for as long as others take, load again at any
   time, and a request that has left its worker may run at any later time. *)
EXTENDS Naturals, Sequences, FiniteSets, TLC

CONSTANTS
    Workers, None,
    N,          \* records in the log
    Faults,     \* how many crashes of workers, timeouts and crashes of the server
    MaxChunk,   \* records of one commit, at most
    Latching,   \* records that close a latch: each is a verdict change, with the record as its id
    TornServer, \* a torn file is cut after its last whole command, also inside a transaction (Redis 7.0)
    Places,     \* strings are written at an explicit place (SETRANGE), not appended to (APPEND)
    Digests,    \* a load compares digests
    Ahead,      \* a load refuses a benchmark whose offset is beyond that of the partition
    Guard,      \* the script compares the stored offset with the expected one
    MustExist,  \* ... and takes a missing offset for the expected one only if none was expected
    Recognise,  \* a refused write is one's own that had landed only if the stored writer and sequence are one's own
    Announce,   \* a change whose latch is stored already is put on the outbox all the same
    MarkLast    \* the relay marks a change after it is published

VARIABLES
    mem,        \* what the server answers from
    base, tail, \* its append-only file: the state that the older commands come to, and the commands since
    worker,     \* what each worker believes
    net,        \* requests that have left their worker
    relaying,   \* changes between the two steps of a relay
    feed,       \* published changes
    faults,
    broken      \* a worker took a write for stored that is not, or the script failed on a state that a load would accept

vars == <<mem, base, tail, worker, net, relaying, feed, faults, broken>>
store == <<mem, base, tail>>
relay == <<relaying, feed>>

Benchmarks == {0, 1}
Of(r) == IF r = 2 THEN 0 ELSE 1

RECURSIVE RowsTo(_, _)
RowsTo(b, off) == IF off = 0 THEN <<>> ELSE RowsTo(b, off - 1) \o (IF Of(off) = b THEN <<off>> ELSE <<>>)
Fold == [b \in Benchmarks |-> [off \in 0..N |-> [rows |-> RowsTo(b, off), latches |-> {r \in Latching : r <= off /\ Of(r) = b}]]]

----------------------------------------------------------------------------
\* The server. Offset 0 is none: a partition that was never written, or whose state was lost.

Nothing == [off |-> 0, rows |-> <<>>, latches |-> {}, seal |-> <<0, Fold[0][0]>>]
Empty == [off |-> 0, seal |-> 0, last |-> None, of |-> [b \in Benchmarks |-> Nothing], outbox |-> {}, top |-> 0, mark |-> 0]

Longer(a, b) == IF a > b THEN a ELSE b
Written(rows, place, new) ==
    IF ~Places THEN rows \o new
    ELSE [k \in 1..Longer(Len(rows), place + Len(new)) |-> IF k > place /\ k <= place + Len(new) THEN new[k - place] ELSE rows[k]]

\* One command. A stream ignores an id that is not above its last one.
Do(m, c) ==
    CASE c.op = "write"   -> [m EXCEPT !.of[c.of] = [@ EXCEPT !.rows = Written(@, c.place, c.rows), !.off = c.off]]
      [] c.op = "latch"   -> [m EXCEPT !.of[Of(c.id)].latches = @ \union {c.id}]
      [] c.op = "add"     -> IF c.id > m.top THEN [m EXCEPT !.outbox = @ \union {c.id}, !.top = c.id] ELSE m
      [] c.op = "seal"    -> [m EXCEPT !.of[c.of].seal = c.seal]
      [] c.op = "meta"    -> [m EXCEPT !.seal = c.off]
      [] c.op = "off"     -> [m EXCEPT !.off = c.off, !.last = c.last]
      [] c.op = "relayed" -> [m EXCEPT !.mark = c.id, !.outbox = {id \in @ : id > c.id}]

RECURSIVE DoAll(_, _)
DoAll(m, cs) == IF cs = <<>> THEN m ELSE DoAll(Do(m, Head(cs)), Tail(cs))

\* A start runs the file: what is between "multi" and "exec" runs at "exec"; a second "multi" changes nothing; what is open at the end does not
\* run, but stays in the file, and runs at a later start when an "exec" has followed.
RECURSIVE Start(_, _, _, _)
Start(m, cs, open, queue) ==
    IF cs = <<>> THEN m
    ELSE CASE Head(cs).op = "multi" -> Start(m, Tail(cs), TRUE, queue)
           [] Head(cs).op = "exec"  -> Start(DoAll(m, queue), Tail(cs), FALSE, <<>>)
           [] open  -> Start(m, Tail(cs), TRUE, Append(queue, Head(cs)))
           [] OTHER -> Start(Do(m, Head(cs)), Tail(cs), FALSE, <<>>)

RECURSIVE Open(_, _, _)
Open(cs, k, at) == IF k > Len(cs) THEN at ELSE Open(cs, k + 1, CASE cs[k].op = "multi" -> k [] cs[k].op = "exec" -> 0 [] OTHER -> at)

\* The file matters to faults that are still to come: after the last one it is not kept.
File(cs, state) == IF faults' < Faults THEN tail' = cs /\ base' = state ELSE tail' = <<>> /\ base' = Empty
Same == File(tail, base)
Gone == mem' = Empty /\ File(<<>>, Empty)

----------------------------------------------------------------------------
\* The script, for the chunk from+1..to of a writer; Redis puts its effects into the file.

RECURSIVE Join(_)
Join(parts) == IF parts = <<>> THEN <<>> ELSE Head(parts) \o Join(Tail(parts))

Changes(q) == {r \in Latching : r > q.from /\ r <= q.to}

Commands(m, q, writer) ==
    LET at(b, off) == Fold[b][off].rows
        Write(b) == IF at(b, q.from) = at(b, q.to) THEN <<>>
                    ELSE <<[op |-> "write", of |-> b, off |-> q.to, place |-> Len(at(b, q.from)),
                            rows |-> SubSeq(at(b, q.to), Len(at(b, q.from)) + 1, Len(at(b, q.to)))]>>
        stored(r) == r \in m.of[Of(r)].latches
        Latch(r) == IF r \notin Changes(q) THEN <<>>
                    ELSE (IF stored(r) THEN <<>> ELSE <<[op |-> "latch", id |-> r]>>)
                         \o (IF stored(r) /\ ~Announce THEN <<>> ELSE <<[op |-> "add", id |-> r]>>)
        Seal(b)  == IF at(b, q.from) = at(b, q.to) THEN <<>> ELSE <<[op |-> "seal", of |-> b, seal |-> <<q.to, Fold[b][q.to]>>]>>
    IN  Write(0) \o Write(1) \o Join([k \in 1..(q.to - q.from) |-> Latch(q.from + k)]) \o Seal(0) \o Seal(1)
        \o <<[op |-> "meta", off |-> q.to], [op |-> "off", off |-> q.to, last |-> writer]>>

Accepted(q) == ~Guard \/ mem.off = q.from \/ (~MustExist /\ mem.off = 0)

\* Redis does not undo a script that fails, so it checks first that the ids of changes rise.
Fails(q) == \E r \in Changes(q) : r <= mem.top

\* All of it, or nothing. The file keeps what precedes the last transaction as one state, so that a torn end reaches into one transaction.
Write(q, writer) ==
    IF Accepted(q) /\ ~Fails(q)
    THEN LET cs == Commands(mem, q, writer) all == <<[op |-> "multi"]>> \o cs \o <<[op |-> "exec"]>> IN
         /\ mem' = DoAll(mem, cs)
         /\ IF Open(tail, 1, 0) = 0 THEN File(all, Start(base, tail, FALSE, <<>>)) ELSE File(tail \o all, base)
    ELSE UNCHANGED store

----------------------------------------------------------------------------
\* Workers: "down" without a state, or with the fold of 1..at. A worker sends a chunk after that; only a timeout, after which the same request
\* is sent again, and a crash have to name it, because it may still run later.
\*
\* A sequence is used once, so what counts is whether the stored write is the one that a worker waits for: `last` is that worker, and is
\* forgotten when it stops to wait.

Down == [up |-> FALSE, at |-> 0, sent |-> {}, copy |-> FALSE]
Up(off) == [Down EXCEPT !.up = TRUE, !.at = off]
Chunks(w) == IF worker[w].sent # {} THEN worker[w].sent
             ELSE {[from |-> worker[w].at, to |-> to] : to \in {k \in 1..N : worker[w].up /\ k > worker[w].at /\ k <= worker[w].at + MaxChunk}}
Left(w) == IF worker[w].copy THEN worker[w].sent ELSE {}

Old(m, w) == IF m.last = w THEN [m EXCEPT !.last = None] ELSE m
OldIn(cs, w) == [k \in 1..Len(cs) |-> IF cs[k].op = "off" /\ cs[k].last = w THEN [cs[k] EXCEPT !.last = None] ELSE cs[k]]
Forget(w) == mem' = Old(mem, w) /\ File(OldIn(tail, w), Old(base, w))

Damaged ==
    \/ Digests /\ mem.seal # mem.off
    \/ Digests /\ \E b \in Benchmarks : LET x == mem.of[b] IN x.seal # <<x.off, [rows |-> x.rows, latches |-> x.latches]>>
    \/ Ahead /\ \E b \in Benchmarks : mem.of[b].off > mem.off

Load(w) ==
    /\ ~worker[w].up /\ ~Damaged
    /\ worker' = [worker EXCEPT ![w] = Up(mem.off)]
    /\ UNCHANGED <<store, net, relay, broken>>

\* A refused load: someone deletes the state, as the message asks.
Delete(w) ==
    /\ ~worker[w].up /\ Damaged
    /\ Gone
    /\ UNCHANGED <<worker, net, relay, broken>>

\* A request runs, and its reply arrives.
Run(w) ==
    /\ \E q \in Chunks(w) :
       LET runs == Accepted(q) /\ ~Fails(q)
           mine == IF Accepted(q) THEN runs ELSE ~Recognise \/ (mem.last = w /\ mem.off = q.to)
       IN  /\ IF runs
              THEN Write(q, None)
              ELSE Forget(w)
           /\ worker' = [worker EXCEPT ![w] = IF mine THEN Up(q.to) ELSE Down]
           /\ broken' = (broken \/ (Accepted(q) /\ Fails(q) /\ ~Damaged) \/ (mine /\ mem'.off # q.to))
    /\ net' = net \union Left(w)
    /\ UNCHANGED relay

\* Requests that nobody waits for, or that were sent twice.
RunCopy(w) ==
    /\ worker[w].copy
    /\ \E q \in worker[w].sent : Write(q, w)
    /\ worker' = [worker EXCEPT ![w].copy = FALSE]
    /\ UNCHANGED <<net, relay, broken>>

RunLate == \E q \in net : Write(q, None) /\ net' = net \ {q} /\ UNCHANGED <<worker, relay, broken>>

Rebalance(w) ==
    /\ worker[w].at = N
    /\ worker' = [worker EXCEPT ![w] = Down]
    /\ UNCHANGED <<store, net, relay, broken>>

----------------------------------------------------------------------------
\* The relay: publish what is after the mark; then mark and trim.

Relayed(id) == LET c == [op |-> "relayed", id |-> id] IN mem' = Do(mem, c) /\ File(Append(tail, c), base)
Outbox == {id \in mem.outbox : id > mem.mark}
Publish ==
    /\ Outbox # {}
    /\ LET id == CHOOSE id \in Outbox : \A other \in Outbox : id <= other IN
       /\ relaying' = relaying \union {id}
       /\ IF MarkLast THEN feed' = feed \union {id} /\ UNCHANGED store
                      ELSE Relayed(id) /\ UNCHANGED feed
    /\ UNCHANGED <<worker, net, broken>>

Mark ==
    /\ \E id \in relaying :
       /\ relaying' = relaying \ {id}
       /\ IF MarkLast THEN Relayed(id) /\ UNCHANGED feed
                      ELSE feed' = feed \union {id} /\ UNCHANGED store
    /\ UNCHANGED <<worker, net, broken>>

----------------------------------------------------------------------------
\* Faults.

Crash(w) ==
    /\ worker[w].up
    /\ \E late \in {{}} \union {{q} : q \in Chunks(w)} : net' = net \union late
    /\ worker' = [worker EXCEPT ![w] = Down]
    /\ Forget(w)
    /\ relaying' = {}
    /\ UNCHANGED <<feed, broken>>

Timeout(w) ==
    /\ ~worker[w].copy
    /\ \E q \in Chunks(w) : worker' = [worker EXCEPT ![w] = [@ EXCEPT !.sent = {q}, !.copy = TRUE]]
    /\ mem' = mem /\ Same
    /\ UNCHANGED <<net, relay, broken>>

\* The server is killed. What is kept of the file: a part of its end, or nothing.
Restart ==
    /\ \/ \E kept \in 0..Len(tail) :
            LET cs == SubSeq(tail, 1, kept)
                open == Open(cs, 1, 0)
                stay == IF TornServer \/ open = 0 THEN cs ELSE SubSeq(cs, 1, open - 1)
            IN  File(stay, base) /\ mem' = Start(base, stay, FALSE, <<>>)
       \/ Gone
    /\ UNCHANGED <<worker, net, relay, broken>>

Fault == faults < Faults /\ faults' = faults + 1 /\ (Restart \/ \E w \in Workers : Crash(w) \/ Timeout(w))

----------------------------------------------------------------------------
Init ==
    /\ mem = Empty /\ base = Empty /\ tail = <<>>
    /\ worker = [w \in Workers |-> Down]
    /\ net = {} /\ relaying = {} /\ feed = {} /\ faults = 0 /\ broken = FALSE

Step == Publish \/ Mark \/ RunLate \/ \E w \in Workers : Load(w) \/ Delete(w) \/ Run(w) \/ RunCopy(w) \/ Rebalance(w)

Next == Fault \/ (faults' = faults /\ Step)

Spec == Init /\ [][Next]_vars

\* No step waits for ever once it is possible; a worker that has read the whole log loads again at some time.
Fair == Spec /\ WF_vars(faults' = faults /\ Publish) /\ WF_vars(faults' = faults /\ Mark)
             /\ \A w \in Workers : WF_vars(faults' = faults /\ (Load(w) \/ Delete(w) \/ Run(w) \/ Rebalance(w)))

Symmetry == Permutations(Workers)

----------------------------------------------------------------------------
\* The state is the fold of the log up to its offset, or a load refuses it.
Sound == Damaged \/ \A b \in Benchmarks : [rows |-> mem.of[b].rows, latches |-> mem.of[b].latches] = Fold[b][mem.off]

\* No record is folded twice.
Once == Damaged \/ \A b \in Benchmarks : LET rows == mem.of[b].rows IN \A j, k \in 1..Len(rows) : rows[j] = rows[k] => j = k

\* Every latched change is published, or waits for it.
Kept == Damaged \/ \A b \in Benchmarks : \A id \in mem.of[b].latches : id \in feed \union Outbox \union relaying

\* No change is made up.
Real == feed \subseteq Latching

\* What a worker takes for stored is stored, and the script fails only on a state that a load refuses.
Honest == ~broken

\* In the end every record is folded and every change published.
Finished == <>[](mem.off = N /\ ~Damaged /\ Outbox = {} /\ feed = Latching)
=============================================================================
