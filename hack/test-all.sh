#!/usr/bin/env bash
# Runs parts of what a release needs, each by its make target, and writes into the table of docs/reliability.md when each
# part was last run and green: hack/test-all.sh PART… A part that fails does not keep the others from running.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

table=docs/reliability.md
failed=()
commit=$(git describe --always --dirty) # once: the table of an earlier part would make the tree dirty
for part in "$@"; do
  if ! grep -q "^| \`make $part\` |" "$table"; then
    echo "test-all: $part is no part: $table has no row for make $part" >&2
    exit 2
  fi
  began=$SECONDS
  echo "test-all: make $part"
  if make "$part"; then
    # The row keeps its command and what that shows.
    sed -i -E "s/^(\| \`make $part\` \|[^|]*\|).*/\1 $(date -u +%F) | $commit | $(((SECONDS - began + 59) / 60)) min |/" "$table"
  else
    failed+=("$part")
  fi
done
if ((${#failed[@]} > 0)); then
  echo "test-all: failed: ${failed[*]}" >&2
  exit 1
fi
