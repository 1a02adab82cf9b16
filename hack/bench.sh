#!/usr/bin/env bash
# Measures Lockstep against bare Pods on a simulated cluster, then the pure
# packages by themselves. Arguments go to the former: hack/bench.sh -rounds 5
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

go run ./hack/bench "$@"
go test -run '^$' -bench . -benchmem ./controller/lifecycle ./podgroup ./scheduler-plugin/coscheduling/planner
