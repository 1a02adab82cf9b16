// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/localenv/upstream"
)

// API is a project with a PodGroup of its own. Empty is Lockstep.
type API string

// The APIs of other projects.
const (
	SchedulerPlugins API = "scheduler-plugins"
	Volcano          API = "Volcano"
)

// Foreign are the PodGroup APIs of other projects that are measured, each of which is one row.
var Foreign = []API{SchedulerPlugins, Volcano}

// words are what the APIs differ in.
var words = map[API]struct {
	kind schema.GroupVersionKind
	// crd is the manifest of the kind.
	crd string
	// link has a Pod name its group.
	link func(pod *corev1.Pod, group string)
}{
	"": {link: byLabel(schedulingv1alpha1.LabelPodGroup)},
	SchedulerPlugins: {
		kind: schema.GroupVersionKind{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Kind: "PodGroup"},
		crd:  upstream.SchedulerPlugins,
		link: byLabel("scheduling.x-k8s.io/pod-group"),
	},
	Volcano: {
		kind: schema.GroupVersionKind{Group: "scheduling.volcano.sh", Version: "v1beta1", Kind: "PodGroup"},
		crd:  upstream.Volcano,
		link: func(pod *corev1.Pod, group string) {
			pod.Annotations = map[string]string{"scheduling.k8s.io/group-name": group}
		},
	},
}

// byLabel is a link by a label.
func byLabel(label string) func(*corev1.Pod, string) {
	return func(pod *corev1.Pod, group string) { pod.Labels = map[string]string{label: group} }
}

// CRD is the manifest of the API's kind.
func (d API) CRD() string { return words[d].crd }

// Resource is the resource of the API's groups.
func (d API) Resource() schema.GroupVersionResource {
	return words[d].kind.GroupVersion().WithResource(schedulingv1alpha1.PodGroupPlural)
}

// ForeignGroup is a PodGroup of work that is in the API of another project.
func (w Work) ForeignGroup(i int) *unstructured.Unstructured {
	group := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"minMember": int64(w.Size)}}}
	group.SetGroupVersionKind(words[w.API].kind)
	group.SetNamespace(Namespace)
	group.SetName(groupName(i))
	return group
}
