#!/bin/sh
# Starts the Framework of prestart.yaml, once it owns the ServiceAccount that its
# Pods need. Both go with `kubectl delete framework prestart --cascade=foreground`.
set -eu

kubectl create -f "$(dirname "$0")/prestart.yaml"
uid=$(kubectl get framework prestart -o 'jsonpath={.metadata.uid}')

kubectl create -f - <<END
apiVersion: v1
kind: ServiceAccount
metadata:
  name: prestart
  ownerReferences:
  - apiVersion: frameworkcontroller.microsoft.com/v1
    kind: Framework
    name: prestart
    uid: $uid
    controller: true
    blockOwnerDeletion: true
END

kubectl patch framework prestart --type=json \
  -p '[{"op": "replace", "path": "/spec/executionType", "value": "Start"}]'
kubectl wait framework prestart --for='jsonpath={.status.tasks.running}=4' --timeout=3m
