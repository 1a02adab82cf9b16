// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-k8s/lockstep/podgroup"
)

// KeyOf is the key of the gang that a Pod names. The bool is false if it names none. Whether
// the Pod is a member depends on the group, see Group.HasMember; whether this scheduler places
// it, on its schedulerName.
func KeyOf(pod *corev1.Pod) (Key, bool) {
	group, named := podgroup.GroupOf(pod)
	return Key{Dialect: Own, Namespace: group.Namespace, Name: group.Name}, named
}
