#!/usr/bin/env bash
# Builds the programs of an earlier commit into bin/previous, with their CRDs beside them, for the
# test of upgrades: `hack/previous.sh [COMMIT]`. It needs the history of this repository.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Before Frameworks had a history: a status of today has fields that this one does not know.
commit=${1:-f7147d015b0cf1c1f217a6a36b6ccac425b0424d}

if ! full=$(git rev-parse --verify --quiet "$commit^{commit}"); then
  echo "previous: commit $commit is not in this clone: get the whole history by git fetch --unshallow" >&2
  exit 1
fi
out=$PWD/bin/previous
[[ -f $out/commit && $(<"$out/commit") == "$full" ]] && exit
source=$(mktemp -d)
trap 'rm -rf "$source"' EXIT
git archive "$full" | tar -x -C "$source"
rm -rf "$out"
mkdir -p "$out"
export CGO_ENABLED=0 GOFLAGS='-buildvcs=false -trimpath'
(cd "$source" && go build -o "$out/lockstep-controller" ./cmd/controller && go build -o "$out/lockstep-scheduler" ./cmd/scheduler)
cp -r "$source/manifests/crds" "$out/crds"
echo "$full" >"$out/commit"
