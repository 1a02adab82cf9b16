#!/bin/sh
# Runs the Framework of poststop.yaml, stops it, writes its final state to
# poststop.json in the current folder, and only then deletes it.
set -eu

kubectl create -f "$(dirname "$0")/poststop.yaml"
kubectl wait framework poststop --for='jsonpath={.status.tasks.running}=4' --timeout=3m

kubectl patch framework poststop --type=json \
  -p '[{"op": "replace", "path": "/spec/executionType", "value": "Stop"}]'
kubectl wait framework poststop --for='jsonpath={.status.state}=Completed' --timeout=3m

kubectl get framework poststop -o json > poststop.json
kubectl delete framework poststop --cascade=foreground
