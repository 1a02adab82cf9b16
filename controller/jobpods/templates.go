// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package jobpods

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/lockstep-k8s/lockstep/internal/quantity"
	"github.com/lockstep-k8s/lockstep/internal/text"
)

// These are bounds of a Pod template. A Pod takes memory in proportion to the JSON values in its template, and dozens
// of Pods are built at the same time. etcd accepts at most 1.5 MiB for a Pod.
const (
	// MaxTemplateBytes bounds a template.
	MaxTemplateBytes = 1 << 20
	// MaxTemplateValues bounds the objects, lists and list elements of a template.
	MaxTemplateValues = 20_000
	// MaxContainers bounds its containers of all kinds.
	MaxContainers = 1000
)

// DecodeTemplate decodes a Pod template in JSON. If no Pod can be created from the template, it returns an error that
// says why.
func DecodeTemplate(raw []byte) (*corev1.PodTemplateSpec, error) {
	if len(raw) > MaxTemplateBytes {
		return nil, fmt.Errorf("must have at most %d bytes, has %d", MaxTemplateBytes, len(raw))
	}
	if values := text.CountSigns(raw, "{[,"); values > MaxTemplateValues {
		return nil, fmt.Errorf("must have at most %d JSON values, has %d", MaxTemplateValues, values)
	}
	if err := quantity.CheckJSON(raw); err != nil {
		return nil, err
	}
	template := &corev1.PodTemplateSpec{}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, template); err != nil {
			return nil, fmt.Errorf("is no Pod template: %w", err)
		}
	}
	spec := &template.Spec
	if len(spec.Containers) == 0 {
		return nil, fmt.Errorf("must have a container in spec.containers")
	}
	if n := len(spec.Containers) + len(spec.InitContainers) + len(spec.EphemeralContainers); n > MaxContainers {
		return nil, fmt.Errorf("must have at most %d containers, init containers included, has %d", MaxContainers, n)
	}
	for _, container := range AllContainers(spec) {
		if container.Name == "" {
			return nil, fmt.Errorf("must name every container")
		}
	}
	if err := checkNames(spec); err != nil {
		return nil, err
	}
	return template, nil
}

// checkNames checks hostname and subdomain. The API server would check them only when Pods are created, but the names
// also become part of the lists of hosts, which are copied into every Pod of the job.
func checkNames(spec *corev1.PodSpec) error {
	for _, name := range []struct{ field, value string }{{"spec.hostname", spec.Hostname}, {"spec.subdomain", spec.Subdomain}} {
		if name.value == "" {
			continue
		}
		if problems := validation.IsDNS1123Label(name.value); len(problems) > 0 {
			return fmt.Errorf("must have a DNS label in %s, which has at most %d characters: %s", name.field, validation.DNS1123LabelMaxLength, problems[0])
		}
	}
	return nil
}

// AllContainers returns the containers and init containers of a Pod. They can be changed.
func AllContainers(spec *corev1.PodSpec) []*corev1.Container {
	all := make([]*corev1.Container, 0, len(spec.InitContainers)+len(spec.Containers))
	for i := range spec.InitContainers {
		all = append(all, &spec.InitContainers[i])
	}
	return append(all, AppContainers(spec)...)
}

// AppContainers returns the containers of a Pod, without init containers. The caller may change them.
func AppContainers(spec *corev1.PodSpec) []*corev1.Container {
	all := make([]*corev1.Container, 0, len(spec.Containers))
	for i := range spec.Containers {
		all = append(all, &spec.Containers[i])
	}
	return all
}

// TemplateScheduler returns the scheduler that a template in JSON names; "" if it names none or can't be decoded.
func TemplateScheduler(raw []byte) string {
	var template struct {
		Spec struct {
			SchedulerName string `json:"schedulerName"`
		} `json:"spec"`
	}
	if len(raw) == 0 || json.Unmarshal(raw, &template) != nil {
		return ""
	}
	return template.Spec.SchedulerName
}

// SetEnv appends an environment variable to those of containers, so that this value counts.
func SetEnv(containers []*corev1.Container, env ...corev1.EnvVar) {
	for _, container := range containers {
		container.Env = append(container.Env, env...)
	}
}
