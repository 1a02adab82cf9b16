// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	xv1alpha1 "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
)

// Dialect is a PodGroup API: one kind of PodGroup. If a Pod names groups of several APIs, the first in the order of the
// constants counts.
type Dialect uint8

const (
	// Own is Lockstep's PodGroup, scheduling.lockstep.dev/v1alpha1. Own is always on.
	Own Dialect = iota
	// Native is Kubernetes' PodGroup, scheduling.k8s.io/v1beta1, or v1alpha2 where the API server serves no v1beta1.
	Native
	// SchedulerPlugins is the PodGroup of scheduler-plugins, scheduling.x-k8s.io/v1alpha1.
	SchedulerPlugins
	// Volcano is Volcano's PodGroup, scheduling.volcano.sh/v1beta1.
	Volcano
	// Rules is for gangs without a PodGroup: a rule says which Pods form a gang. See rules.go.
	Rules

	// dialects is the number of constants.
	dialects
)

// words are the differences between the APIs.
var words = [dialects]struct {
	kind schema.GroupVersionKind
	// labels and annotations are the keys by which a Pod names its group, the first in each list first. Annotations
	// count only if the Pod has none of the labels.
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
		// Volcano's scheduler reads only the first.
		annotations: []string{"scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name"},
	},
	// Events of a gang without a PodGroup are on one of its Pods.
	Rules: {kind: corev1.SchemeGroupVersion.WithKind("Pod")},
}

// Kind returns the kind of the API's groups, with its version.
func (d Dialect) Kind() schema.GroupVersionKind {
	return words[d].kind
}

// Resource returns the resource of the API's groups.
func (d Dialect) Resource() schema.GroupVersionResource {
	return d.Kind().GroupVersion().WithResource(schedulingv1alpha1.PodGroupPlural)
}

// Resources returns the resource of the API's groups in all versions that are read, the preferred one first.
func (d Dialect) Resources() []schema.GroupVersionResource {
	resources := []schema.GroupVersionResource{d.Resource()}
	if d == Native {
		resources = append(resources, d.Resource().GroupResource().WithVersion(nativeAlpha))
	}
	return resources
}

// Of returns a suffix for messages that is put after a group's name and says of which API the group is. It is empty for
// Lockstep's own groups, and for gangs by a rule, whose names say enough.
func (d Dialect) Of() string {
	if d == Own || d == Rules {
		return ""
	}
	return " of " + d.Kind().Group
}

// NotServed returns a message that says that the API server does not serve the API's groups, and why.
func (d Dialect) NotServed() string {
	return "the API server serves no PodGroups" + d.Of() + ": " + d.Lack()
}

// Lack returns the reason for which an API server does not serve the API's groups, as a part of a message.
func (d Dialect) Lack() string {
	if d == Native {
		return "its feature gate GenericWorkload or " + d.Kind().GroupVersion().String() + " in its --runtime-config is off"
	}
	return "the CustomResourceDefinition " + d.CRD() + " is missing"
}

// CRD returns the name of the CustomResourceDefinition of the API's groups.
func (d Dialect) CRD() string {
	return d.Resource().GroupResource().String()
}

// Key identifies a gang. Groups of several APIs with the same name are several gangs.
type Key struct {
	Dialect         Dialect
	Namespace, Name string
}

// String returns the namespace and the name, with the API if the group is not Lockstep's.
func (k Key) String() string {
	return k.Namespace + "/" + k.Name + k.Dialect.Of()
}

// Compare orders keys by namespace, by name, and then by API. The order is total.
func (k Key) Compare(other Key) int {
	return cmp.Or(
		cmp.Compare(k.Namespace, other.Namespace),
		cmp.Compare(k.Name, other.Name),
		cmp.Compare(k.Dialect, other.Dialect),
	)
}

// RoleOf returns the role of a Pod in the gang, "" if none. In PodGroups of scheduler-plugins there are no roles.
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
