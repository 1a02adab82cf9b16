#!/usr/bin/env bash
# Makes a release twice and compares its bytes, and installs it on a real node of a local Kubernetes, from a registry and a web server
# of this machine, by the very lines of the release's notes. As root on Linux: try-release.sh [TAG].
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tag=${1:-v0.1.0}
free() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
registry=localhost:$(free) site=https://localhost:$(free)
work=$(mktemp -d)
dir=$work/cluster
cleanup() {
  bin/lockstep-local down --dir "$dir" > /dev/null 2>&1 || true
  kill $(jobs -p) 2> /dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

step() { echo "try-release: $*"; }

step "a registry at $registry, and a web server at $site with a certificate of its own"
(cd hack/release && go build -o "$work/registry" ./registry)
"$work/registry" "${registry/localhost/127.0.0.1}" &
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=localhost -addext subjectAltName=DNS:localhost \
  -keyout "$work/key.pem" -out "$work/cert.pem" 2> /dev/null
mkdir "$work/site"
python3 - "$work" "${site##*:}" << 'END' &
import functools, http.server, ssl, sys
work, port = sys.argv[1], int(sys.argv[2])
class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", port), functools.partial(Quiet, directory=work + "/site"))
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(work + "/cert.pem", work + "/key.pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
END
# kubectl and pip trust the certificate beside those of the machine.
cat "$work/cert.pem" "$(python3 -c 'import ssl; print(ssl.get_default_verify_paths().cafile or "/dev/null")')" > "$work/trusted.pem"
export SSL_CERT_FILE=$work/trusted.pem PIP_CERT=$work/trusted.pem REQUESTS_CA_BUNDLE=$work/trusted.pem

# Both are made in clones: what lies in dist/release here may be about to be published.
for clone in once again; do
  step "the release of the last commit, in the clone $clone"
  git clone --quiet . "$work/$clone"
  make -C "$work/$clone" release TAG="$tag" REGISTRY="$registry/lockstep" URL="$site/$tag" PUSH=1 > "$work/$clone.log" 2>&1 || { cat "$work/$clone.log"; exit 1; }
done
step "both are the same, byte by byte"
diff -r "$work/once/dist/release" "$work/again/dist/release"
release=$work/site/$tag
cp -r "$work/once/dist/release" "$release"
(cd "$release" && sha256sum --quiet -c SHA256SUMS)

step "a local Kubernetes without Lockstep"
make build > /dev/null
hack/images.sh training > /dev/null
bin/lockstep-local up --dir "$dir" --real-node --with none > /dev/null
export KUBECONFIG=$dir/kubeconfig PATH=$dir/bin:$PATH
kubectl delete --wait --ignore-not-found -k manifests > /dev/null
bin/lockstep-local load-image bin/images/training.tar --dir "$dir" > /dev/null
# The local Kubernetes has no kube-scheduler, which places Lockstep's own Pods.
go build -o "$work/kube-scheduler" ./hack/bench/scheduling/plain-scheduler
"$work/kube-scheduler" --kubeconfig "$KUBECONFIG" --leader-elect=false > "$work/kube-scheduler.log" 2>&1 &

# line WORD is the line of the release's notes that begins with a word.
line() { sed -n "s/^    \($1 .*\)/\1/p" "$release/NOTES.md"; }

step "$(line kubectl\ apply)"
bash -c "$(line kubectl\ apply)" > /dev/null
for name in lockstep-controller lockstep-scheduler; do
  kubectl -n lockstep-system rollout status "deployment/$name" --timeout=180s
done
kubectl apply -f examples/training/training.yaml > /dev/null
kubectl wait --for=jsonpath='{.status.state}'=Completed framework/training --timeout=180s

step "the plugin, as krew unpacks it"
mkdir "$work/plugin"
uri=$(sed -n 's/.*uri: *//p' "$release/lockstep.yaml" | grep "linux-$(go env GOARCH)")
python3 -c 'import sys, urllib.request; sys.stdout.buffer.write(urllib.request.urlopen(sys.argv[1]).read())' "$uri" | tar -xz -C "$work/plugin"
version=$(PATH=$work/plugin:$PATH kubectl lockstep version)
echo "$version"
[[ $version == *"$tag"* ]]

step "$(line pip)"
python3 -m venv "$work/venv"
# Its dependencies would come from an index, which the machine may not have.
PATH=$work/venv/bin:$PATH bash -c "$(line pip) --no-deps" > /dev/null
"$work/venv/bin/python" -c 'import importlib.metadata; print(importlib.metadata.version("lockstep"))' | grep -x "${tag#v}"
step "all of it works"
