#!/usr/bin/env bash
# Rewrites components/pins/<pin>.mod and .sum for the given packages:
#   hack/pin.sh kwok sigs.k8s.io/kwok/cmd/kwok@v0.8.0
#   hack/pin.sh kubernetes k8s.io/kubernetes/cmd/{kube-apiserver,kubelet,...}@v1.37.1
#   hack/pin.sh coredns github.com/coredns/coredns@v1.14.6
#   hack/pin.sh kubernetes-1.36 k8s.io/kubernetes/cmd/{kube-apiserver,kube-controller-manager}@v1.36.3
# k8s.io/kubernetes asks for its staging modules at v0.0.0 and replaces them by folders; a
# user of the module has to require the published ones instead, which this script does.
set -euo pipefail

if [ $# -lt 2 ]; then
  echo "usage: $0 PIN PACKAGE@VERSION..." >&2
  exit 2
fi
pin=$1
shift
pins=$(cd "$(dirname "$0")/../components/pins" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export GOFLAGS= GOWORK=off

go mod init "pin.lockstep.dev/$pin"
go mod edit -go=1.26.0
if [[ $pin == kubernetes* ]]; then
  version=${1##*@}
  staging=v0.${version#v1.}
  upstream=$(go mod download -json "k8s.io/kubernetes@$version" | sed -n 's/.*"GoMod": "\(.*\)",/\1/p')
  go mod edit -require="k8s.io/kubernetes@$version"
  for module in $(sed -n 's/^\t\(k8s.io\/[a-z-]*\) v0\.0\.0\( \/\/.*\)\{0,1\}$/\1/p' "$upstream" | sort -u); do
    go mod edit -require="$module@$staging"
  done
fi
go get -tool "$@"
if [[ $pin == coredns ]]; then
  # What it shares with Kubernetes, client-go above all, is compiled once if both have it in one version. Take
  # a CoreDNS that asks for no newer ones.
  required() { sed -nE 's/^\t([^ ]+) v[^ ]+.*/\1/p' "$1" | sort; }
  for module in $(comm -12 <(required go.mod) <(required "$pins/kubernetes.mod")); do
    go get "$module@$(sed -nE "s#^\t$module (v[^ ]+).*#\1#p" "$pins/kubernetes.mod")"
  done
fi
cp go.mod "$pins/$pin.mod"
cp go.sum "$pins/$pin.sum"
