#!/usr/bin/env bash
# Prints the path of a browser for the tests of the web page: $BROWSER, or a Chromium of this machine. As
# root on Debian and what comes from it, Chromium is installed if there is none.
set -euo pipefail

find_browser() {
  local name
  for name in "${BROWSER:-}" chromium chromium-browser google-chrome google-chrome-stable; do
    [[ -n $name ]] && command -v "$name" && return
  done
  return 1
}

find_browser && exit
if [[ $(id -u) == 0 ]] && command -v apt-get >&2; then
  echo "browser: installing chromium" >&2
  { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium; } >&2
fi
find_browser || {
  echo "browser: there is no Chromium here. Install it, or name one: BROWSER=/path/to/chromium" >&2
  exit 1
}
