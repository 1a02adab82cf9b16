#!/usr/bin/env bash
# Replays a folder of FrameworkController manifests on a real node:
# hack/compat.sh DIR
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

examples=${1:-}
if [[ -z $examples || ! -d $examples ]]; then
  echo "compat: '$examples' is not a folder; usage: make compat EXAMPLES=DIR" >&2
  exit 1
fi
if [[ $(uname -s) != Linux || $(id -u) != 0 ]]; then
  echo "compat: needs root on Linux, for a node that runs containers" >&2
  exit 1
fi
go test -tags e2e -count=1 -timeout 30m -v ./e2e/compat -examples "$(realpath "$examples")"
