// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/text"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/answers"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
)

// maxMessage limits texts from other sources, in bytes.
const maxMessage = 512

// Why returns why a gang is not running.
func Why(s *Snapshot, key dialect.Key) answers.Why {
	answer := answers.Why{Namespace: key.Namespace, Name: key.Name}
	all := gangs(s)
	g := all[key]
	if g == nil {
		answer.Reason, answer.Message = answers.ReasonNotFound, fmt.Sprintf("there is no PodGroup %s", key)
		answer.Next = "look at the name and the namespace; a group is made together with the Pods of an attempt"
		answer.Unknown = s.Lacks
		return answer
	}
	w := &reasoning{snapshot: s, all: all, gang: g, answer: &answer}
	for _, seek := range []func() bool{w.unread, w.ended, w.halted, w.containers, w.placed, w.heldBack, w.incomplete, w.room} {
		if seek() {
			break
		}
	}
	w.tasks()
	answer.Unknown = append(answer.Unknown, s.Lacks...)
	if answer.Place != nil { // reservations do not matter to a gang that waits for no place
		answer.Unknown = append(answer.Unknown, reservationsUnknown)
	}
	return answer
}

// reasoning is an answer in progress. Each possible reason is a method, which returns true if that reason is the
// answer.
type reasoning struct {
	snapshot *Snapshot
	all      map[dialect.Key]*gang
	gang     *gang
	answer   *answers.Why
	// unchecked means that members have conditions that only the scheduler can check.
	unchecked bool
}

// say gives the answer.
func (w *reasoning) say(reason answers.Reason, next, format string, args ...any) bool {
	w.answer.Reason, w.answer.Next, w.answer.Message = reason, next, fmt.Sprintf(format, args...)
	return true
}

// unread: the members are unknown.
func (w *reasoning) unread() bool {
	if !w.snapshot.NoPods || w.halted() {
		return w.snapshot.NoPods
	}
	if _, said := w.said(); said != "" {
		return w.quote()
	}
	return w.say(answers.ReasonUnknown, "ask a user with the right to list the Pods of the namespace", "you may not read the gang's Pods: whether it waits is not known")
}

// ended: all members have ended.
func (w *reasoning) ended() bool {
	if n := len(w.gang.all); n > 0 && w.gang.ended == n {
		return w.say(answers.ReasonEnded, "", "all %d members have ended", n)
	}
	return false
}

// halted: no member is placed, whatever room there is.
func (w *reasoning) halted() bool {
	if !w.gang.group.IsHalted() {
		return false
	}
	return w.say(answers.ReasonHalted, "change the PodGroup, or recreate it", "%s", w.gang.group.Spec.Halt.Message)
}

// containers: the gang has its place, and something else keeps tasks from starting.
func (w *reasoning) containers() bool {
	if !w.gang.isPlaced() {
		return false
	}
	counts, first := make(map[string]int), make(map[string]answers.Task)
	var reasons []string
	for _, pod := range w.gang.all {
		task, waits := waitsFor(pod)
		if !waits {
			continue
		}
		if counts[task.Reason]++; counts[task.Reason] == 1 {
			first[task.Reason], reasons = task, append(reasons, task.Reason)
		}
	}
	if len(reasons) == 0 {
		return false
	}
	// Containers that are being created are normal for a while.
	rank := func(reason string) int {
		if reason == "ContainerCreating" {
			return 0
		}
		return counts[reason]
	}
	slices.SortStableFunc(reasons, func(a, b string) int { return rank(b) - rank(a) })
	top, n := first[reasons[0]], counts[reasons[0]]
	for _, reason := range reasons {
		w.answer.Evidence = append(w.answer.Evidence, fmt.Sprintf("%s: %s", text.Counted(counts[reason], "task"), reason))
	}
	return w.say(answers.ReasonContainers, hints[top.Reason], "%s", strings.TrimSuffix(fmt.Sprintf(
		"all that is needed has a node, and %s %s: %s, such as %s: %s", text.Counted(n, "task"), text.Form(n, "waits", "wait"), top.Reason, top.Pod, top.Message), ": "))
}

// Hint returns what to do next if a container waits for the given reason, "" if nothing is known.
func Hint(reason string) string { return hints[reason] }

var hints = map[string]string{
	"ImagePullBackOff":           "look at the name of the image and at imagePullSecrets",
	"ErrImagePull":               "look at the name of the image and at imagePullSecrets",
	"ErrImageNeverPull":          "look at the name of the image and at imagePullPolicy",
	"InvalidImageName":           "correct the name of the image",
	"CreateContainerConfigError": "create the ConfigMap or Secret that the container names",
	"ContainerCreating":          "look at the events of the Pod: a volume may be missing",
	"PodInitializing":            "look at the logs of the init containers",
	"CrashLoopBackOff":           "look at the logs of the container",
}

