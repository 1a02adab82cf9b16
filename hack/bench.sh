#!/usr/bin/env bash
# Measures Lockstep on simulated clusters; arguments go to hack/bench, see its
# -help. Then, unless cases were chosen, the pure packages by themselves.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mkdir -p bin
go build -o bin/lockstep-bench ./hack/bench
# What the scheduler is measured against, and with.
go build -o bin/plain-scheduler ./hack/bench/scheduling/plain-scheduler
go build -o bin/scheduling-alone ./hack/bench/scheduling/alone
bin/lockstep-bench "$@"
if [[ " $* " != *" -cases "* ]]; then
  go test -run '^$' -bench . -benchmem ./controller/lifecycle ./podgroup ./scheduler-plugin/coscheduling/planner ./scheduler-plugin/whatif
fi
