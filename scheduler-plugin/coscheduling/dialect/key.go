// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"cmp"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	xv1alpha1 "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
)

// Dialect is a kind of PodGroup. If a Pod names groups of several, the first one counts, in the
// order of the constants.
type Dialect uint8

const (
	// Own is Lockstep's PodGroup, scheduling.lockstep.dev/v1alpha1. It is always on.
	Own Dialect = iota
	// Native is Kubernetes' own, scheduling.k8s.io/v1beta1, or v1alpha2 where that is served and
	// v1beta1 is not.
	Native
	// SchedulerPlugins is that of scheduler-plugins, scheduling.x-k8s.io/v1alpha1.
	SchedulerPlugins
	// Volcano is that of Volcano, scheduling.volcano.sh/v1beta1.
	Volcano
	// Rules are gangs without a PodGroup: a rule says which Pods are one. See rules.go.
	Rules

	// dialects is how many there are.
	dialects
)

// words are what the dialects differ in.
var words = [dialects]struct {
	kind schema.GroupVersionKind
	// labels and annotations are those by which a Pod names its group: the first that it has,
	// of the labels or, where there are none, of the annotations.
	labels, annotations []string
}{
	Own: {
		kind:   schedulingv1alpha1.PodGroupGroupVersionKind,
		labels: []string{schedulingv1alpha1.LabelPodGroup},
	},
	Native: {
		kind: schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1beta1", Kind: "PodGroup"},
	},
	SchedulerPlugins: {
		kind: xv1alpha1.SchemeGroupVersion.WithKind("PodGroup"),
		// Since 0.25, until 0.24, and before 0.19.
		labels: []string{xv1alpha1.PodGroupLabel, "pod-group.scheduling.sigs.k8s.io", lightGroup},
	},
	Volcano: {
		kind: schema.GroupVersionKind{Group: "scheduling.volcano.sh", Version: "v1beta1", Kind: "PodGroup"},
		// Volcano's scheduler reads the first one alone.
		annotations: []string{"scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name"},
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

// Resources are the resource of the dialect's groups in all versions that are read, the one that is
// best first.
func (d Dialect) Resources() []schema.GroupVersionResource {
	resources := []schema.GroupVersionResource{d.Resource()}
	if d == Native {
		resources = append(resources, d.Resource().GroupResource().WithVersion(nativeAlpha))
	}
	return resources
}

// Of tells a group of another dialect from one of Lockstep's, behind its name. The name of a gang by a
// rule says enough.
func (d Dialect) Of() string {
	if d == Own || d == Rules {
		return ""
	}
	return " of " + d.Kind().Group
}

// NotServed says of an API server that it does not serve the dialect's groups, and why.
func (d Dialect) NotServed() string {
	return "the API server serves no PodGroups" + d.Of() + ": " + d.Lack()
}

// Lack is what is wrong with an API server that does not serve the dialect's groups.
func (d Dialect) Lack() string {
	if d == Native {
		return "its feature gate GenericWorkload or " + d.Kind().GroupVersion().String() + " in its --runtime-config is off"
	}
	return "the CustomResourceDefinition " + d.CRD() + " is missing"
}

// CRD is the name of the CustomResourceDefinition of the dialect's groups.
func (d Dialect) CRD() string {
	return d.Resource().GroupResource().String()
}

// Set is a set of dialects, empty at first. It is safe for concurrent use.
type Set struct {
	bits atomic.Uint32
}

// Set has the set hold a dialect, or not.
func (s *Set) Set(d Dialect, in bool) {
	if in {
		s.bits.Or(1 << d)
	} else {
		s.bits.And(^(uint32(1) << d))
	}
}

// Has says whether the set holds a dialect.
func (s *Set) Has(d Dialect) bool {
	return s.bits.Load()&(1<<d) != 0
}

// Key names a gang. Groups of several dialects may have one name, and are several gangs.
type Key struct {
	Dialect         Dialect
	Namespace, Name string
}

// String is the namespace and the name, and what tells the group from one of Lockstep's.
func (k Key) String() string {
	return k.Namespace + "/" + k.Name + k.Dialect.Of()
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
	switch k.Dialect {
	case Own:
		return podgroup.RoleOf(pod)
	case Volcano:
		return cmp.Or(pod.Annotations[volcanoTask], pod.Labels[volcanoTask])
	default:
		return ""
	}
}
