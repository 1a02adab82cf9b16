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

func mutations() map[string]mutation.Mutation {
	return map[string]mutation.Mutation{
		"an error is tried again at once": {File: "causes.go", Tests: "TestAnExhaustedQuota",
			Old: "\tp.pace.Refusals.Refused(why, p.now(), pauseOf(err), p.controller.entropy.Between)\n", New: ""},
		"the end of an error is not noticed": {File: "pass.go", Tests: "TestAnExhaustedQuota",
			Old: "\tp.wakeAt(p.nextTry(wanted))\n", New: ""},
		"each try of a role writes the status": {File: "causes.go", Tests: "TestAnExhaustedQuota",
			Old: "return nameA != \"\" && a.Role", New: "return nameA == nameB && a.Role"},
		"the numbers of a quota make another block": {File: "causes.go", Tests: "TestAnExhaustedQuota",
			Old: "return number.ReplaceAllString(strings.ReplaceAll(message, name, \"\"), \"\")", New: "return strings.ReplaceAll(message, name, \"\")"},
		"the first refused cause has all tries": {File: "causes.go", Tests: "TestEachRefusedRole",
			Old: "case try == nil || p.lastTried(ordered[i]).Before(p.lastTried(*try)):", New: "case try == nil:"},
		"a status waits for the tries of all causes": {File: "pass.go", Tests: "TestOneHiccup",
			Old: "\t\treturn p.pace.Refusals.DueAlone(statusWrite)\n", New: "\t\treturn p.pace.Refusals.Due(statusWrite)\n"},
		"a sync that does nothing is a success": {File: "pass.go", Tests: "TestALargeFrameworkBacksOff",
			Old: "case err == nil && rested:", New: "case err == nil && (rested || true):"},
		"a list of Pods wakes nobody": {File: "looks.go", Tests: "TestPodsWithoutALabel",
			Old: "return acted || looked, nil", New: "_ = looked\n\treturn acted, nil"},
		"what somebody undoes is written again at once": {File: "causes.go", Tests: "TestAPodGroupThatSomebodyUndoes",
			Old: "p.pace.Repeats.Repeated(writeOf(r.action), p.now())", New: "_ = before"},
		"a condition of another costs the memory": {File: "status.go", Tests: "TestAConditionOfAnother",
			Old: "if !apiequality.Semantic.DeepEqual(status, others(m.stored)) {", New: "if true {"},
		"only the last write may have been stored": {File: "status.go", Tests: "TestWritesWhoseAnswers",
			Old: "m.sent = m.sent[max(0, len(m.sent)-maxSent):]", New: "m.sent = m.sent[len(m.sent)-1:]"},
		"only the cache tells of a deletion": {File: "status.go", Tests: "TestADeletedFramework",
			Old: "\t\tm.deletionTimestamp = at\n", New: "\t\t_ = at\n"},
		"a mended status is not noticed": {File: "handlers.go", Tests: "TestAStatusThatIsMended",
			Old: "if mended || frameworkChanged", New: "if mended && false || frameworkChanged"},
		"the PodGroup of any Framework is an orphan of this one": {File: "execute.go", Tests: "TestAPodGroupOfAnotherFramework",
			Old: " ||\n\t\ttaken.object.GetAnnotations()[frameworkv1.KeyFrameworkUID] != string(e.entry.UID) {", New: " {"},
		"one role holds back the others": {File: "causes.go", Tests: "TestARefusedRole",
			Old: "\t\tshared.role = action.Role\n", New: ""},
		"a block outlives the refusal": {File: "causes.go", Tests: "TestATakenName",
			Old: "\t\tp.pace.Refusals.Granted(why)\n\t\tp.unblock(why)\n", New: "\t\tp.pace.Refusals.Granted(why)\n"},
		"an object of a stranger is adopted": {File: "looks.go", Tests: "TestATakenName",
			Old: "if !controlled.By(action.Owner, live) {\n\t\ttaken", New: "if false {\n\t\ttaken"},
		"a slow answer holds a worker": {File: "../internal/fair/workers.go", Tests: "TestASyncThatHangs",
			Old: "\t\tcase <-patience.C:\n", New: ""},
		"a namespace may have any number of syncs in flight": {File: "../internal/fair/flights.go", Tests: "InFlight",
			Old: "own >= f.limits.Namespace ||", New: ""},
		"what was parked stays parked": {File: "../internal/fair/workers.go", Tests: "TestWhatIsParked",
			Old: "\t\tw.queue.Add(next)\n", New: "\t\t_ = next\n"},
		"namespaces don't take turns": {File: "../internal/fair/queue.go", Tests: "TestNamespacesTakeTurns",
			Old: "t.order = append(t.order, namespace)", New: "t.order = append([]string{namespace}, t.order...)"},
		"a panic ends the controller": {File: "work.go", Tests: "TestAPanic",
			Old: "value := recover()", New: "value := any(nil)"},
		"a scale-down counts as a tiny Framework": {File: "memory.go", Tests: "TestALargeScaleDown",
			Old: "count += len(role.TaskStatuses)", New: "count += min(1, len(role.TaskStatuses))"},
		"a changed label is an end": {File: "handlers.go", Tests: "TestAChangedLabel",
			Old: "certain: certain || accessor.GetDeletionTimestamp() != nil", New: "certain: true"},
		"what the caches don't show is looked at once": {File: "pass.go", Tests: "TestAChangedLabel",
			Old: "\tp.wakeAt(lookNext)\n", New: "\t_ = lookNext\n"},
		"a Pod is found by its label only": {File: "informers.go", Tests: "TestACrashCostsNoPod|TestShellLives",
			Old: "frameworkv1.KeyConfigMapUID, frameworkv1.KeyTaskRoleUID,", New: ""},
		"an object of another namespace counts": {File: "informers.go", Tests: "TestOwners",
			Old: "return namespace + \"/\" + string(owner)", New: "return string(owner)"},
		"a look that fails is never tried again": {File: "pass.go", Tests: "TestALookThatFails",
			Old: "p.keepCauses(wanted,", New: "p.keepCauses(plan.Actions,"},
		"a Pod that runs is refused": {File: "execute.go", Tests: "TestAPodThatRuns",
			Old: "if r.pod, r.err = presentOf(ctx, e.pods(), r.action); r.err == nil && r.pod == nil {", New: "if true {"},
		"objects that were seen before the look at the status are not noted": {File: "looks.go", Tests: "TestWhatIsCreatedAfterTheEnd",
			Old: "\t\t\tp.memory.noteSeen(action.Seen)\n", New: ""},
		"a memory that was current stays so": {File: "gather.go", Tests: "TestADeposedLeader",
			Old: "Checked:    m.seen,", New: "Checked: func() map[types.UID]bool {\n\t\t\tall := map[types.UID]bool{}\n\t\t\tfor _, object := range c.pods.GetIndexer().List() {\n\t\t\t\tall[object.(*corev1.Pod).UID] = m.current\n\t\t\t}\n\t\t\treturn all\n\t\t}(),"},
		"a conflict is the end of an object": {File: "execute.go", Tests: "TestAConflictIsNoEnd",
			Old: "if gone := confirmGone(ctx, client, action.Name, action.UID); gone != nil {", New: "if gone := error(nil); gone != nil {"},
		"the status of another controller is overwritten": {File: "status.go", Tests: "TestConditionsOfOthersSurvive|TestNewLeader",
			Old: "case !current:\n\t\t\treturn nil, errCacheBehind", New: "case !current && false:\n\t\t\treturn nil, errCacheBehind"},
		"a new leader overwrites what its cache has not seen": {File: "status.go", Tests: "TestNewLeader",
			Old: "return apiequality.Semantic.DeepEqual(status, m.stored) ||", New: "return true ||"},
		"requests are sent again by the client": {File: "clients.go", Tests: "TestAClientSendsARequestOnce",
			Old: "\tresponse.Header.Del(retryAfter)\n", New: ""},
		"a spec is believed that makes no sense": {File: "frameworks.go", Tests: "Framework|Garbled",
			Old: "entry.decodeError = lifecycle.CheckSpec(&entry.Spec)", New: "_ = lifecycle.CheckSpec(&entry.Spec)"},
		"a Framework inherits the memory of one of its name": {File: "memory.go", Tests: "TestFrameworkReplaced",
			Old: "before.memory != nil && before.memory.uid == entry.UID", New: "before.memory != nil"},
		"the stored status is read anew in each sync": {File: "memory.go", Tests: "Written|Crash|Writes",
			Old: "before.memory != nil && before.memory.uid == entry.UID", New: "before.memory != nil && false"},
		"a controller begins with any old state": {File: "informers.go", Tests: "TestBeginsWithTheCurrentState",
			Old: "options.ResourceVersion == \"0\"", New: "false"},
		"a status counts as persisted although its write failed": {File: "status.go", Tests: "TestNothingHappens",
			Old: "\tcase err != nil:\n\t\tp.pace.Refusals.Refused(statusWrite", New: "\tcase err != nil:\n\t\tm.persisted = m.status\n\t\tp.pace.Refusals.Refused(statusWrite"},
		"deletions don't name a UID": {File: "execute.go", Tests: "TestADeletionSparesAStranger",
			Old: "Preconditions:     metav1.NewUIDPreconditions(string(uid)),", New: ""},
		"owners are deleted in the background": {File: "execute.go", Tests: "TestOwnersAreDeleted",
			Old: "PropagationPolicy: &propagation,", New: "PropagationPolicy: new(metav1.DeletePropagationBackground),"},
		"a deletion is not confirmed": {File: "execute.go",
			Old: "return errors.New(\"it is still there\")", New: "_ = errors.New\n\t\treturn nil"},
		"what is left of a plan outlives a change of the Framework": {File: "memory.go", Tests: "TestAChangeIsNoticed",
			Old: " && m.generation == entry.Generation", New: ""},
		"a Framework is synced again while requests are under way": {File: "../internal/fair/workers.go", Tests: "TestASyncThatHangs",
			Old: "\t\trunning.Go(func() {", New: "\t\tw.queue.Done(key)\n\t\trunning.Go(func() {"},
		"the history is written after the status": {File: "pass.go", Tests: "TestHistory",
			Old: "\tp.logHistory(plan.History)\n", New: "\tdefer func() {\n\t\tif p.memory.persisted == plan.Status {\n\t\t\tp.logHistory(plan.History)\n\t\t}\n\t}()\n"},
		"each refused deletion is in the history": {File: "history.go", Tests: "TestADeletionThatIsRefused",
			Old: "\tif p.memory.deletionLogged {", New: "\tif p.memory.deletionLogged && false {"},
		"the history is a format": {File: "history.go", Tests: "TestHistory",
			Old: "klog.Info(message, \": \", string(trigger), \": ObjectSnapshot: \", string(data))", New: "klog.Infof(message + \": \" + string(trigger) + \": ObjectSnapshot: \" + string(data))"},
	}
}
