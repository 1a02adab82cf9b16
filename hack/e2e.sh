#!/usr/bin/env bash
# Runs the tests that need a cluster; with --real-node also those that need a
# node that runs containers.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

packages=(./e2e ./e2e/controller ./e2e/versions ./e2e/volcano ./e2e/volcano/crashes ./e2e/volcano/beside ./e2e/starving ./e2e/autoscaling)
if [[ ${1:-} == --real-node ]]; then
  packages+=(./e2e/realnode)
else
  echo "e2e: no root on Linux: the tests on a real node are left out"
fi
(cd localcluster && go test -tags integration -count=1 -timeout 15m ./integration)
# One package after the other: each has a cluster of its own. Tests that may run
# beside others wait most of the time, so there may be more than there are cores.
go test -tags e2e -count=1 -timeout 30m -p 1 -parallel 16 "${packages[@]}"
