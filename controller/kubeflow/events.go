// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// explain writes into the status why the job waits: which objects can't be created or changed at present.
func (d *decision) explain() {
	for _, block := range slices.SortedFunc(slices.Values(d.Blocked), func(a, b plan.Block) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	}) {
		if d.isOfMissingClass(block) {
			continue // followPriorityClass warns of it.
		}
		reason := block.Reason
		if reason != plan.ReasonNameTaken {
			reason = "Failed" + string(block.Verb) + block.Kind
		}
		d.WarnOnce(reason, "%s %s: %s", block.Kind, block.Name, block.Message)
	}
	if d.UnknownFields != "" {
		d.WarnOnce(plan.ReasonUnknownFields, "%s", d.UnknownFields)
	}
}

// tellOfObjects reports the Pods and Services that were created or deleted since the last decision. Objects that were
// created together are reported in one event.
func (d *decision) tellOfObjects() {
	d.memory.Missing, d.memory.Going = map[objectKey]bool{}, map[objectKey]bool{}
	for _, action := range d.Plan.Actions {
		if action.Kind != KindPod && action.Kind != KindService {
			continue
		}
		switch key := (objectKey{action.Kind, action.Name}); action.Verb {
		case plan.Create:
			d.memory.Missing[key] = true
		case plan.Delete:
			d.memory.Going[key] = true
		}
	}
	for _, kind := range []string{KindPod, KindService} {
		d.tellOfKind(kind, "SuccessfulCreate"+kind, "Made", d.Memory.Missing, d.memory.Missing, true)
		d.tellOfKind(kind, "SuccessfulDelete"+kind, "Deleted", d.Memory.Going, d.memory.Going, false)
	}
}

// tellOfKind reports in one event the objects of a kind that were created or deleted as planned. tellOfKind waits until
// no more such requests are under way, so that a thousand Pods are one event.
func (d *decision) tellOfKind(kind, reason, verb string, before, now map[objectKey]bool, there bool) {
	var names []string
	waits := false
	for key := range before {
		if key.kind != kind {
			continue
		}
		switch {
		case d.exists(key) == there:
			names = append(names, key.name)
		case !now[key]:
			waits = waits || !there // It is being deleted.
			if !there {
				now[key] = true
			}
		}
	}
	for key := range now {
		waits = waits || key.kind == kind
	}
	if len(names) == 0 {
		return
	}
	if waits {
		for _, name := range names {
			now[objectKey{kind, name}] = true // It is told with the others.
		}
		return
	}
	d.Tell(false, reason, "%s %s", verb, listed(names))
}

// shownNames is how many names an event has.
const shownNames = 5

// listed are names as an event shows them. The names are sorted.
func listed(names []string) string {
	slices.Sort(names)
	shown := names[:min(shownNames, len(names))]
	told := strings.Join(shown, ", ")
	if more := len(names) - len(shown); more > 0 {
		told += fmt.Sprintf(" and %d more", more)
	}
	return told
}

func (d *decision) exists(key objectKey) bool {
	if key.kind == KindPod {
		return d.Pods[key.name] != nil
	}
	return d.Services[key.name] != nil
}
