// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build mutation

package controller

import (
	"testing"

	"github.com/lockstep-k8s/lockstep/internal/testing/mutation"
)

// TestMutations puts the faults back that the shell has had, and others: each must
// make the simulated lives fail, or the tests that it names. "make mutations" runs it.
func TestMutations(t *testing.T) {
	suite := mutation.Suite{Default: "TestShellLives", Arguments: []string{"-shell-lives", "2000"}}
	suite.Run(t, mutations())
}

// TestMutationsFit shows that each mutation still changes something. "make test" runs it.
func TestMutationsFit(t *testing.T) {
	mutation.Fit(t, mutations())
}

func mutations() map[string]mutation.Mutation {
	return map[string]mutation.Mutation{
		"an error is tried again at once": {File: "engine/causes.go", By: ".", Tests: "TestAnExhaustedQuota",
			Old: "\tp.pace.Refusals.Refused(why, p.now(), pauseOf(err), p.owners.entropy.Between)\n", New: ""},
		"the end of an error is not noticed": {File: "engine/pass.go", By: ".", Tests: "TestAnExhaustedQuota",
			Old: "\tp.wakeAt(p.nextTry(wanted))\n", New: ""},
		"each try of a role writes the status": {File: "engine/causes.go", By: ".", Tests: "TestAnExhaustedQuota",
			Old: "return a.Name != \"\" && a.Kind", New: "return a.Name == b.Name && a.Kind"},
		"the numbers of a quota make another block": {File: "engine/causes.go", By: ".", Tests: "TestAnExhaustedQuota",
			Old: "return number.ReplaceAllString(strings.ReplaceAll(message, name, \"\"), \"\")", New: "return strings.ReplaceAll(message, name, \"\")"},
		"the first refused cause has all tries": {File: "engine/causes.go", By: ".", Tests: "TestEachRefusedRole",
			Old: "case try == nil || p.lastTried(ordered[i]).Before(p.lastTried(*try)):", New: "case try == nil:"},
		"a status waits for the tries of all causes": {File: "engine/pass.go", By: ".", Tests: "TestOneHiccup",
			Old: "\t\treturn p.pace.Refusals.DueAlone(statusWrite)\n", New: "\t\treturn p.pace.Refusals.Due(statusWrite)\n"},
		"a sync that does nothing is a success": {File: "engine/pass.go", By: ".", Tests: "TestALargeFrameworkBacksOff",
			Old: "case err == nil && rested:", New: "case err == nil && (rested || true):"},
		"a list of Pods wakes nobody": {File: "engine/looks.go", By: ".", Tests: "TestPodsWithoutALabel",
			Old: "return acted || looked, nil", New: "_ = looked\n\treturn acted, nil"},
		"what somebody undoes is written again at once": {File: "engine/causes.go", By: ".", Tests: "TestAPodGroupThatSomebodyUndoes",
			Old: "p.pace.Repeats.Repeated(writeOf(r.action), p.now())", New: "_ = object"},
		"a condition of another costs the memory": {File: "engine/status.go", By: ".", Tests: "TestAConditionOfAnother",
			Old: "if !apiequality.Semantic.DeepEqual(status, others(m.stored)) {", New: "if true {"},
		"only the last write may have been stored": {File: "engine/status.go", By: ".", Tests: "TestWritesWhoseAnswers",
			Old: "newest(append(m.sent, status), maxSent)", New: "newest(append(m.sent, status), 1)"},
		"only the cache tells of a deletion": {File: "engine/status.go", By: ".", Tests: "TestADeletedFramework",
			Old: "\t\tm.deletionTimestamp = at\n", New: "\t\t_ = at\n"},
		"a mended status is not noticed": {File: "engine/handlers.go", By: ".", Tests: "TestAStatusThatIsMended",
			Old: "if mended || ownerChanged", New: "if mended && false || ownerChanged"},
		"the PodGroup of any Framework is an orphan of this one": {File: "frameworks/core.go", By: ".", Tests: "TestAPodGroupOfAnotherFramework",
			Old: "if object.GetAnnotations()[frameworkv1.KeyFrameworkUID] != string(framework.UID) {", New: "if false {"},
		"one role holds back the others": {File: "engine/causes.go", By: ".", Tests: "TestARefusedRole",
			Old: "{does: does, group: action.Group}", New: "{does: does}"},
		"a block outlives the refusal": {File: "engine/causes.go", By: ".", Tests: "TestATakenName",
			Old: "\t\tp.pace.Refusals.Granted(why)\n\t\tp.unblock(why)\n", New: "\t\tp.pace.Refusals.Granted(why)\n"},
		"an object of a stranger is adopted": {File: "engine/looks.go", By: ".", Tests: "TestATakenName",
			Old: "if !controlled.By(action.Owner, live) {\n\t\ttaken", New: "if false {\n\t\ttaken"},
		"a slow answer holds a worker": {File: "../internal/fair/workers.go", Tests: "TestASyncThatHangs",
			Old: "\t\tcase <-patience.C:\n", New: ""},
		"a namespace may have any number of syncs in flight": {File: "../internal/fair/flights.go", Tests: "InFlight",
			Old: "own >= f.limits.Namespace ||", New: ""},
		"what was parked stays parked": {File: "../internal/fair/workers.go", Tests: "TestWhatIsParked",
			Old: "\t\tw.queue.Add(next)\n", New: "\t\t_ = next\n"},
		"namespaces don't take turns": {File: "../internal/fair/queue.go", Tests: "TestNamespacesTakeTurns",
			Old: "t.order = append(t.order, namespace)", New: "t.order = append([]string{namespace}, t.order...)"},
		"a panic ends the controller": {File: "engine/work.go", By: ".", Tests: "TestAPanic",
			Old: "value := recover()", New: "value := any(nil)"},
		"a scale-down counts as a tiny Framework": {File: "frameworks/core.go", By: ".", Tests: "TestALargeScaleDown",
			Old: "count += len(role.TaskStatuses)", New: "count += min(1, len(role.TaskStatuses))"},
		"a changed label is an end": {File: "engine/handlers.go", By: ".", Tests: "TestAChangedLabel",
			Old: "certain: certain || accessor.GetDeletionTimestamp() != nil", New: "certain: true"},
		"what the caches don't show is looked at once": {File: "engine/pass.go", By: ".", Tests: "TestAChangedLabel",
			Old: "\tp.wakeAt(lookNext)\n", New: "\t_ = lookNext\n"},
		"a Pod is found by its label only": {File: "frameworks/informers.go", By: ".", Tests: "TestACrashCostsNoPod|TestShellLives",
			Old: "frameworkv1.KeyConfigMapUID, frameworkv1.KeyTaskRoleUID,", New: ""},
		"an object of another namespace counts": {File: "engine/ownerindex.go", Tests: "TestOwners",
			Old: "return namespace + \"/\" + string(owner)", New: "return string(owner)"},
		"a look that fails is never tried again": {File: "engine/pass.go", By: ".", Tests: "TestALookThatFails",
			Old: "p.keepCauses(wanted,", New: "p.keepCauses(next.Actions,"},
		"a Pod that runs is refused": {File: "engine/execute.go", By: ".", Tests: "TestAPodThatRuns",
			Old: "if r.found, r.err = presentOf(ctx, on.Client, on.namespace, r.action); r.err == nil && r.found == nil {", New: "if true {"},
		"objects that were seen before the look at the status are not noted": {File: "engine/looks.go", By: ".", Tests: "TestWhatIsCreatedAfterTheEnd",
			Old: "\t\t\tp.memory.noteSeen(action.Seen)\n", New: ""},
		"a memory that was current stays so": {File: "frameworks/snapshot.go", By: ".", Tests: "TestADeposedLeader",
			Old: "Checked:    view.Checked,", New: "Checked: func() map[types.UID]bool {\n\t\t\tall := map[types.UID]bool{}\n\t\t\tfor _, object := range c.pods.GetIndexer().List() {\n\t\t\t\tall[object.(*corev1.Pod).UID] = view.Current\n\t\t\t}\n\t\t\treturn all\n\t\t}(),"},
		"a conflict is the end of an object": {File: "engine/execute.go", Tests: "TestAConflictIsNoEnd",
			Old: "if gone := confirmGone(ctx, on, action.Name, action.UID); gone != nil {", New: "if gone := error(nil); gone != nil {"},
		"the status of another controller is overwritten": {File: "engine/status.go", By: ".", Tests: "TestConditionsOfOthersSurvive|TestNewLeader",
			Old: "case !current:\n\t\t\treturn nil, errCacheBehind", New: "case !current && false:\n\t\t\treturn nil, errCacheBehind"},
		"a new leader overwrites what its cache has not seen": {File: "engine/status.go", By: ".", Tests: "TestNewLeader",
			Old: "return apiequality.Semantic.DeepEqual(status, m.stored) ||", New: "return true ||"},
		"requests are sent again by the client": {File: "clients.go", Tests: "TestAClientSendsARequestOnce",
			Old: "\tresponse.Header.Del(retryAfter)\n", New: ""},
		"a spec is believed that makes no sense": {File: "frameworks/core.go", Tests: "Framework|Garbled",
			Old: "err = lifecycle.CheckSpec(&framework.Spec)", New: "_ = lifecycle.CheckSpec(&framework.Spec)"},
		"a Framework inherits the memory of one of its name": {File: "engine/knowledge.go", By: ".", Tests: "TestFrameworkReplaced",
			Old: "before.memory != nil && before.memory.uid == entry.owner.GetUID()", New: "before.memory != nil"},
		"the stored status is read anew in each sync": {File: "engine/knowledge.go", By: ".", Tests: "Written|Crash|Writes",
			Old: "before.memory != nil && before.memory.uid == entry.owner.GetUID()", New: "before.memory != nil && false"},
		"a controller begins with any old state": {File: "../internal/informing/informing.go", By: ".", Tests: "TestBeginsWithTheCurrentState",
			Old: "options.ResourceVersion == \"0\"", New: "false"},
		"a status counts as persisted although its write failed": {File: "engine/status.go", By: ".", Tests: "TestNothingHappens",
			Old: "\tcase err != nil:\n\t\tp.pace.Refusals.Refused(statusWrite", New: "\tcase err != nil:\n\t\tm.persisted = m.status\n\t\tp.pace.Refusals.Refused(statusWrite"},
		"deletions don't name a UID": {File: "engine/execute.go", By: ".", Tests: "TestADeletionSparesAStranger",
			Old: "Preconditions: metav1.NewUIDPreconditions(string(uid))", New: ""},
		"owners are deleted in the background": {File: "engine/execute.go", By: ".", Tests: "TestOwnersAreDeleted",
			Old: "options.PropagationPolicy = &propagation", New: "options.PropagationPolicy = new(metav1.DeletePropagationBackground)"},
		"a deletion is not confirmed": {File: "engine/execute.go", By: ".",
			Old: "return errors.New(\"it is still there\")", New: "_ = errors.New\n\t\treturn nil"},
		"what is left of a plan outlives a change of the Framework": {File: "engine/memory.go", Tests: "TestAChangeIsNoticed",
			Old: " && m.generation == owner.GetGeneration()", New: ""},
		"a Framework is synced again while requests are under way": {File: "../internal/fair/workers.go", Tests: "TestASyncThatHangs",
			Old: "\t\trunning.Go(func() {", New: "\t\tw.queue.Done(key)\n\t\trunning.Go(func() {"},
		"the history is written after the status": {File: "engine/pass.go", By: ".", Tests: "TestHistory",
			Old: "\t\tnext.Before()\n", New: "\t\tdefer func() {\n\t\t\tif p.memory.persisted == next.Status {\n\t\t\t\tnext.Before()\n\t\t\t}\n\t\t}()\n"},
		"owners that are not served hold up all others": {File: "engine/engine.go", Tests: "TestOwnersThatAreNotServed",
			Old: "if !owners.optional() && !owners.fill(ctx) {", New: "if !owners.fill(ctx) {"},
		"owners that were passed over stay so": {File: "engine/engine.go", Tests: "TestOwnersThatAreNotServed",
			Old: "\t\t\to.enqueue(owner)\n", New: "\t\t\t_ = owner\n"},
		"kinds of owners are flushed one after the other": {File: "engine/flush.go", Tests: "TestASecondKind",
			Old: "flushing.Go(func() { owners.flush(ctx) })", New: "func() { owners.flush(ctx) }()"},
		"a change of another object of the name is a repeat": {File: "engine/causes.go", Tests: "TestOnlyWhat",
			Old: " && (before.of == now.of || r.action.Verb == plan.Create)", New: ""},
		"a status that is too large holds up everything": {File: "engine/status.go", Tests: "TestAStatusThatIsTooLarge",
			Old: "case errors.Is(err, errEncoding), isTooLarge(err):", New: "case isTooLarge(err):"},
		"a decision does not see what was just written": {File: "engine/memory.go", Tests: "TestWhatWasJustWritten",
			Old: "\t\tm.ahead[refOf(r.action)] = r.remembered\n", New: "\t\t_ = refOf\n"},
		"what was written is shown for ever": {File: "engine/view.go", Tests: "TestAViewShows",
			Old: "\t\t\tdelete(m.ahead, at)\n", New: "\t\t\t_ = at\n"},
		"each refused deletion is in the history": {File: "frameworks/history.go", By: ".", Tests: "TestADeletionThatIsRefused",
			Old: "\tif d.deletionLogged {", New: "\tif d.deletionLogged && false {"},
		"the history is a format": {File: "frameworks/history.go", Tests: "TestHistory",
			Old: "klog.Info(message, \": \", string(trigger), \": ObjectSnapshot: \", string(data))", New: "klog.Infof(message + \": \" + string(trigger) + \": ObjectSnapshot: \" + string(data))"},
	}
}
