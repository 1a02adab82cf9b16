#!/usr/bin/env bash
# Regenerates everything, checks the code and what the documents name, and fails if the tree is not clean.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

root=$PWD
step() { echo "verify: $*"; }

step generate
hack/generate.sh

step gofmt
unformatted=$(git ls-files -co --exclude-standard '*.go' | xargs gofmt -l)
if [[ -n $unformatted ]]; then
  printf 'verify: not formatted, run gofmt -w on:\n%s\n' "$unformatted" >&2
  exit 1
fi

for dir in . localcluster hack/manifests hack/monitoring hack/release; do
  step "go.mod, vet and staticcheck in $dir"
  (
    cd "$dir"
    go mod tidy -diff
    go vet -tags e2e,integration,verify ./...
    # What generators write is theirs to mend.
    go list ./... | grep -v /client/ |
      xargs go tool -modfile="$root/hack/tools/go.mod" staticcheck -tags e2e,integration,verify
  )
done

step "documents against the code: claims have their tests, quotations are in the source"
# These checks read Go files as text, and fail when a test is renamed and a document still has the old name. make test
# leaves them out.
go test -count=1 -tags verify ./docs/...

step macOS
# The programs of Lockstep themselves, that is, and what packs images. The local cluster is for Linux.
GOOS=darwin go build ./...
(cd localcluster && GOOS=darwin go build -o /dev/null ./cmd/pack-image)

step clean tree
if [[ -n $(git status --porcelain) ]]; then
  echo "verify: the tree is not clean; commit what differs, or run make generate:" >&2
  git status --short >&2
  git --no-pager diff | head -100 >&2
  exit 1
fi
echo "verify: all good"
