#!/usr/bin/env bash
# Writes a file of dist/ for each overlay of manifests/, for those who keep no checkout, and
# dist/lockstep.yaml: all that `kubectl apply -k manifests` would apply.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/manifests"

out=../../dist
mkdir -p "$out"
render() {
  go run . "../../manifests/$1" > "$out/$2"
  echo "wrote dist/$2"
}
render . lockstep.yaml
for overlay in ../../manifests/overlays/*/; do
  name=$(basename "$overlay")
  render "overlays/$name" "lockstep-$name.yaml"
done
