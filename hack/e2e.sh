#!/usr/bin/env bash
# Runs the tests that need a cluster; with --real-node also those that need a
# node that runs containers. What fails does not keep the others from running.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

# Each package has a cluster that its tests share. The longest come first, so that none of them is left to run alone at
# the end.
packages=(./e2e)
if [[ ${1:-} == --real-node ]]; then
  packages+=(./e2e/install ./e2e/realnode)
else
  echo "e2e: no root on Linux: the tests on a real node are left out"
fi
packages+=(./e2e/controller ./e2e/users ./e2e/room ./e2e/faults ./e2e/podgroupapis ./e2e/versions ./e2e/jobs ./e2e/rights ./e2e/beside)

# The web page is looked at in a real browser, and the Python package runs in a real Python.
BROWSER=$(hack/browser.sh) || exit
PYTHON=$(hack/python.sh) || exit
export BROWSER PYTHON

# The tests of the local cluster are a module of their own, and run beside the others in a process group of their own.
log=$(mktemp)
set -m
(cd localcluster && exec go test -tags integration -count=1 -timeout 15m ./integration) >"$log" 2>&1 </dev/null &
integration=$!
set +m
trap 'kill -INT -- "-$integration"; exit 130' INT TERM # Ctrl-C ends all of it.
trap 'rm -f "$log"' EXIT

# The API servers take half of the processor time, a good part of it for collecting garbage. There is memory enough.
export GOGC=300

code=0
# Tests wait most of the time: so three packages run beside each other, and more tests in each than there are cores.
go test -tags e2e -count=1 -timeout 30m -vet=off -p 3 -parallel 16 "${packages[@]}" || code=1
wait "$integration" || code=1
cat "$log"
exit "$code"
