#!/usr/bin/env bash
# Prints a Python that has the Kubernetes client and mypy, for the tests of the Python package: $PYTHON, one of this
# machine, or one of a virtual environment in the user's cache, which is made if need be. Nothing else on the machine changes.
set -euo pipefail

environment=${XDG_CACHE_HOME:-$HOME/.cache}/lockstep-python

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

# from_pypi fills the environment from the Python Package Index.
from_pypi() {
  python3 -m venv --clear "$environment" && "$environment/bin/pip" install --disable-pip-version-check --retries 1 --timeout 15 kubernetes mypy
}

# from_debian unpacks Debian's packages into the environment, where the index can't be reached. apt keeps what it
# downloads in a folder of its own, so that the machine's packages and its lists of packages stay as they are.
from_debian() {
  local apt
  command -v apt-get && [[ -x /usr/bin/python3 ]] || return
  apt=$(mktemp -d)
  trap 'rm -rf "$apt"' RETURN
  mkdir -p "$apt/lists/partial" "$apt/archives/partial"
  local options=(-qq -o Debug::NoLocking=1 -o Dir::State::lists="$apt/lists" -o Dir::Cache="$apt" -o APT::Sandbox::User=)
  apt-get "${options[@]}" update &&
    apt-get "${options[@]}" install --download-only --yes --no-install-recommends python3-kubernetes mypy &&
    /usr/bin/python3 -m venv --clear --without-pip --system-site-packages "$environment" || return
  local package
  for package in "$apt"/archives/*.deb; do
    dpkg-deb --extract "$package" "$environment/debian" || return
  done
  echo "$environment/debian/usr/lib/python3/dist-packages" >"$("$environment/bin/python3" -c 'import site; print(site.getsitepackages()[0])')/debian.pth"
}

find_python && exit
echo "python: installing the Kubernetes client and mypy into $environment" >&2
{ from_pypi || from_debian; } >&2 || true
find_python || {
  echo "python: there is no Python with the modules kubernetes and mypy. Install them, or name one: PYTHON=/path/to/python3" >&2
  exit 1
}
