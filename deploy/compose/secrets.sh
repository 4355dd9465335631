#!/bin/sh
# Make the secrets of docker-compose.yml that are not there yet. The containers run as other users: they read them through their group.
set -eu
folder="$(dirname "$0")/secrets"
mkdir -p "$folder"
for name in rankwatch-token grafana-password; do
  [ -s "$folder/$name" ] || head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n' > "$folder/$name"
  chmod 0444 "$folder/$name"
done
