#!/bin/sh
# Make the missing secrets in a folder: the token of rankwatch and the password of Grafana's user `admin`.
# Every service runs as a user of its own, so the files are readable by all of them; only services that mount the folder see it.
set -eu
folder=$1
mkdir -p "$folder"
chmod 0755 "$folder"
for name in rankwatch-token grafana-password; do
  [ -s "$folder/$name" ] && continue
  head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n' > "$folder/.$name"
  chmod 0444 "$folder/.$name"
  mv "$folder/.$name" "$folder/$name"
done
