#!/usr/bin/env bash
# Packs Lockstep's programs and the images of the examples and the tests into
# bin/images/, from static binaries alone: no base image, no registry. What is
# newer than its binary is left as it is. Names of images pack those alone: images.sh [NAME…].
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

registry=lockstep.dev
tag=${IMAGE_TAG:-dev}
export CGO_ENABLED=0
mkdir -p bin/images

wanted=("$@")

# want NAME says whether an image is to be packed.
want() {
  ((${#wanted[@]} == 0)) || [[ " ${wanted[*]} " == *" $1 "* ]]
}

if want training; then go build -o bin/training ./examples/training; fi
if want rollcall; then go build -o bin/rollcall ./examples/rollcall; fi
if want toolbox; then go build -o bin/toolbox ./e2e/toolbox; fi
(cd localcluster && go build -o ../bin/pack-image ./cmd/pack-image)

# pack NAME BINARY [PACK-IMAGE-FLAGS…]
pack() {
  local name=$1 binary=$2 tar=bin/images/$1.tar
  shift 2
  want "$name" || return 0
  [[ $tar -nt $binary ]] && return
  echo "packing $tar"
  bin/pack-image --name "$registry/$name:$tag" --out "$tar" --binary "/bin/$(basename "$binary")=$binary" "$@"
}

pack controller bin/lockstep-controller --entrypoint /bin/lockstep-controller
pack scheduler bin/lockstep-scheduler --entrypoint /bin/lockstep-scheduler
pack dashboard bin/lockstep-dashboard --entrypoint /bin/lockstep-dashboard
pack frameworkbarrier bin/frameworkbarrier --entrypoint /bin/frameworkbarrier
pack training bin/training --entrypoint /bin/training
pack rollcall bin/rollcall --entrypoint /bin/rollcall
links=()
for tool in sh bash printenv env sleep hostname getent nslookup cat ls true false nginx; do
  links+=(--link "/bin/$tool=/bin/toolbox")
done
pack toolbox bin/toolbox --entrypoint /bin/toolbox "${links[@]}"
