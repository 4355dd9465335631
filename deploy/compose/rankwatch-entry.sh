#!/bin/sh
# Pass the login of the store from its secret file to the environment: on the command line other users could read it.
set -eu
RANKWATCH_REDIS_URL="redis://$(cat /run/secrets/redis-login)@valkey:6379"
export RANKWATCH_REDIS_URL
exec rankwatch "$@"
