#!/usr/bin/env bash
# Runs the tests that need a cluster; with --real-node also those that need a
# node that runs containers. What fails does not keep the others from running.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
trap 'exit 130' INT TERM # Not the next package after Ctrl-C.

# Packages that keep all processors busy: each runs alone.
busy=(./e2e ./e2e/volcano ./e2e/kubeflow ./e2e/soak)
# Packages that wait most of the time: two of them run beside each other, each with a
# cluster of its own. go test prints what they say one after the other. The longest is the
# first, so that it is not left to run alone at the end.
waiting=(./e2e/controller ./e2e/dialects/rivals)
if [[ ${1:-} == --real-node ]]; then
  waiting+=(./e2e/realnode ./e2e/realnode/install ./e2e/realnode/guest ./e2e/realnode/static)
else
  echo "e2e: no root on Linux: the tests on a real node are left out"
fi
waiting+=(./e2e/faults ./e2e/kubeflow/crashes ./e2e/volcano/crashes ./e2e/versions ./e2e/volcano/beside ./e2e/kubeflow/beside ./e2e/autoscaling ./e2e/starving ./e2e/dialects ./e2e/dialects/volcano ./e2e/dialects/kept ./e2e/dialects/native ./e2e/kueue ./e2e/cli ./e2e/python ./e2e/dashboard ./e2e/rbac ./e2e/monitoring ./e2e/namespaced ./e2e/why)

# The web page is looked at in a real browser, and the Python package runs in a real Python.
BROWSER=$(hack/browser.sh) || exit
PYTHON=$(hack/python.sh) || exit
export BROWSER PYTHON

# Tests that may run beside others wait, too, so there may be more than there are cores.
run() {
  go test -tags e2e -count=1 -timeout 30m -parallel 16 "$@"
}

code=0
(cd localcluster && go test -tags integration -count=1 -timeout 15m ./integration) || code=1
run -p 1 "${busy[@]}" || code=1
run -p 2 "${waiting[@]}" || code=1
exit "$code"
