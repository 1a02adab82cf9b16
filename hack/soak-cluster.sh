#!/usr/bin/env bash
# Has Frameworks come and go for a time, such as 2h, and writes the table of docs/reliability.md if nothing grew.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export PATH="$PWD/bin:$PATH"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
go test -tags e2e -count=1 -timeout 0 -v ./e2e/soak -soak "$1" | tee "$log"
hack/measured.sh docs/reliability.md "$log"
