"""Deterministic simulation: real workers on virtual time, over a log, a store and a network that fail as a seed decides.

One process, one thread. Everything that a worker does (engine, partition worker, store client, commit script, relay) is the real code; the
modules here replace what is outside of it:

- `clock`: an event loop on virtual time, and processes on it that can be frozen and killed
- `network`: connections with delays, that are cut at any byte
- `store`: a Redis 7.0 with its append-only file, byte by byte
- `log`: a topic with partitions, retention and a consumer group
- `worker`: the real `ClusterWorker`, with the transport replaced
- `traffic`: what producers write
- `faults`: the actions that are injected
- `judge`: compares state, latches, feed and dead letters with an oracle that shares no code with the engine
- `world`: one run of a seed
- `shrink`: the fewest actions that still fail
"""
