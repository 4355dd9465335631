#!/bin/sh
# Pass the token from its secret file to the environment.
set -eu
RANKWATCH_TOKEN="$(cat /run/secrets/rankwatch-token)"
export RANKWATCH_TOKEN
exec rankwatch "$@"
