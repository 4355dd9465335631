#!/bin/sh
# One run of a sentinel: run a harness, keep its results under the date, and ask whether the model has got worse.
# Usage: run.sh FOLDER NAME COMMAND...    COMMAND writes results to standard output, as JSON lines.
# Exit codes of `rankwatch drift`: 0 quiet or better, 3 too little history, 4 worse, 5 the judge alone moved.
set -eu
folder=$1
name=$2
shift 2
mkdir -p "$folder"
file="$folder/${name}_${RUN:-$(date -u +%Y-%m-%d)}.jsonl"
if [ -e "$file" ]; then
  echo "$file is there already: a run enters once, and is never repeated because of its scores" >&2
  exit 2
fi
part=$(mktemp)
trap 'rm -f "$part"' EXIT
"$@" >"$part"
mv "$part" "$file"
rankwatch drift "$folder"
