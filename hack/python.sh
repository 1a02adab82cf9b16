#!/usr/bin/env bash
# Prints a Python that has the Kubernetes client and mypy, for the tests of the Python package: $PYTHON, or one of this
# machine. As root on Debian and what comes from it, Debian's packages are installed if there is none; elsewhere a virtual
# environment is made in the user's cache.
set -euo pipefail

find_python() {
  local python
  for python in "${PYTHON:-}" python3 /usr/bin/python3 "$environment/bin/python3"; do
    if [[ -n $python ]] && "$python" -c 'import kubernetes, mypy' 2>/dev/null; then
      command -v "$python"
      return
    fi
  done
  return 1
}

environment=${XDG_CACHE_HOME:-$HOME/.cache}/lockstep-python
find_python && exit
echo "python: installing the Kubernetes client and mypy" >&2
if [[ $(id -u) == 0 ]] && command -v apt-get >&2; then
  { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3-kubernetes mypy; } >&2
else
  { python3 -m venv "$environment" && "$environment/bin/pip" install kubernetes mypy; } >&2
fi
find_python || {
  echo "python: there is no Python with the modules kubernetes and mypy. Install them, or name one: PYTHON=/path/to/python3" >&2
  exit 1
}
