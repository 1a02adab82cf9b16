// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// A Command is executed exactly once. First the Command is claimed: an annotation on the Command names the version of
// the Job for which the Command counts. By that write it is certain that the Command still exists. Then the phase
// that the Command asks for is written, with the Command's UID in the message and with a new version of the Job. Then
// the Command is deleted, and before the Command is gone the status is not written again. So a Command that a cache
// shows after its deletion has no claim for the present version, and gets none any more.

// commandPrefix begins the message of a state that a Command has asked for.
const commandPrefix = "Command "

// commandOnRecord returns the UID of the Command that has asked for a state.
func commandOnRecord(state batchv1alpha1.JobState) types.UID {
	rest, found := strings.CutPrefix(state.Message, commandPrefix)
	if !found {
		return ""
	}
	uid, _, _ := strings.Cut(rest, ": ")
	return types.UID(uid)
}

// finishCommand deletes the Command that was executed last. Until that Command is gone, the status is not written.
func (d *decision) finishCommand() (goOn bool) {
	uid := commandOnRecord(d.next.State)
	for _, c := range d.Commands {
		if c.UID != uid || c.DeletionTimestamp != nil || d.Gone[uid] {
			continue
		}
		if !d.Deleted[uid] {
			d.Act(jobpods.Deletion(KindCommand, c))
		}
		d.hold = true
		return false
	}
	return true
}

// maxDismissals is how many Commands that do nothing are deleted in a round.
const maxDismissals = 100

// followCommands executes the first Command that has an effect in the present phase, and deletes earlier Commands,
// which have no effect. The next Command is executed when this one is gone.
func (d *decision) followCommands() (goOn bool) {
	waiting := d.waitingCommands()
	for _, c := range waiting[:min(len(waiting), maxDismissals)] {
		switch {
		case c.Target.UID != d.Job.UID:
			d.dismiss(c, true, fmt.Sprintf("Command %s is for another Job of this name", c.Name))
		case !isCommand(c.Action):
			d.dismiss(c, true, fmt.Sprintf("Command %s: there is no action %q for a Job", c.Name, c.Action))
		case reactionTo(d.next.State.Phase, c.Action) == ignores:
			d.dismiss(c, false, fmt.Sprintf("%s does nothing in phase %s (Command %s)", c.Action, d.next.State.Phase, c.Name))
		case !d.isClaimed(c):
			d.claim(c)
			return true
		default:
			d.executeCommand(c)
			return !d.pause
		}
	}
	return true
}

// waitingCommands returns the Job's Commands that are not being deleted, the oldest first. A Command whose execution
// has begun (KeyClaim) comes before all others: that write has changed its resource version, by which it would look
// newer.
func (d *decision) waitingCommands() []*busv1alpha1.Command {
	var waiting []*busv1alpha1.Command
	for _, c := range d.Commands {
		if c.DeletionTimestamp == nil && !d.Deleted[c.UID] && !d.Gone[c.UID] && TargetOf(c) == d.Job.Name {
			waiting = append(waiting, c)
		}
	}
	rank := func(c *busv1alpha1.Command) int {
		if d.isClaimed(c) {
			return 0
		}
		return 1
	}
	slices.SortFunc(waiting, func(a, b *busv1alpha1.Command) int {
		return cmp.Or(
			cmp.Compare(rank(a), rank(b)),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(sequenceOf(a), sequenceOf(b)),
			cmp.Compare(a.Name, b.Name),
		)
	})
	return waiting
}

// sequenceOf returns a number by which Commands of the same second are ordered: the resource version, or 0 if that is
// no number.
func sequenceOf(c *busv1alpha1.Command) uint64 {
	sequence, err := strconv.ParseUint(c.ResourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return sequence
}

// isClaimed reports whether a Command was claimed in the present version of the Job.
func (d *decision) isClaimed(c *busv1alpha1.Command) bool {
	return c.Annotations[KeyClaim] == strconv.Itoa(int(d.next.Version))
}

// TargetOf returns the name of the Job that a Command is for; "" if the Command is for another kind of object.
func TargetOf(c *busv1alpha1.Command) string {
	if c.Target == nil || c.Target.Kind != batchv1alpha1.JobKind || c.Target.APIVersion != batchv1alpha1.SchemeGroupVersion.String() {
		return ""
	}
	return c.Target.Name
}

// isCommand reports whether a Command may request an action. An action on a part of a Job may not be requested, since a
// Command can't name the part.
func isCommand(action busv1alpha1.Action) bool {
	switch action {
	case busv1alpha1.ActionAbortJob, busv1alpha1.ActionRestartJob, busv1alpha1.ActionTerminateJob,
		busv1alpha1.ActionCompleteJob, busv1alpha1.ActionResumeJob:
		return true
	}
	return false
}

// dismiss deletes a Command that has no effect. It first makes sure that the status, on which this depends, is current.
func (d *decision) dismiss(c *busv1alpha1.Command, warning bool, message string) {
	d.ActIfChecked(jobpods.Deletion(KindCommand, c))
	if d.Checked[c.UID] {
		d.Once(warning, ReasonCommandIssued, "%s", message)
	}
}

func (d *decision) claim(c *busv1alpha1.Command) {
	value := strconv.Itoa(int(d.next.Version))
	d.Act(plan.Action{
		Verb: plan.Update, Kind: KindCommand, Name: c.Name, UID: c.UID,
		Patch: jobpods.Annotate(c, KeyClaim, value), Content: value, Detail: "claim=" + value,
	})
}

func (d *decision) executeCommand(c *busv1alpha1.Command) {
	why := fmt.Sprintf("Command %s", c.Name)
	if c.Message != "" {
		why += ": " + c.Message
	}
	d.execute(c.Action, wholeJob, cmp.Or(c.Reason, ReasonCommandIssued), why)
	d.next.State.Message = plan.CutMessage(fmt.Sprintf("%s%s: %s", commandPrefix, c.UID, d.next.State.Message))
	d.Tell(false, ReasonCommandIssued, "%s", c.Action)
	d.Tell(false, ReasonExecuteAction, "%s: %s", c.Action, why)
}
