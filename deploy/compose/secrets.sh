#!/bin/sh
# Create the missing secrets of docker-compose.yml. Containers run as other users, so the files are world-readable.
set -eu
folder="$(dirname "$0")/secrets"
mkdir -p "$folder"
for name in rankwatch-token grafana-password; do
  [ -s "$folder/$name" ] || head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n' > "$folder/$name"
  chmod 0444 "$folder/$name"
done
