#!/bin/sh
# Add the current digest to every pinned image: image:tag -> image:tag@sha256:... Needs docker buildx and a network.
set -eu
cd "$(dirname "$0")/.."
command -v docker >/dev/null || { echo "docker is missing: install it, or pin the digests by hand" >&2; exit 1; }
for file in docker-compose.yml deploy/Dockerfile deploy/kubernetes/*/*.yaml deploy/kubernetes/*/*/*.yaml; do
    grep -oE '(image: *|FROM +)[a-z0-9./_-]+:[A-Za-z0-9._-]+(@sha256:[0-9a-f]+)?' "$file" | sed -E 's/^(image: *|FROM +)//' | sort -u |
    while read -r pinned; do
        image=${pinned%@*}
        case $image in rankwatch:*) continue ;; esac
        digest=$(docker buildx imagetools inspect "$image" --format '{{.Manifest.Digest}}')
        sed -i "s|$pinned|$image@$digest|g" "$file"
        echo "$file: $image@$digest"
    done
done
