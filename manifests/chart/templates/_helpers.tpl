{{- /* lockstep.text is a file of the bases, for the namespace of the release. */ -}}
{{- define "lockstep.text" -}}
{{- $text := .root.Files.Get (printf "bases/%s" .file) -}}
{{- if not $text }}{{ fail (printf "the chart lacks the file bases/%s" .file) }}{{ end -}}
{{- $text | replace "lockstep-system" .root.Release.Namespace -}}
{{- end -}}

{{- /* lockstep.merge lays the fields of one object over those of another, and prints nothing. Unlike
mergeOverwrite it keeps what is false or zero. */ -}}
{{- define "lockstep.merge" -}}
{{- $into := .into -}}
{{- range $key, $value := .from -}}
{{- if and (kindIs "map" $value) (kindIs "map" (get $into $key)) -}}
{{- include "lockstep.merge" (dict "into" (get $into $key) "from" $value) -}}
{{- else -}}
{{- $_ := set $into $key $value -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* lockstep.config is the configuration of a program: the base's, what the integrations need, what
the values say. */ -}}
{{- define "lockstep.config" -}}
{{- $config := include "lockstep.text" (dict "root" .root "file" (printf "%s/config.yaml" .program)) | fromYaml -}}
{{- if eq .program "controller" -}}
{{- range $base, $section := dict "volcano" "volcanoJobs" "kubeflow" "kubeflowJobs" "kueue" "kueue" -}}
{{- $own := get $.values.config $section -}}
{{- if and (kindIs "map" $own) (hasKey $own "enabled") -}}
{{- fail (printf "controller.config.%s.enabled: set integrations.%s instead, which grants the rights, too" $section $base) -}}
{{- end -}}
{{- if get $.root.Values.integrations $base -}}
{{- if and (eq $base "volcano") (not (and (kindIs "map" $own) (kindIs "slice" (get $own "schedulerNames")))) -}}
{{- $scheduler := default "lockstep-scheduler" $.values.config.gangSchedulerName -}}
{{- fail (printf "controller.config.volcanoJobs.schedulerNames: Required value: set [%[1]s] if Volcano runs in this cluster, too, or [%[1]s, volcano, \"\"] if it does not, to also run Jobs that name Volcano's scheduler or none" $scheduler) -}}
{{- end -}}
{{- include "lockstep.merge" (dict "into" $config "from" (dict $section (dict "enabled" true))) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if hasKey .values.config "namespaces" -}}
{{- fail "controller.config.namespaces: set namespaces instead, which grants the rights, too" -}}
{{- end -}}
{{- with .root.Values.namespaces -}}
{{- if eq $.program "controller" }}{{ $_ := set $config "namespaces" . }}{{ end -}}
{{- end -}}
{{- include "lockstep.merge" (dict "into" $config "from" .values.config) -}}
{{- toYaml $config -}}
{{- end -}}

{{- /* lockstep.configmap is what Kustomize generates, but for the hash in the name. */ -}}
{{- define "lockstep.configmap" -}}
{{- $generator := first .kustomization.configMapGenerator -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ $generator.name }}
  namespace: {{ $generator.namespace }}
  labels: {{- toYaml $generator.options.labels | nindent 4 }}
data:
  config.yaml: | {{- include "lockstep.config" . | nindent 4 }}
{{- end -}}

{{- define "lockstep.deployment" -}}
{{- $deployment := .text | fromYaml -}}
{{- $template := $deployment.spec.template -}}
{{- $container := first $template.spec.containers -}}
{{- /* Pods are replaced when their configuration changes. */ -}}
{{- $_ := set $template.metadata "annotations" (dict "checksum/config" (include "lockstep.config" . | sha256sum)) -}}
{{- if not (kindIs "invalid" .values.replicas) -}}
{{- $_ := set $deployment.spec "replicas" .values.replicas -}}
{{- end -}}
{{- with .values.image -}}
{{- $_ := set $container "image" . -}}
{{- end -}}
{{- if .values.podGroupsOnly -}}
{{- $_ := set $container "args" (append $container.args "--podgroups-only") -}}
{{- end -}}
{{- include "lockstep.merge" (dict "into" $container.resources "from" .values.resources) -}}
{{- range $env := $container.env -}}
{{- if eq $env.name "ALSO_SERVE" -}}
{{- $_ := set $env "value" (join "," $.values.alsoServe) -}}
{{- else if eq $env.name "NAMESPACES" -}}
{{- $_ := set $env "value" (join "," $.root.Values.namespaces) -}}
{{- end -}}
{{- end -}}
{{- range .root.Values.imagePullSecrets -}}
{{- $_ := set $template.spec "imagePullSecrets" (append (default list $template.spec.imagePullSecrets) (dict "name" .)) -}}
{{- end -}}
{{- toYaml $deployment -}}
{{- end -}}

{{- define "lockstep.networkpolicy" -}}
{{- $policy := .text | fromYaml -}}
{{- with .root.Values.apiServerPorts -}}
{{- $ports := list -}}
{{- range . -}}
{{- $ports = append $ports (dict "protocol" "TCP" "port" .) -}}
{{- end -}}
{{- $_ := set $policy.spec "egress" (list (dict "ports" $ports)) -}}
{{- end -}}
{{- toYaml $policy -}}
{{- end -}}

{{- /* lockstep.rights are the documents of a file. Where there are namespaces, roles are bound in each of
them and not in the cluster. */ -}}
{{- define "lockstep.rights" -}}
{{- range $document := splitList "\n---\n" (trim .text) }}
{{- $object := fromYaml $document }}
{{- /* Without jobs only the rights for PodGroups are left. */}}
{{- if not (and $.root.Values.controller.podGroupsOnly (eq $object.metadata.name "lockstep-controller") (hasPrefix "ClusterRole" $object.kind)) }}
---
{{- if and $.root.Values.namespaces (eq $object.kind "ClusterRoleBinding") }}
{{- $_ := set $object "kind" "RoleBinding" }}
{{- range $namespace := $.root.Values.namespaces }}
{{- $_ := set $object.metadata "namespace" $namespace }}
---
{{ toYaml $object }}
{{- end }}
{{- else }}
{{ $document }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* lockstep.crd stays when the release goes: who deletes it deletes all jobs. */ -}}
{{- define "lockstep.crd" -}}
{{- $crd := .text | fromYaml -}}
{{- $_ := set $crd.metadata.annotations "helm.sh/resource-policy" "keep" -}}
{{- toYaml $crd -}}
{{- end -}}