// waitsFor returns why a Pod that has a node does not run. It returns false if the Pod runs.
func waitsFor(pod *corev1.Pod) (answers.Task, bool) {
	if pod.Spec.NodeName == "" || pod.Status.Phase != corev1.PodPending && pod.Status.Phase != corev1.PodRunning {
		return answers.Task{}, false
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if waiting := statuses[i].State.Waiting; waiting != nil && waiting.Reason != "PodInitializing" {
				return answers.Task{Pod: pod.Name, Reason: clean(waiting.Reason), Message: clean(waiting.Message)}, true
			}
		}
	}
	return answers.Task{}, false
}

// placed: the gang has its minimum.
func (w *reasoning) placed() bool {
	if !w.gang.isPlaced() {
		return false
	}
	if n := len(w.gang.waiting); n > 0 {
		w.place()
		w.answer.Evidence = append(w.answer.Evidence, fmt.Sprintf("%s %s above the minimum: %s",
			text.Counted(n, "member"), text.Form(n, "waits", "wait"), w.answer.Place.Message))
		if said := saidOf(w.gang.waiting[0]); said != "" {
			w.answer.Evidence = append(w.answer.Evidence, "the scheduler said last: "+said)
		}
	}
	return w.say(answers.ReasonPlaced, "", "the gang is placed: %d members have a node or have succeeded, and %d are needed",
		w.gang.placed.Total, w.gang.group.Spec.Minimum.Members)
}

// saidOf returns what the scheduler has said of a waiting Pod, "" for nothing.
func saidOf(pod *corev1.Pod) string {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return clean(c.Message)
		}
	}
	return ""
}

// said returns the reason and message with which the scheduler last said why the gang is not placed.
func (w *reasoning) said() (reason, message string) { return said(w.snapshot, w.gang) }

// heldBack: the gang's PodGroup API creates Pods only once there is room for them.
func (w *reasoning) heldBack() bool {
	status := w.gang.group.Status
	if w.gang.isComplete() || status == nil || status.Phase != dialect.PhasePending || w.gang.group.Key.Dialect != dialect.Volcano {
		return false
	}
	reason, message := w.said()
	if reason != schedulingv1alpha1.ReasonNotEnoughResources {
		return false
	}
	return w.say(answers.ReasonNotEnoughResources, nextStep(nil), "its Pods are to be created when there is room for them; the scheduler has said: %s", message)
}

// incomplete: there are fewer members than the minimum.
func (w *reasoning) incomplete() bool {
	if w.gang.isComplete() {
		return false
	}
	next := "create more Pods, or lower the minimum: a quota or an admission webhook may keep Pods from being created"
	if len(w.gang.ending) > 0 {
		next = "wait until these Pods have ended: their controller may then create new ones"
	}
	if len(w.gang.gated) > 0 {
		next = "wait until the scheduling gates are removed, for instance by Kueue"
	}
	if len(w.gang.unserved) > 0 {
		next = "have that scheduler place the gang, or recreate the Pods with a schedulerName that is served here: theirs is " +
			clean(w.gang.unserved[0].Spec.SchedulerName)
	}
	return w.say(answers.ReasonNotEnoughTasks, next, "%s", incomplete(w.gang))
}

// room: the gang is in the queue, and has room or not.
func (w *reasoning) room() bool {
	ahead := slices.IndexFunc(inOrder(w.all), func(g *gang) bool { return g == w.gang })
	w.answer.Ahead = &ahead
	if ahead > 0 {
		w.answer.Evidence = append(w.answer.Evidence, fmt.Sprintf("%s %s in the queue ahead of it", text.Counted(ahead, "gang"), text.Form(ahead, "is", "are")))
	}
	w.expectedStart()
	if _, said := w.said(); said != "" {
		w.answer.Evidence = append(w.answer.Evidence, "the scheduler said last: "+said)
	}
	w.place()
	if w.snapshot.NoNodes || w.snapshot.SomePods {
		return w.quote()
	}
	return w.judge()
}

// expectedStart adds to the answer when the gang is expected to start, and which work the gang waits for.
func (w *reasoning) expectedStart() {
	start := tellStart(w.snapshot, w.gang, expectedStarts(w.snapshot, w.all, nil), func(dialect.Key) bool { return true })
	if w.answer.ExpectedStart = start; start == nil {
		return
	}
	w.answer.Evidence = append(w.answer.Evidence, startInWords(start, w.snapshot.Now))
	if awaited := awaitedInWords(start); awaited != "" {
		w.answer.Evidence = append(w.answer.Evidence, "waits for the end of "+awaited)
	}
}

// quote repeats the gang's condition, because too little is known to judge.
func (w *reasoning) quote() bool {
	if reason, said := w.said(); said != "" {
		return w.say(cmp.Or(answers.Reason(reason), answers.ReasonNotEnoughResources), nextStep(nil), "the scheduler has said: %s", said)
	}
	return w.say(answers.ReasonUnknown, "ask a user with the right to list nodes and the Pods of all namespaces", "the gang waits, and you may not read enough to tell why")
}

