#!/usr/bin/env bash
# Builds what the demo needs, and no more, and runs it: demo.sh [--real-node] [--keep], on a Kubernetes that is
# built for it; demo.sh --kubeconfig FILE --image-name NAME, in a cluster that runs; demo.sh --kind, in one that kind
# makes for it and removes. LDFLAGS are those of the programs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

parts=(--simulated-nodes)
local=yes kind= keep=
args=()
for flag; do
  case $flag in
    --real-node) parts=(--real-node --simulated-nodes=false) ;;
    --kubeconfig | --kubeconfig=*) local= ;;
    --kind) local= kind=yes ;;
    --keep) keep=yes ;;
  esac
  [[ $flag == --kind ]] || args+=("$flag")
done
if [[ $local && $(uname -s) != Linux ]]; then
  echo "demo: the local Kubernetes needs Linux. Here it is make demo KIND=1, or make demo KUBECONFIG=FILE IMAGE=NAME" >&2
  exit 1
fi
mkdir -p bin

# saying says what a command does, when it begins and every eight seconds until it ends.
saying() {
  local what=$1 began=$SECONDS ok=yes
  shift
  echo "demo: $what"
  while sleep 8; do echo "demo: $what, for $((SECONDS - began)) s"; done &
  local clock=$!
  "$@" || ok=
  kill $clock && wait $clock 2> /dev/null || true
  [[ $ok ]]
}
# The compiler collects its garbage more rarely, which takes a sixth less CPU. The programs themselves do as usual.
compile() { GOGC=${GOGC:-400} go build "$@"; }

trap 'kill $(jobs -p) 2> /dev/null || true' EXIT
if [[ $local ]]; then
  # The modules of the programs come while lockstep-local is compiled, and what other projects publish while the programs are. What
  # they don't is compiled at last. If something fails here, the commands below say why.
  go list -deps ./cmd/controller ./cmd/scheduler ./hack/demo ./examples/training > /dev/null 2>&1 &
  (cd localcluster && saying "compiling the local Kubernetes' starter" compile -ldflags "${LDFLAGS:-}" -o ../bin/lockstep-local ./cmd/lockstep-local)
  bin/lockstep-local build --installed --download-only "${parts[@]}" > /dev/null &
  downloads=$!
fi
saying "compiling lockstep-controller" compile -ldflags "${LDFLAGS:-}" -o bin/lockstep-controller ./cmd/controller
saying "compiling lockstep-scheduler" compile -ldflags "${LDFLAGS:-}" -o bin/lockstep-scheduler ./cmd/scheduler
saying "compiling the demo" compile -o bin/lockstep-demo ./hack/demo
if [[ $keep ]]; then # to look around with
  saying "compiling the plugin of kubectl" compile -ldflags "${LDFLAGS:-}" -o bin/kubectl-lockstep ./cmd/kubectl-lockstep
fi
saying "packing the image of the example" hack/images.sh training
if [[ $local ]]; then
  saying "waiting for what other projects publish" wait "$downloads" || true # what is missing is compiled, and what is wrong told, below
  bin/lockstep-local build --installed "${parts[@]}" > /dev/null
fi

if [[ $kind ]]; then
  cluster=lockstep-demo
  clusters=$(kind get clusters)
  if grep -qx "$cluster" <<< "$clusters"; then
    echo "demo: kind has a cluster $cluster already, which the demo would remove in the end. To remove it: kind delete cluster --name $cluster" >&2
    exit 1
  fi
  kubeconfig=$(mktemp)
  # When the terminal closes the demo first leaves its cluster. Nothing that the terminal sends ends the deletion.
  trap 'exit 129' HUP
  trap 'trap "" HUP INT PIPE; kind delete cluster --name "$cluster"; rm -f "$kubeconfig"' EXIT
  # What kind could not make it has taken away, and one that somebody else makes meanwhile stays.
  kind create cluster --name "$cluster" --kubeconfig "$kubeconfig" --wait 3m || { trap 'rm -f "$kubeconfig"' EXIT; exit 1; }
  kind load image-archive bin/images/training.tar --name "$cluster"
  args+=(--kubeconfig "$kubeconfig" --image-name lockstep.dev/training:dev)
fi
bin/lockstep-demo "${args[@]}"
