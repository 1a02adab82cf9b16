#!/usr/bin/env bash
# Tries all faults of e2e/faults, and prints the table of docs/reliability.md.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export PATH="$PWD/bin:$PATH"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
code=0
go test -tags e2e -count=1 -timeout 30m -v ./e2e/faults -all-faults | tee "$log" || code=$?
echo
echo '| fault | healed in | requests a second during it |'
echo '|---|---|---|'
sed -n 's/.*reliability: //p' "$log"
exit "$code"
