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
// theirs every few seconds.
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

// Leases are those of other schedulers, as they were seen. The zero value has seen none.
type Leases struct {
	seen map[string]renewal
}

// renewal is one of a Lease: when, by the clock of its holder, and when it was first seen, by the own one;
// zero if it was old at first sight.
type renewal struct{ at, seen time.Time }

// Sign is what the Lease of a scheduler name is a sign of, as it is now; false if nobody holds it. At first
// sight the time of its renewal is believed. Later only changes count, because clocks may differ: a Lease that
// is renewed has a holder, whatever time that writes, and one that is not has none.
func (l *Leases) Sign(name string, lease *coordinationv1.Lease, now time.Time) (Sign, bool) {
	holder, renewed := lease.Spec.HolderIdentity, lease.Spec.RenewTime
	if holder == nil || *holder == "" || renewed == nil {
		delete(l.seen, name)
		return Sign{}, false
	}
	last, known := l.seen[name]
	if !known || !last.at.Equal(renewed.Time) {
		if l.seen == nil {
			l.seen = make(map[string]renewal)
		}
		last = renewal{at: renewed.Time, seen: now}
		if !known && now.Sub(renewed.Time) > renewedLately {
			last.seen = time.Time{}
		}
		l.seen[name] = last
	}
	if now.Sub(last.seen) >= renewedLately {
		return Sign{}, false
	}
	return Sign{Name: name, Lasts: LeaseLasts,
		Other: fmt.Sprintf("%s, which holds the Lease %s/%s", *holder, lease.Namespace, lease.Name)}, true
}

// OfBinding is the sign that a member is which waited here and was bound by somebody else.
func OfBinding(pod *corev1.Pod) Sign {
	return Sign{Name: pod.Spec.SchedulerName, Namespace: pod.Namespace, Lasts: BindingLasts,
		Other: fmt.Sprintf("somebody who has bound the Pod %s/%s to %s", pod.Namespace, pod.Name, pod.Spec.NodeName)}
}
