#!/usr/bin/env bash
# Lets random storms go over the scheduler, from a first seed: hack/storms.sh COUNT FIRST. It
# tells after each 200 how many are over.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

count=$1 first=$2 each=200
binary=$(mktemp -d)/storms.test
trap 'rm -rf "$(dirname "$binary")"' EXIT
go test -c -o "$binary" ./scheduler-plugin/coscheduling
for ((done = 0; done < count; done += each)); do
  some=$((count - done < each ? count - done : each))
  GOGC=400 "$binary" -test.run 'TestStorms$' -test.timeout 0 -storms "$some" -storm-first-seed "$((first + done))" 2>/dev/null
  echo "$((done + some)) of $count storms are over"
done
