// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package rivals

import (
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// renewedLately is how old the renewal of a Lease is at most whose holder is alive. Schedulers renew
// theirs every few seconds; the rest is for clocks that differ.
const renewedLately = time.Minute

// LeaseOf is the Lease that the leader of other schedulers of this name holds, where they come with
// their own defaults: Volcano's is called like its scheduler name. scheduler-plugins' chart
// elects no leader, so there is none to find.
func LeaseOf(name string) types.NamespacedName {
	if name == corev1.DefaultSchedulerName {
		return types.NamespacedName{Namespace: metav1.NamespaceSystem, Name: "kube-scheduler"}
	}
	return types.NamespacedName{Namespace: "volcano-system", Name: name}
}

// OfLease is the sign that the Lease of a scheduler name is, false if nobody holds it.
func OfLease(name string, lease *coordinationv1.Lease, now time.Time) (Sign, bool) {
	holder, renewed := lease.Spec.HolderIdentity, lease.Spec.RenewTime
	if holder == nil || *holder == "" || renewed == nil || now.Sub(renewed.Time) > renewedLately {
		return Sign{}, false
	}
	return Sign{Name: name, Lasts: LeaseLasts,
		Other: fmt.Sprintf("%s, which holds the Lease %s/%s", *holder, lease.Namespace, lease.Name)}, true
}

// OfBinding is the sign that a member is which waited here and was bound by somebody else.
func OfBinding(pod *corev1.Pod) Sign {
	return Sign{Name: pod.Spec.SchedulerName, Lasts: BindingLasts,
		Other: fmt.Sprintf("somebody who has bound the Pod %s/%s to %s", pod.Namespace, pod.Name, pod.Spec.NodeName)}
}
