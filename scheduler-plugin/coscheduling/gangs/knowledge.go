// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// Known is what is known of a gang that has a group, for whoever asks about it.
type Known struct {
	Group *dialect.Group
	// Members are those that exist. One that is assumed on a node names it, and one that has just ended, nobody knows
	// how, has succeeded. Nobody changes them.
	Members []*corev1.Pod
	// Refusal is what the gang was told last, empty if nothing, and BackOff when its back-off ends.
	Refusal string
	BackOff time.Time
}

// All are all gangs that have a group, in no order. It is false as long as not all is known that
// existed before, or another scheduler leads. It copies pointers alone, so that turns need not wait
// long for it.
func (t *Gangs) All() ([]Known, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if !t.synced {
		return nil, false
	}
	all := make([]Known, 0, len(t.gangs))
	for key, g := range t.gangs {
		if g.group == nil {
			continue
		}
		known := Known{Group: g.group, Members: make([]*corev1.Pod, 0, len(g.members)), BackOff: t.line.BackOff(key)}
		if told, refused := t.line.Told(key); refused {
			known.Refusal = told.Message
		}
		for _, m := range g.members {
			switch {
			case m.missing && m.node() == "":
			case m.missing:
				// It counts as placed until it is known how it has ended, and takes no room.
				pod := *m.pod
				pod.Spec.NodeName, pod.Status.Phase = m.node(), corev1.PodSucceeded
				known.Members = append(known.Members, &pod)
			case m.assumed != "" && m.pod.Spec.NodeName == "":
				pod := *m.pod
				pod.Spec.NodeName = m.assumed
				known.Members = append(known.Members, &pod)
			default:
				known.Members = append(known.Members, m.pod)
			}
		}
		all = append(all, known)
	}
	return all, true
}
