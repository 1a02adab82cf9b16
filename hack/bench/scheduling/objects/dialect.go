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

// Dialect is a project with a PodGroup of its own. Empty is Lockstep.
type Dialect string

// The dialects of other projects.
const (
	SchedulerPlugins Dialect = "scheduler-plugins"
	Volcano          Dialect = "Volcano"
)

// Foreign are the dialects of other projects that are measured, each of which is one row.
var Foreign = []Dialect{SchedulerPlugins, Volcano}

// words are what the dialects differ in.
var words = map[Dialect]struct {
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

// CRD is the manifest of the dialect's kind.
func (d Dialect) CRD() string { return words[d].crd }

// Resource is the resource of the dialect's groups.
func (d Dialect) Resource() schema.GroupVersionResource {
	return words[d].kind.GroupVersion().WithResource(schedulingv1alpha1.PodGroupPlural)
}

// ForeignGroup is a PodGroup of work that is in the dialect of another project.
func (w Work) ForeignGroup(i int) *unstructured.Unstructured {
	group := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"minMember": int64(w.Size)}}}
	group.SetGroupVersionKind(words[w.Dialect].kind)
	group.SetNamespace(Namespace)
	group.SetName(groupName(i))
	return group
}
