#!/bin/sh
# Settings are read from the environment; what is secret comes from a file.
set -eu
RANKWATCH_TOKEN="$(cat /run/secrets/rankwatch-token)"
export RANKWATCH_TOKEN
exec rankwatch "$@"
