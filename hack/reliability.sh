#!/usr/bin/env bash
# Tries all faults of e2e/faults, and writes the tables of docs/reliability.md if none of them did harm.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export PATH="$PWD/bin:$PATH"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
go test -tags e2e -count=1 -timeout 40m -v ./e2e/faults -all-faults | tee "$log"
hack/measured.sh docs/reliability.md "$log"
git --no-pager diff --stat -- docs/reliability.md
