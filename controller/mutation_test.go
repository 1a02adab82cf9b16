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
		"one role holds back the others": {File: "causes.go", Tests: "TestARefusedRole",
			Old: "\t\tshared.role = action.Role\n", New: ""},
		"a block outlives the refusal": {File: "causes.go", Tests: "TestATakenName",
			Old: "\t\tp.unblock(why)\n\t}\n}\n\nfunc", New: "\t}\n}\n\nfunc"},
		"an object of a stranger is adopted": {File: "looks.go", Tests: "TestATakenName",
			Old: "if !controlledBy(live, action.Owner) {\n\t\ttaken", New: "if false {\n\t\ttaken"},
		"a slow answer holds a worker": {File: "work.go", Tests: "TestASlow",
			Old: "\t\tcase <-patience.C:\n", New: ""},
		"a namespace may have any number of syncs in flight": {File: "turn.go", Tests: "InFlight",
			Old: "own >= pacing.MaxFlights ||", New: ""},
		"what was parked stays parked": {File: "work.go", Tests: "TestASlowNamespace",
			Old: "\t\tc.queue.Add(next)\n", New: "\t\t_ = next\n"},
		"namespaces don't take turns": {File: "fairqueue.go", Tests: "TestNamespacesTakeTurns",
			Old: "t.order = append(t.order, namespace)", New: "t.order = append([]string{namespace}, t.order...)"},
		"a panic ends the controller": {File: "work.go", Tests: "TestAPanic",
			Old: "value := recover()", New: "value := any(nil)"},
		"a scale-down counts as a tiny Framework": {File: "memory.go", Tests: "TestALargeScaleDown",
			Old: "count += len(role.TaskStatuses)", New: "count += min(1, len(role.TaskStatuses))"},
		"a changed label is an end": {File: "handlers.go", Tests: "TestAChangedLabel",
			Old: "marked: certain || accessor.GetDeletionTimestamp() != nil", New: "marked: true"},
		"what the caches don't show is looked at once": {File: "pass.go", Tests: "TestAChangedLabel",
			Old: "\tp.wakeAt(lookNext)\n", New: "\t_ = lookNext\n"},
		"a Pod is found by its label only": {File: "informers.go", Tests: "TestACrashCostsNoPod|TestShellLives",
			Old: "frameworkv1.KeyConfigMapUID, frameworkv1.KeyTaskRoleUID,", New: ""},
		"an object of another namespace counts": {File: "informers.go", Tests: "TestOwners",
			Old: "return namespace + \"/\" + string(owner)", New: "return string(owner)"},
		"a look that fails is never tried again": {File: "pass.go", Tests: "TestALookThatFails",
			Old: "p.keepCauses(wanted,", New: "p.keepCauses(plan.Actions,"},
		"a conflict is the end of an object": {File: "execute.go", Tests: "TestAConflictIsNoEnd",
			Old: "if gone := confirmGone(ctx, client, action.Name, action.UID); gone != nil {", New: "if gone := error(nil); gone != nil {"},
		"the status of another controller is overwritten": {File: "status.go", Tests: "TestConditionsOfOthersSurvive|TestNewLeader",
			Old: "case !current:\n\t\t\treturn errCacheBehind", New: "case !current && false:\n\t\t\treturn errCacheBehind"},
		"a new leader overwrites what its cache has not seen": {File: "status.go", Tests: "TestNewLeader",
			Old: "return apiequality.Semantic.DeepEqual(status, m.stored) ||", New: "return true ||"},
		"requests are sent again by the client": {File: "clients.go", Tests: "TestAClientSendsARequestOnce",
			Old: "\t\tresponse.Header.Del(\"Retry-After\")\n", New: ""},
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
		"a Framework is synced again while requests are under way": {File: "work.go", Tests: "TestASlowWrite",
			Old: "\t\trunning.Go(func() {", New: "\t\tc.queue.Done(key)\n\t\trunning.Go(func() {"},
		"the history is written after the status": {File: "pass.go", Tests: "TestHistory",
			Old: "\tp.controller.logHistory(plan.History)\n", New: "\tdefer func() {\n\t\tif p.memory.persisted == plan.Status {\n\t\t\tp.controller.logHistory(plan.History)\n\t\t}\n\t}()\n"},
		"the history is a format": {File: "history.go", Tests: "TestHistory",
			Old: "klog.Info(message, \": \", string(trigger), \": ObjectSnapshot: \", string(data))", New: "klog.Infof(message + \": \" + string(trigger) + \": ObjectSnapshot: \" + string(data))"},
	}
}
