#!/usr/bin/env bash
# Follows the README to the letter in a clean clone of the last commit, as a new user with an empty home and empty caches
# does: it runs each command of the README's console examples, in their order, and then what a demo that is kept prints.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fresh=$(mktemp -d)
# A cluster that a step has left goes, too. Go makes the folders of its module cache read-only.
trap 'HOME=$fresh/home "$fresh/lockstep/bin/lockstep-local" down --dir "$fresh/home/.local/state/lockstep-local/demo" > /dev/null 2>&1; chmod -R u+w "$fresh" && rm -rf "$fresh"' EXIT
git clone --quiet . "$fresh/lockstep"
mkdir "$fresh/home"
mapfile -t commands < <(awk '/^```/ { console = ($0 == "```console") } console && sub(/^\$ /, "") { sub(/ +#.*/, ""); print }' README.md)
((${#commands[@]} > 0)) || { echo "follow-readme: the README has no commands" >&2; exit 1; }
follow() {
  echo "follow-readme: $1"
  (
    cd "$fresh/lockstep"
    unset GOPATH GOCACHE GOMODCACHE GOFLAGS XDG_CACHE_HOME XDG_STATE_HOME BROWSER PYTHON
    HOME=$fresh/home bash -e -o pipefail -c "$1" < /dev/null
  )
}
for command in "${commands[@]}"; do
  follow "$command"
done
follow "make demo KEEP=1 | tee $fresh/kept"
printed=$(sed -n '/^The cluster is still running:/,$ s/^  //p' "$fresh/kept")
[[ $printed == *lockstep-local\ down* ]] || { echo "follow-readme: the demo doesn't say how to reach what it keeps" >&2; exit 1; }
follow "$printed"
