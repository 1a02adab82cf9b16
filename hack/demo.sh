#!/usr/bin/env bash
# Builds what the demo needs, and no more, and runs it: demo.sh [--real-node] [--keep].
# LDFLAGS are those of the programs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

parts=(--simulated-nodes)
for flag; do
  [[ $flag == --real-node ]] && parts=(--real-node --simulated-nodes=false)
done
mkdir -p bin

# The modules of the programs come while the parts of Kubernetes are compiled. Those have the same
# versions of what both need, so it is compiled once. If this fails, the build says why.
go list -deps ./cmd/controller ./cmd/scheduler ./hack/demo ./examples/training > /dev/null 2>&1 &
trap 'kill $! 2> /dev/null || true' EXIT

(cd localcluster && go build -ldflags "${LDFLAGS:-}" -o ../bin/lockstep-local ./cmd/lockstep-local)
bin/lockstep-local build "${parts[@]}" > /dev/null
go build -ldflags "${LDFLAGS:-}" -o bin/lockstep-controller ./cmd/controller
go build -ldflags "${LDFLAGS:-}" -o bin/lockstep-scheduler ./cmd/scheduler
go build -o bin/lockstep-demo ./hack/demo
hack/images.sh training
bin/lockstep-demo "$@"
