#!/usr/bin/env bash
# Packs Lockstep's programs and the images of the examples and the tests into
# bin/images/, from static binaries alone: no base image, no registry. LDFLAGS are those of the programs.
# Names of images pack those alone: images.sh [NAME…].
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

registry=lockstep.dev
export CGO_ENABLED=0
mkdir -p bin/images

wanted=("$@")

# want NAME says whether an image is to be packed.
want() {
  ((${#wanted[@]} == 0)) || [[ " ${wanted[*]} " == *" $1 "* ]]
}

# build NAME BINARY PACKAGE [FLAGS…]
build() {
  local name=$1 binary=$bin/$2 package=$3
  shift 3
  want "$name" || return 0
  GOOS=linux go build "$@" -o "$binary" "$package"
}

# Images hold programs for Linux, wherever they are packed. Elsewhere, those that make has built are others.
bin=bin
if [[ $(uname -s) != Linux ]]; then
  bin=bin/linux
  mkdir -p "$bin"
  build controller lockstep-controller ./cmd/controller -ldflags "${LDFLAGS:-}"
  build scheduler lockstep-scheduler ./cmd/scheduler -ldflags "${LDFLAGS:-}"
  build dashboard lockstep-dashboard ./cmd/dashboard -ldflags "${LDFLAGS:-}"
  build frameworkbarrier frameworkbarrier ./cmd/frameworkbarrier -ldflags "${LDFLAGS:-}"
fi
build training training ./examples/training
build rollcall rollcall ./examples/rollcall
build toolbox toolbox ./e2e/toolbox
(cd localcluster && go build -o ../bin/pack-image ./cmd/pack-image)

# pack NAME BINARY [PACK-IMAGE-FLAGS…]
pack() {
  local name=$1 binary=$bin/$2 tar=bin/images/$1.tar
  shift 2
  want "$name" || return 0
  echo "packing $tar"
  bin/pack-image --name "$registry/$name:dev" --out "$tar" --binary "/bin/$(basename "$binary")=$binary" "$@"
}

pack controller lockstep-controller --entrypoint /bin/lockstep-controller
pack scheduler lockstep-scheduler --entrypoint /bin/lockstep-scheduler
pack dashboard lockstep-dashboard --entrypoint /bin/lockstep-dashboard
pack frameworkbarrier frameworkbarrier --entrypoint /bin/frameworkbarrier
pack training training --entrypoint /bin/training
pack rollcall rollcall --entrypoint /bin/rollcall
links=()
for tool in sh bash printenv env sleep hostname getent nslookup cat ls true false nginx; do
  links+=(--link "/bin/$tool=/bin/toolbox")
done
pack toolbox toolbox --entrypoint /bin/toolbox "${links[@]}"
