#!/usr/bin/env bash
# Makes all of a release in dist/release: release.sh TAG REGISTRY URL [PUSH]. REGISTRY is where the images are pulled from, URL
# the address below which the files will be. PUSH pushes the images, too. LDFLAGS are those of the programs. The same commit and
# the same version of Go make the same bytes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tag=${1:-} registry=${2:-} url=${3:-} push=${4:-}
[[ $tag && $registry && $url ]] || { echo "release: make release TAG=v1.2.3 REGISTRY=registry.example.com/lockstep URL=https://example.com/v1.2.3 [PUSH=1]" >&2; exit 1; }
[[ -z $(git status --porcelain) ]] || echo "release: the tree is not clean: what is made is not that of the commit" >&2

out=$PWD/dist/release
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -rf "$out"
mkdir -p "$out"

release() { (cd hack/release && go run . -source ../.. -version "$tag" -ldflags "${LDFLAGS:-}" "$@"); }

echo "release: the wheel of the Python package"
release -out "$work/python" -wheel
echo "release: the plugin of kubectl"
release -out "$work/krew" -krew "$url"
echo "release: images"
release -out "$out/images" ${push:+-push "$registry"} | tee "$work/images.txt"
mv "$work"/python/*.whl "$work"/krew/*.tar.gz "$work"/krew/lockstep.yaml "$out"
mv "$out"/images/sbom/* "$out"
rm -rf "$out/images/sbom" "$out/images/bin"

echo "release: manifests and chart"
# In a copy all images have their names, so that ConfigMaps with such names have the right hashes.
cp -a manifests "$work/manifests"
grep -rlE 'lockstep\.dev/[a-z]+:dev' "$work/manifests" | while read -r file; do
  sed -i.before -E "s#lockstep\.dev/([a-z]+):dev#$registry/\1:$tag#" "$file" && rm "$file.before"
done
sed -i.before "s/^version: .*/version: ${tag#v}\nappVersion: $tag/" "$work/manifests/chart/Chart.yaml" && rm "$work/manifests/chart/Chart.yaml.before"
render() { (cd hack/manifests && go run . "$@"); }
render "$work/manifests/overlays/secondary-scheduler" > "$out/install.yaml"
for overlay in integrations scheduler-alone; do
  render "$work/manifests/overlays/$overlay" > "$out/install-$overlay.yaml"
done
render "$work/manifests/dashboard" > "$out/install-dashboard.yaml"
render -chart "$work/manifests/chart" > "$out/lockstep-${tag#v}.tgz"

{
  echo "# Lockstep $tag"
  cat <<END

    kubectl apply --server-side -f $url/install.yaml

The chart needs the namespace of manifests/namespace: helm install lockstep $url/lockstep-${tag#v}.tgz -n lockstep-system

    kubectl krew install --manifest-url=$url/lockstep.yaml
    pip install $url/$(cd "$out" && echo *.whl)

## Images

END
  sed -nE "s#^.*/([a-z]+) (sha256:[0-9a-f]+)\$#- $registry/\1:$tag@\2#p" "$work/images.txt"
  printf '\n## What users get\n'
  sed -n '/^## Unreleased/,/^## v/p' CHANGELOG.md | sed -e 1d -e '/^## v/d'
} > "$out/NOTES.md"

sum=(sha256sum)
command -v sha256sum > /dev/null || sum=(shasum -a 256)
(cd "$out" && find . -type f ! -path './images/*' ! -name SHA256SUMS | sed 's#^\./##' | LC_ALL=C sort | xargs "${sum[@]}" > SHA256SUMS)
echo "release: all of $tag is in dist/release"
