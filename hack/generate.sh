#!/usr/bin/env bash
# Writes everything that is generated: deep copies, CRDs, and the client/ folder.
# All tools are pinned in hack/tools/go.mod.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

module=github.com/lockstep-k8s/lockstep
header=hack/boilerplate.go.txt
tool() { go tool -modfile=hack/tools/go.mod "$@"; }

tool controller-gen object:headerFile="$header" paths=./apis/...
tool controller-gen crd:deprecatedV1beta1CompatibilityPreserveUnknownFields=false \
  paths=./apis/framework/... paths=./apis/scheduling/... \
  output:crd:dir=manifests/crds
# What no marker of controller-gen can say: the tasks in the status are an array of
# objects, each of which is kept as it is.
sed -i.before '/^ *taskStatuses:$/,/^ *type: array$/ s/^\( *\)nullable: true$/\1items:\
\1  type: object\
\1  x-kubernetes-preserve-unknown-fields: true\
&/' manifests/crds/frameworkcontroller.microsoft.com_frameworks.yaml
# Quantities of which a number would be made that takes for ever to read, and negative ones, are
# refused.
sed -i.before '/^ *minResources:$/,/^ *type: object$/ {
s/^\( *\)pattern: .*$/\1maxLength: 32\
\1pattern: ^([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$/
}' manifests/crds/scheduling.lockstep.dev_podgroups.yaml
rm manifests/crds/*.before
# The kinds of Volcano and of Kubeflow are apart: they are installed only where they are
# asked for, and only if they are absent.
tool controller-gen crd:deprecatedV1beta1CompatibilityPreserveUnknownFields=false \
  paths=./apis/batch/... paths=./apis/bus/... \
  output:crd:dir=manifests/volcano
tool controller-gen crd:deprecatedV1beta1CompatibilityPreserveUnknownFields=false \
  paths=./apis/kubeflow/... \
  output:crd:dir=manifests/kubeflow
go run ./hack/partialschema manifests/volcano/batch.volcano.sh_jobs.yaml manifests/kubeflow/kubeflow.org_*.yaml

# The generators write below the folder that they are told, by package path.
# They write into a new folder which then takes the place of client/, so that
# what is no longer generated goes.
out=$(mktemp -d .generate-XXXXXX)
trap 'rm -rf "$out"' EXIT
apis=("$module/apis/framework/v1" "$module/apis/scheduling/v1alpha1"
  "$module/apis/batch/v1alpha1" "$module/apis/bus/v1alpha1"
  "$module/apis/kubeflow/v1" "$module/apis/kubeflow/v1alpha2" "$module/apis/kubeflow/v2beta1")

tool applyconfiguration-gen --go-header-file "$header" \
  --output-dir "$out/applyconfiguration" --output-pkg "$module/client/applyconfiguration" \
  "${apis[@]}"
tool client-gen --go-header-file "$header" \
  --output-dir "$out/clientset" --output-pkg "$module/client/clientset" \
  --clientset-name versioned --input-base "" \
  --apply-configuration-package "$module/client/applyconfiguration" \
  "${apis[@]/#/--input=}"
tool lister-gen --go-header-file "$header" \
  --output-dir "$out/listers" --output-pkg "$module/client/listers" "${apis[@]}"
tool informer-gen --go-header-file "$header" \
  --output-dir "$out/informers" --output-pkg "$module/client/informers" \
  --versioned-clientset-package "$module/client/clientset/versioned" \
  --listers-package "$module/client/listers" "${apis[@]}"

rm -rf client
mv "$out" client
trap - EXIT
chmod 755 client

# The references of fields, events and metrics, and the tables of how Pods end.
rm -rf docs/reference
go run ./hack/apiref docs/reference
go run ./hack/messages -page > docs/reference/messages.md
go run ./hack/metricsref > .metrics.md
mv .metrics.md docs/metrics.md
go run ./hack/endsref
