// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package news

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// ReasonSeveralGroups: the Pod names several groups, and is a member of one of them.
	ReasonSeveralGroups = "SeveralPodGroups"
	// ReasonMinimaDiffer: the members of a gang without a PodGroup ask for several minima.
	ReasonMinimaDiffer = "MinimaDiffer"
	// ReasonCapped: the group counts with a lower priority than that of its PriorityClass, because its
	// Pods have a lower one.
	ReasonCapped = "PriorityClassCapped"
)

// Warning is an event that is recorded once: on a Pod, or on the group if Pod is nil.
type Warning struct {
	Pod             *corev1.Pod
	Reason, Message string
}

// Event returns the event of the warning.
func (w *Warning) Event() Event {
	return Event{Kind: corev1.EventTypeWarning, Reason: w.Reason, Message: w.Message}
}

// warned names a warning in a Record.
type warned struct {
	reason string
	pod    types.UID
}

func (w *Warning) warned() warned {
	if w.Pod == nil {
		return warned{reason: w.Reason}
	}
	return warned{w.Reason, w.Pod.UID}
}

// Warned records that the events of warnings were recorded.
func (r *Record) Warned(warnings []Warning) {
	all := maps.Clone(r.warned)
	if all == nil {
		all = make(map[warned]bool)
	}
	for _, w := range warnings {
		all[w.warned()] = true
	}
	r.warned = all
}

// Warnings returns the warnings that are still to be recorded.
func (g *Gang) Warnings() []Warning {
	if g.Group == nil {
		return nil
	}
	all := slices.Concat(g.slowWarnings(), g.severalGroups())
	for _, w := range g.Group.Warnings {
		if !g.Theirs || w.Always {
			all = append(all, Warning{Reason: w.Reason, Message: w.Message})
		}
	}
	if len(g.Minima) > 1 {
		all = append(all, Warning{Reason: ReasonMinimaDiffer, Message: fmt.Sprintf(
			"the Pods of the gang %s say that from %d to %d of them are to be placed together: the highest counts", g.Key.Name, g.Minima[0], g.Minima[len(g.Minima)-1])})
	}
	if message := g.capping(); message != "" {
		all = append(all, Warning{Reason: ReasonCapped, Message: message})
	}
	return slices.DeleteFunc(all, func(w Warning) bool { return g.Record.warned[w.warned()] })
}

// severalGroups returns a warning for each Pod that names several groups.
func (g *Gang) severalGroups() (warnings []Warning) {
	for _, p := range slices.Concat(g.Pods, g.Ordinary) {
		if len(p.Ignored) == 0 {
			continue
		}
		names := make([]string, len(p.Ignored))
		for i, key := range p.Ignored {
			names[i] = key.Name + key.Dialect.Of()
		}
		warnings = append(warnings, Warning{Pod: p.Pod, Reason: ReasonSeveralGroups, Message: fmt.Sprintf(
			"the Pod names several PodGroups: it is a member of %s%s and of no other, so %s means nothing", g.Key.Name, g.Key.Dialect.Of(), strings.Join(names, ", "))})
	}
	return warnings
}

// capping returns a message if the group's PriorityClass is worth more than its Pods have, once the Pods are there.
// Quota and admission say who may have Pods of which PriorityClass, and ask nobody about the class of a PodGroup: if
// the class alone counted, users who may create PodGroups could evict any Pod.
func (g *Gang) capping() string {
	if g.Highest == nil || g.Class == nil || *g.Class <= *g.Highest {
		return ""
	}
	if !g.complete() && !g.Assumed {
		return "" // its Pods are still to come, or the scheduler before this one has recorded it
	}
	of := "the value of its PriorityClass " + g.Group.Spec.PriorityClassName
	if g.Group.Spec.PriorityClassName == "" {
		of = "its own"
	}
	return fmt.Sprintf("the group ranks with the priority %d, the highest of its Pods, and not with %d, %s: "+
		"a group ranks no higher than its Pods do", *g.Highest, *g.Class, of)
}
