#!/usr/bin/env bash
# Looks up known vulnerabilities of what the programs are built from, with govulncheck: of the modules below, what
# their code can call. The list of vulnerabilities is fetched from https://vuln.go.dev, or from a
# mirror or a folder that VULNDB names: https://… or file:///….
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

root=$PWD
log=$(mktemp)
trap 'rm -f "$log"' EXIT
code=0
# The first one is tiny: there it shows at once whether the list can be had.
for dir in hack/release/testdata/tool . localcluster hack/release; do
  echo "vulncheck: $dir"
  status=0
  (cd "$dir" && go tool -modfile="$root/hack/tools/vuln/go.mod" govulncheck ${VULNDB:+-db "$VULNDB"} ./...) >"$log" 2>&1 || status=$?
  cat "$log"
  case $status in
    0) ;;
    3) code=3 ;; # as govulncheck tells of vulnerabilities that are called
    *)
      if grep -qiE 'fetching vulnerabilities|vuln\.go\.dev|/index/(db|modules)\.json|no such host|dial tcp' "$log"; then
        echo "vulncheck: NOTHING WAS CHECKED: the list of vulnerabilities, ${VULNDB:-https://vuln.go.dev}, can't be had from here." >&2
        echo "vulncheck: run it where it can, or give a mirror: make vulncheck VULNDB=https://…" >&2
      else
        echo "vulncheck: govulncheck failed in $dir" >&2
      fi
      exit 1
      ;;
  esac
done
exit "$code"