// place adds where the waiting members would go.
func (w *reasoning) place() {
	found := planned(w.snapshot, w.all, w.gang)
	w.answer.Unknown = append(w.answer.Unknown, found.Unknown...)
	w.unchecked, found.Unknown = len(found.Unknown) > 0, nil
	w.answer.Place = &found
}

// judge writes into the answer why a gang in the queue is not placed, using the simulation in Place. It always returns
// true.
func (w *reasoning) judge() bool {
	found := w.answer.Place
	o := found.Obstacle
	if o != nil {
		for _, reason := range o.Reasons {
			w.answer.Evidence = append(w.answer.Evidence, fmt.Sprintf("%s: %s", text.Counted(reason.Nodes, "node"), reason.Reason))
		}
	}
	reason, said := w.said()
	switch name := w.gang.schedulerName(); {
	case found.Fits && reason == schedulingv1alpha1.ReasonNotEnoughTasks && name != "" && strings.Contains(said, name):
		return w.say(answers.ReasonNotEnoughTasks, "is "+clean(name)+" the schedulerName that is meant? No lockstep-scheduler serves it: correct it in the Pods' template", "the scheduler has said: %s", said)
	case reason == schedulingv1alpha1.ReasonBinding:
		return w.say(answers.Reason(reason), "look at the events of the Pods that are not bound, and at the volumes and devices that they need", "the gang has its place, and the scheduler has said: %s", said)
	case found.Fits && strings.Contains(said, queue.ReservedFor):
		return w.say(answers.ReasonNotEnoughResources, "wait, or raise the gang's priority", "a gang ahead needs the room; the scheduler says: %s", said)
	case found.Fits && w.unchecked && said != "":
		return w.say(answers.ReasonNotEnoughResources, nextStep(nil), "there would be room by what is checked here, and the scheduler has said: %s", said)
	case found.Fits:
		return w.say(answers.ReasonNext, "if this lasts, look whether lockstep-scheduler runs and serves the schedulerName "+clean(name),
			"there is room: %s. The gang is about to be planned", found.Message)
	case found.FitsAfterPreemption:
		return w.say(answers.ReasonPreempting, "", "%s", found.Message)
	}
	return w.say(answers.ReasonNotEnoughResources, nextStep(found), "%s", found.Message)
}

// nextStep returns what helps a gang without room, given the obstacle that the simulation found; "" if nothing is
// known.
func nextStep(found *answers.Simulation) string {
	if found == nil || found.Obstacle == nil {
		return "ask for less or add nodes, unless enough room is free when other work ends"
	}
	switch o := found.Obstacle; {
	case o.MissingLabel != "":
		return "label the nodes with " + o.MissingLabel + ", or change the topology of the gang"
	case o.Eligible == 0 && o.Nodes > 0:
		return "change the Pods' node selector or tolerations, or add nodes that suit them"
	case o.Resource != "" && o.Offering == 0:
		return fmt.Sprintf("add nodes with %s, or ask for another resource", o.Resource)
	case o.TooLarge != nil && o.TooLarge.Resource != "":
		return fmt.Sprintf("ask for less, or add nodes with at least %s %s", o.TooLarge.Requested, o.TooLarge.Resource)
	case o.TooLarge != nil:
		return "ask for less, or add larger nodes"
	case isFutile(found):
		return "add nodes, or ask for less: the nodes that may hold the gang are too few even when nothing else runs"
	default:
		return "wait until other work ends, add nodes, or ask for less"
	}
}

// tasks adds what is known of single tasks.
func (w *reasoning) tasks() {
	for _, pod := range w.gang.all {
		task, waits := waitsFor(pod)
		if pod.DeletionTimestamp != nil && !hasEnded(pod) {
			task, waits = answers.Task{Pod: pod.Name, Reason: "Terminating", Message: "the Pod is ending"}, true
			if pod.Spec.NodeName != "" {
				task.Message += " on node " + pod.Spec.NodeName
			}
		}
		if !waits && pod.Spec.NodeName == "" && len(pod.Spec.SchedulingGates) > 0 {
			task, waits = answers.Task{Pod: pod.Name, Reason: corev1.PodReasonSchedulingGated, Message: "the Pod waits for its scheduling gates"}, true
		}
		switch {
		case !waits:
		case len(w.answer.Tasks) == answers.MaxTasks:
			w.answer.MoreTasks++
		default:
			task.Role = w.gang.group.Key.RoleOf(pod)
			w.answer.Tasks = append(w.answer.Tasks, task)
		}
	}
}

// clean returns a text from another source in one line, without control characters.
func clean(from string) string {
	return text.Cut(strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, from), maxMessage)
}
