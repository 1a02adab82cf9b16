// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kueue

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/controller/lifecycle"
	"github.com/lockstep-k8s/lockstep/internal/quantity"
	"github.com/lockstep-k8s/lockstep/internal/text"
)

// asked is the part of a role that determines its quota: how much, and of which flavor. Other fields of the role may
// change while it runs.
type asked struct {
	Name             string
	Count            int32
	Resources        *corev1.ResourceRequirements
	Overhead         corev1.ResourceList
	RuntimeClassName *string
	ResourceClaims   []corev1.PodResourceClaim
	InitContainers   []askedContainer
	Containers       []askedContainer
	NodeSelector     map[string]string
	Affinity         *corev1.Affinity
	Tolerations      []corev1.Toleration
}

type askedContainer struct {
	Resources     corev1.ResourceRequirements
	RestartPolicy *corev1.ContainerRestartPolicy
}

// askedOf returns what a role asks for.
func askedOf(role *frameworkv1.TaskRoleSpec, spec *corev1.PodSpec) asked {
	containers := func(list []corev1.Container) (kept []askedContainer) {
		for _, c := range list {
			kept = append(kept, askedContainer{Resources: c.Resources, RestartPolicy: c.RestartPolicy})
		}
		return kept
	}
	return asked{
		Name: role.Name, Count: role.TaskNumber, Resources: spec.Resources, Overhead: spec.Overhead, RuntimeClassName: spec.RuntimeClassName,
		ResourceClaims: spec.ResourceClaims, InitContainers: containers(spec.InitContainers), Containers: containers(spec.Containers),
		NodeSelector: spec.NodeSelector, Affinity: spec.Affinity, Tolerations: spec.Tolerations,
	}
}

// digestVersion is the prefix of a digest. It has to change when the fields of the type asked change, including
// Kubernetes' fields in it; otherwise an upgrade would end running Frameworks.
const digestVersion = "v1:"

// podSetsOf returns the pod sets of a Framework's Workload, and a digest of the fields that determine their quota. The
// error says why the Framework can't have a Workload.
func podSetsOf(framework *frameworkv1.Framework) (sets []podSet, digest string, err error) {
	var all []asked
	var read reading
	for i := range framework.Spec.TaskRoles {
		role := &framework.Spec.TaskRoles[i]
		if role.TaskNumber == 0 {
			continue
		}
		if len(all) == maxPodSets {
			return nil, "", fmt.Errorf("a Framework in a queue has at most %d roles with tasks", maxPodSets)
		}
		template, err := read.template(framework, role)
		if err != nil {
			return nil, "", err
		}
		sets = append(sets, podSet{Name: podSetName(role.Name), Count: role.TaskNumber, Template: podTemplate{template.Spec}})
		all = append(all, askedOf(role, &template.Spec))
	}
	if len(sets) == 0 {
		return nil, "", fmt.Errorf("a Framework in a queue has at least one task")
	}
	data, err := json.Marshal(all)
	if err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256(data)
	return sets, digestVersion + hex.EncodeToString(sum[:16]), nil
}

// These are limits of all templates of a Framework together, because all are decoded at once, and decoding takes many
// times the memory of the text. maxBytes is more than etcd accepts for a Workload.
const maxBytes, maxValues = 2 << 20, 50_000

// reading counts how much of a Framework's templates was read: bytes, with placeholders replaced, and JSON values.
type reading struct{ bytes, values int }

// template returns the Pod template of a role, if it is within the limits for Pod templates. All templates together are
// limited, too.
func (r *reading) template(framework *frameworkv1.Framework, role *frameworkv1.TaskRoleSpec) (*corev1.PodTemplateSpec, error) {
	raw := string(role.Task.Pod.Raw)
	placeholders := []string{
		"{{" + frameworkv1.KeyFrameworkNamespace + "}}", framework.Namespace,
		"{{" + frameworkv1.KeyFrameworkName + "}}", framework.Name,
		"{{" + frameworkv1.KeyTaskRoleName + "}}", role.Name,
	}
	if err := lifecycle.CheckTemplate(role.Name, raw, placeholders); err != nil {
		return nil, err
	}
	replaced := []byte(strings.NewReplacer(placeholders...).Replace(raw))
	r.bytes += len(replaced)
	r.values += text.CountSigns(raw, "{[,")
	if r.bytes > maxBytes || r.values > maxValues {
		return nil, fmt.Errorf("the Pod templates of a Framework in a queue have at most %d bytes and %d JSON values together, with their placeholders replaced", maxBytes, maxValues)
	}
	template, err := templateOf(replaced)
	if err != nil {
		return nil, fmt.Errorf("spec.taskRoles[%s].task.pod%w", role.Name, err)
	}
	return template, lifecycle.CheckContainers(role.Name, &template.Spec)
}

// templateOf decodes a Pod template. It refuses placeholders in the names of fields or resources, with which Pods of
// one role could request different resources.
func templateOf(raw []byte) (*corev1.PodTemplateSpec, error) {
	template := &corev1.PodTemplateSpec{}
	if len(raw) == 0 {
		return template, nil
	}
	var fields any
	if err := utiljson.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf(" is no Pod template: %w", err)
	}
	if name := placeholderIn(fields); name != "" {
		return nil, fmt.Errorf(": the name of a field, or of a resource, has a placeholder, which it may not in a queue: %.99q", name)
	}
	if err := quantity.CheckJSON(raw); err != nil {
		return nil, fmt.Errorf(".%w", err)
	}
	if err := utiljson.Unmarshal(raw, template); err != nil {
		return nil, fmt.Errorf(" is no Pod template: %w", err)
	}
	return template, nil
}

// placeholderIn returns the name of a field that contains a placeholder; "" if there is none.
func placeholderIn(value any) string {
	switch v := value.(type) {
	case map[string]any:
		for name, field := range v {
			if strings.Contains(name, "{{FC_") {
				return name
			}
			if found := placeholderIn(field); found != "" {
				return found
			}
		}
	case []any:
		for _, item := range v {
			if found := placeholderIn(item); found != "" {
				return found
			}
		}
	}
	return ""
}
