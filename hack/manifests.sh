#!/usr/bin/env bash
# Writes dist/lockstep.yaml: all that `kubectl apply -k manifests` would apply,
# in one file, for those who keep no checkout.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mkdir -p dist
: > dist/lockstep.yaml
for file in manifests/crds/*.yaml manifests/rbac/*.yaml manifests/{controller,scheduler}/deployment.yaml; do
  printf -- '---\n# %s\n' "$file" >> dist/lockstep.yaml
  sed '1{/^---$/d}' "$file" >> dist/lockstep.yaml
done
echo "wrote dist/lockstep.yaml"
