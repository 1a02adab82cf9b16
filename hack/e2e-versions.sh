#!/usr/bin/env bash
# Runs Lockstep on the API servers of several Kubernetes versions, one after the other:
#   hack/e2e-versions.sh 1.36 1.35
# Without versions these are all that lockstep-local has. All are tried, also after one on
# which a test failed. The first run builds each of them, which takes minutes.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

versions=("$@")
if [ $# -eq 0 ]; then
  known=$(lockstep-local versions) || exit
  mapfile -t versions <<<"$known"
fi
failed=()
for version in "${versions[@]}"; do
  echo "Kubernetes $version"
  lockstep-local build --kubernetes-version "$version" >/dev/null &&
    go test -tags e2e -count=1 -v -timeout 15m -run 'OnAKubernetesVersion$' ./e2e/versions -kubernetes-version "$version" ||
    failed+=("$version")
done
if [ ${#failed[@]} -gt 0 ]; then
  echo "failed on Kubernetes ${failed[*]}" >&2
  exit 1
fi
echo "passed on Kubernetes ${versions[*]}"
