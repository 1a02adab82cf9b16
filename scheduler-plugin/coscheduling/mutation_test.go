// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build mutation

package coscheduling

import (
	"testing"

	"github.com/lockstep-k8s/lockstep/internal/testing/mutation"
)

// TestMutations shows that the tests bite: faults that the scheduler once had are put back,
// one at a time, and the tests that are named, or storms, have to notice. "make mutations"
// runs it.
func TestMutations(t *testing.T) {
	suite := mutation.Suite{Default: "TestStorms", Arguments: []string{"-storms", "60"}}
	suite.Run(t, mutations())
}

func mutations() map[string]mutation.Mutation {
	return map[string]mutation.Mutation{
		// Room that is held back.
		"the end of services is waited for": {File: "place/pool.go", Tests: "TestWhatAGangMayTakeThePlaceOf",
			Old: "return of != nil || room.EndsByItself(pod)", New: "return of != nil || room.EndsByItself(pod) || true"},
		"a barrier is not given up that does not grow": {File: "room/barrier.go", Tests: "TestWhatBecomesOfABarrier",
			Old: "case now.Sub(b.grown) >= patience, now", New: "case now"},
		"a barrier gets as old as it likes": {File: "room/barrier.go", Tests: "TestABarrierGetsTooOld",
			Old: ", now.Sub(b.begun) >= barrierLifetime*patience:", New: ":"},
		"room is held back from DaemonSets": {File: "room/barrier.go", Tests: "TestWhichPodsLeaveRoomAlone",
			Old: `owner.Kind == "DaemonSet"`, New: `owner.Kind == ""`},
		"what is reserved does not shrink by what is awaited": {File: "room/claim.go", Tests: "TestWhatABarrierReserves",
			Old: "reserved.takeOff(taken)", New: "_ = taken"},
		"a claim that is over ends a newer one": {File: "room/room.go", Tests: "TestAClaimThatIsOver",
			Old: "if r.byGang[key] != claim {", New: "if r.byGang[key] == nil {"},
		"a gang keeps room for members above its minimum": {File: "hold.go", Tests: "TestNoRoomIsHeldAboveTheMinimum",
			Old: "g.group.UID == uid && g.lacksMinimum() &&", New: "g.group.UID == uid &&"},
		"a gang that can't be helped keeps others from being helped": {File: "place/seek.go", By: ".", Tests: "TestAGangThatCantBeHelped",
			Old: "\t\tout.Helpless = s.gang.StarvationAfter\n", New: ""},
		"two broken gangs wait for each other": {File: "place/seek.go", By: ".", Tests: "TestTwoBrokenGangs",
			Old: "if s.gang.Starving && s.gang.MayPreempt && s.gang.Broken() {", New: "if false {"},
		"the time for which a gang waits goes on when it is placed": {File: "unbound.go", Tests: "TestAGangThatHadItsPlace",
			Old: "\tt.line.Settled(g.key, t.now())\n", New: ""},

		// Turns.
		"a gang that can't be bound has no back-off": {File: "unbound.go",
			Old: "t.line.Unbound(g.key, f.terms, t.now())", New: "t.line.Wake(g.key, t.now())"},
		"a gang ahead takes the turns of those behind it": {File: "line/line.go", Tests: "TestAGangAheadTakesEarlyTurns",
			Old: "g.early = now.Add(g.initial)", New: "g.early = now"},
		"a turn takes as long as it likes": {File: "place/overdue.go", By: ".", Tests: "TestAGangThatTakesTooLong",
			Old: "return !c.Deadline.IsZero() && time", New: "return false && time"},
		"turns that take too long cost nothing": {File: "line/turn.go", Tests: "Debt|TestGangsWhoseTurns",
			Old: "\t\tl.debts.owe(key.Namespace, why.Took, now)\n", New: ""},
		"gangs with other minima in their roles are alike": {File: "place/likeness.go", Tests: "TestGangsThatDiffer",
			Old: "spec.MinMember, spec.MinRoleMember,", New: "spec.MinMember, 0,"},
		"gangs are alike of which one may not preempt": {File: "place/likeness.go", Tests: "TestGangsThatDiffer",
			Old: "g.Rank.Priority, g.MayPreempt,", New: "g.Rank.Priority, true,"},
		"a node that goes helps nobody": {File: "events.go", Tests: "TestAGangThatSpreads",
			Old: "\t\t{Resource: fwk.Node, ActionType: fwk.Delete},\n", New: ""},
		"a Pod that ends helps nobody": {File: "events.go",
			Old: "fwk.Delete | fwk.UpdatePodScaleDown", New: "fwk.UpdatePodScaleDown"},
		"a member that changes its role is not counted anew": {File: "tracker.go", Tests: "TestAMemberThatChangesItsRole",
			Old: "roleChanged := podgroup.RoleOf(m.pod) != podgroup.RoleOf(pod)", New: "roleChanged := false"},
		"other plugins are asked about nobody": {File: "place/place.go", By: ".", Tests: "TestOtherPluginsKeepMembersBackToo",
			Old: "if status := plugin.PreEnqueue(ctx, pod); !status.IsSuccess() {\n\t\t\treturn status.WithPlugin(plugin.Name())", New: "if status := plugin.PreEnqueue(ctx, pod); false {\n\t\t\treturn status.WithPlugin(plugin.Name())"},

		// Members.
		"the first member speaks for the claims of its class": {File: "place/world.go", By: ".", Tests: "TestMembersGoWhereTheirVolumesAre",
			Old: "if ownsClaims(pod) {", New: "if false && ownsClaims(pod) {"},
		"a Pod that was made anew is two members": {File: "tracker.go",
			Old: "if before.UID != after.UID || !isSameGang(before, after) {", New: "if !isSameGang(before, after) {"},
		"a Pod that was made anew waits twice": {File: "kube/queue.go", Tests: "TestMembersStay",
			Old: "if was && (!is || before.UID != after.UID) {", New: "if was && !is {"},
		"a member of which kube-scheduler does not hear takes room for ever": {File: "ghosts.go", Tests: "TestAMemberOfWhich",
			Old: "\te.tracker.deletePod(pod)\n\te.forgetUnheard(pod)\n", New: "\te.tracker.deletePod(pod)\n"},
		"a member of whose name there is another takes room for ever": {File: "kube/queue.go", By: ".", Tests: "TestAMemberOfWhich",
			Old: "\tif was && before.UID != after.UID {\n\t\tq.gone(before)\n\t}\n", New: ""},
		"a PodGroup that was made anew inherits everything": {File: "tracker.go", Tests: "TestRecreatedGroup|MadeAnew",
			Old: "if old == nil || old.UID != group.UID {", New: "if old == nil {"},
		"a placement for a PodGroup is one for another of its name": {File: "tracker_cycle.go", Tests: "TestABindingThatOutlives|TestAGangThatChanges",
			Old: "if g == nil || g.group == nil || g.group.UID != view.Group.UID {", New: "if g == nil || g.group == nil {"},
		"every Pod is a member that says so": {File: "stranger.go", Tests: "TestStrangersMakeNoGangComplete",
			Old: "case g.group == nil || podgroup.IsMember(g.group, m.pod):", New: "case true:"},
		"nobody is told that there is no such PodGroup": {File: "status/marks.go", By: ".", Tests: "TestAPodThatNamesNoPodGroup",
			Old: "return g.grouplessMark(p), true", New: "return Mark{}, false"},
		"any error means that PodGroups are not served": {File: "watch.go", Tests: "TestAFailedDiscovery",
			Old: "if apierrors.IsNotFound(err) {", New: "if err != nil || apierrors.IsNotFound(err) {"},

		// Devices.
		"a trial takes back what is reserved for a member": {File: "kube/undo.go", By: ".", Tests: "TestATrialWritesNothing",
			Old: "\tend()\n\tprofile", New: "\tdefer end()\n\tprofile"},
		"devices stay with a gang that waits": {File: "cycle.go", Tests: "TestDevicesOfAnother|TestAGangThatWaitsHolds",
			Old: "if len(out.Placements) == 0 && out.Claim == nil {", New: "if false {"},
		"devices stay with a gang that is not complete": {File: "devices.go", Tests: "TestAGangThatIsNotComplete",
			Old: "if g == nil || g.complete() {", New: "if true || g.complete() {"},
		"devices are taken from who uses them": {File: "kube/claims.go", By: ".", Tests: "TestDevicesOfOthersStay",
			Old: "if found[name] != nil && s.hasNode(pod) {", New: "if false && s.hasNode(pod) {"},
		"devices are taken from those for whom they are reserved": {File: "kube/claims.go", By: ".", Tests: "TestDevicesOfOthersStay",
			Old: "return !pods.Has(by.UID) })", New: "return false && !pods.Has(by.UID) })"},
		"a member with a device is like one without": {File: "place/pins.go", By: ".", Tests: "TestMembersGoWhereTheirDevicesAre",
			Old: "p.Allocated, p.Nodes = true,", New: "p.Allocated, p.Nodes = false,"},
		"a member whose claim is told wakes nobody": {File: "tracker.go", Tests: "TestAMemberWhoseClaimsAreTold",
			Old: "!equality.Semantic.DeepEqual(m.pod.Status.ResourceClaimStatuses, pod.Status.ResourceClaimStatuses))", New: "false && equality.Semantic.DeepEqual(1, 1))"},

		// Preemption.
		"a PriorityClass lends priority": {File: "rank.go",
			Old: "r.Priority = min(r.Priority, priority)", New: "r.Priority = priority"},
		"room of Pods that end anyway is not kept": {File: "place/seek.go", By: ".", Tests: "TestRoomOfPodsThatEndAnyway",
			Old: " && !pool.yielding &&", New: " &&"},
		"own members that end are no room to come": {File: "place/pool.go", By: ".", Tests: "TestAGangWaitsForItsOwnMembers",
			Old: "podgroup.IsMember(s.gang.Group, pod) {\n\t\t\t\tif leaves {", New: "podgroup.IsMember(s.gang.Group, pod) {\n\t\t\t\tif false {"},
		"the late end of a surplus dissolves its gang": {File: "tracker.go", Tests: "TestTheLateEnd",
			Old: "\t\tif before == memberPlaced {\n", New: "\t\tif true {\n"},
		"a scheduler that begins dissolves healthy gangs": {File: "evict.go", Tests: "TestASchedulerThatBegins",
			Old: "if podgroup.Holds(&g.group.Spec, before) {\n", New: "if true {\n"},
		"a member of a gang costs ordinary Pods no more than another Pod": {File: "gangaware.go", Tests: "TestAnOrdinaryPodTakes",
			Old: "return 1 + int(left.Total)", New: "return 1 + 0*int(left.Total)"},
		"ordinary Pods leave the rest of a gang": {File: "gangaware.go", Tests: "TestAnOrdinaryPodTakes|TestOrdinaryPodAndGangMembers",
			Old: "rest = append(rest, g.restWithout(pods, t.ours)...)", New: "_, _ = g, pods"},
		"a victim that does not end is chosen again": {File: "place/pool.go", By: ".", Tests: "TestGangDoesNotPreempt|TestGangPreempts",
			Old: "if !takes || pod.DeletionTimestamp != nil {", New: "if !takes {"},
		"a Pod that takes the name of a victim is evicted": {File: "kube/evict.go", Tests: "TestAnotherPodOfTheName",
			Old: "onlyPod{handle, pod.UID}", New: "handle"},
		"more is evicted than has to be": {File: "victims/choose.go",
			Old: "\ts.spareHalves(0, prefix)\n", New: ""},
	}
}
