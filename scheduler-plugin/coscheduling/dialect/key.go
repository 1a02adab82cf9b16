// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
)

// Dialect is a kind of PodGroup.
type Dialect uint8

const (
	// Own is Lockstep's PodGroup, scheduling.lockstep.dev/v1alpha1. It is always on.
	Own Dialect = iota
	// SchedulerPlugins is that of scheduler-plugins, scheduling.x-k8s.io/v1alpha1.
	SchedulerPlugins
	// Rules are gangs without a PodGroup: a rule says which Pods are one. See rules.go.
	Rules

	// dialects is how many there are.
	dialects
)

// words are what the dialects differ in.
var words = [dialects]struct {
	kind   schema.GroupVersionKind
	labels []string
}{
	Own: {
		kind:   schedulingv1alpha1.PodGroupGroupVersionKind,
		labels: []string{schedulingv1alpha1.LabelPodGroup},
	},
	SchedulerPlugins: {
		kind: schema.GroupVersionKind{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Kind: "PodGroup"},
		// Since 0.25, until 0.24, and before 0.19.
		labels: []string{"scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io", lightGroup},
	},
	// What is told of the gang is told of one of its Pods.
	Rules: {kind: corev1.SchemeGroupVersion.WithKind("Pod")},
}

// Kind is the kind of the dialect's groups, with its version.
func (d Dialect) Kind() schema.GroupVersionKind {
	return words[d].kind
}

// Resource is the resource of the dialect's groups.
func (d Dialect) Resource() schema.GroupVersionResource {
	return d.Kind().GroupVersion().WithResource(schedulingv1alpha1.PodGroupPlural)
}

// CRD is the name of the CustomResourceDefinition of the dialect's groups.
func (d Dialect) CRD() string {
	return d.Resource().GroupResource().String()
}

// Labels are those by which a Pod names its group, the first that it has. Nobody changes them.
func (d Dialect) Labels() []string {
	return words[d].labels
}

// Key names a gang. Groups of several dialects may have one name, and are several gangs.
type Key struct {
	Dialect         Dialect
	Namespace, Name string
}

// String is the namespace and the name, and what tells the group from one of Lockstep's.
func (k Key) String() string {
	name := k.Namespace + "/" + k.Name
	if k.Dialect != Own && k.Dialect != Rules {
		name += " of " + k.Dialect.Kind().Group
	}
	return name
}

// Compare orders keys by namespace, by name, and then by dialect. The order is total.
func (k Key) Compare(other Key) int {
	return cmp.Or(
		cmp.Compare(k.Namespace, other.Namespace),
		cmp.Compare(k.Name, other.Name),
		cmp.Compare(k.Dialect, other.Dialect),
	)
}

// RoleOf is the role of a Pod in the gang, empty if it has none. Groups of scheduler-plugins
// know no roles.
func (k Key) RoleOf(pod *corev1.Pod) string {
	if k.Dialect == Own {
		return podgroup.RoleOf(pod)
	}
	return ""
}
