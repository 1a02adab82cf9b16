// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package news

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// ReasonMinimaDiffer: the members of a gang without a PodGroup ask for several minima.
	ReasonMinimaDiffer = "MinimaDiffer"
	// ReasonCapped: the group's priority is lower than that of its PriorityClass, because its Pods have a lower
	// priority.
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

// capping returns a message if the group's PriorityClass has a higher value than the priority of its Pods; the lower
// one counts. Quota and admission control the PriorityClasses of Pods, but not of PodGroups. If the group's class alone
// counted, a user with the right to create PodGroups could evict any Pod.
func (g *Gang) capping() string {
	if g.Highest == nil || g.Class == nil || *g.Class <= *g.Highest {
		return ""
	}
	if !g.complete() && !g.Assumed {
		return "" // its Pods are still to come, or an earlier scheduler has recorded it
	}
	of := "the value of its PriorityClass " + g.Group.Spec.PriorityClassName
	if g.Group.Spec.PriorityClassName == "" {
		of = "its own"
	}
	return fmt.Sprintf("the group ranks with the priority %d, the highest of its Pods, and not with %d, %s: "+
		"a group ranks no higher than its Pods do", *g.Highest, *g.Class, of)
}

// Between the placement of a member and its binding, plugins may wait, for instance for a volume that is being
// provisioned. Other members may already run then.

// claimPatience is how long a member that needs volumes or devices may wait to be bound before an event says so.
// bindingPatience is that time for any other member. It is longer, because of many members placed at once the last are
// bound late.
const (
	claimPatience   = 5 * time.Second
	bindingPatience = time.Minute
)

// BindingPatience returns how long a member with a place may wait to be bound before an event says so.
func BindingPatience(pod *corev1.Pod) time.Duration {
	if len(needs(pod)) > 0 {
		return claimPatience
	}
	return bindingPatience
}

// needs returns the claims of a Pod, by kind and name.
func needs(pod *corev1.Pod) []string {
	var needs []string
	for _, v := range pod.Spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			needs = append(needs, "PersistentVolumeClaim "+v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			needs = append(needs, "PersistentVolumeClaim "+pod.Name+"-"+v.Name)
		}
	}
	for _, claim := range pod.Spec.ResourceClaims {
		needs = append(needs, "resource claim "+claim.Name)
	}
	return needs
}

// slowBinding returns a message that says what a gang with a place waits for, "" if no member takes long to be bound.
func (g *Gang) slowBinding() string {
	if len(g.Slow) == 0 {
		return ""
	}
	first := g.Slow[0]
	message := fmt.Sprintf("%d of at least %d members are bound; %s", g.Bound.Total, g.Group.Spec.Minimum.Members, first.message())
	if others := len(g.Slow) - 1; others > 0 {
		message += fmt.Sprintf("; %d more are not bound either", others)
	}
	return message
}

// message returns since when and for what a member waits.
func (m *SlowMember) message() string {
	message := fmt.Sprintf("%s has a place on %s since %s and is not bound to it yet", m.Pod.Name, m.Node, m.Since.UTC().Format(time.RFC3339))
	if needs := needs(m.Pod); len(needs) > 0 {
		message += "; it needs " + strings.Join(needs[:min(len(needs), maxNeedsTold)], ", ")
	}
	return message
}

// maxNeedsTold is how many claims a message names.
const maxNeedsTold = 3

// maxSlowTold is the largest number of Pods of a gang that ever get an event because they are not bound yet. Without
// the limit, if a thousand members were bound one after the other, each would be among the first unbound ones at some
// time and get an event.
const maxSlowTold = 10

// slowWarnings returns a warning for each member that takes long to be bound.
func (g *Gang) slowWarnings() (warnings []Warning) {
	left := maxSlowTold
	for w := range g.Record.warned {
		if w.reason == ReasonSlowBinding {
			left--
		}
	}
	for i := range g.Slow {
		w := Warning{Pod: g.Slow[i].Pod, Reason: ReasonSlowBinding, Message: g.Slow[i].message()}
		if left > 0 && !g.Record.warned[w.warned()] {
			left--
			warnings = append(warnings, w)
		}
	}
	return warnings
}

// SortSlow orders members by name.
func SortSlow(members []SlowMember) {
	slices.SortFunc(members, func(a, b SlowMember) int { return strings.Compare(a.Pod.Name, b.Pod.Name) })
}
