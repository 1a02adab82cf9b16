#!/usr/bin/env bash
# Runs every fuzz test for a while, one after the other: fuzz.sh [TIME, default 30s].
# What fails is kept in testdata/fuzz beside the test, where the plain tests run it
# from then on: commit it with the fix.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

grep -rlE '^func Fuzz' --include='*_test.go' . | xargs -n1 dirname | sort -u | while read -r package; do
  sed -nE 's/^func (Fuzz[A-Za-z0-9]+)\(.*/\1/p' "$package"/*_test.go | sort | while read -r name; do
    echo "fuzz: $name in $package"
    # Left alone, it may spend a minute on making one new input smaller.
    go test -run '^$' -fuzz "^$name\$" -fuzztime "${1:-30s}" -fuzzminimizetime 10x "$package" < /dev/null
  done
done
