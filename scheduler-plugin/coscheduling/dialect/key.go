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
)

// Kind is the kind of the dialect's groups, with its version.
func (d Dialect) Kind() schema.GroupVersionKind {
	return schedulingv1alpha1.PodGroupGroupVersionKind
}

// Key names a gang. Groups of several dialects may have one name, and are several gangs.
type Key struct {
	Dialect         Dialect
	Namespace, Name string
}

// String is the namespace and the name, and what tells the group from one of Lockstep's.
func (k Key) String() string {
	name := k.Namespace + "/" + k.Name
	if k.Dialect != Own {
		name += " (" + k.Dialect.Kind().Group + ")"
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

// RoleOf is the role of a Pod in the gang, empty if it has none.
func (k Key) RoleOf(pod *corev1.Pod) string {
	return podgroup.RoleOf(pod)
}
