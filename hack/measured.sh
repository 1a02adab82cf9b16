#!/usr/bin/env bash
# Writes rows that a test has told into the tables of a document: hack/measured.sh DOCUMENT LOG. A table follows
# the comment "measured: NAME", and has those rows that the log has for that name, in the order of the log. A
# table of which the log has no rows stays as it is.
set -euo pipefail

document=$1 log=$2
[[ -s $log ]] || { echo "measured: nothing was told in $log" >&2; exit 1; }
new=$(mktemp)
trap 'rm -f "$new"' EXIT
awk '
  NR == FNR {
    if (match($0, /measured: [a-z]+ \| /)) {
      split(substr($0, RSTART), words, " ")
      cells = substr($0, RSTART + RLENGTH)
      rows[words[2]] = rows[words[2]] "| " cells "\n"
    }
    next
  }
  table != "" && /^\|/ {
    # The head of a table is two lines.
    if (++line <= 2 || !(table in rows)) print
    if (line == 2 && table in rows) printf "%s", rows[table]
    next
  }
  { table = ""; line = 0 }
  /^<!-- measured: [a-z]+ -->$/ { table = $3 }
  { print }
' "$log" "$document" >"$new"
cat "$new" >"$document"
