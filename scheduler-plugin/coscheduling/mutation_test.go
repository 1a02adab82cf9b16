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

// TestMutationsFit shows that each mutation still changes something. "make test" runs it.
func TestMutationsFit(t *testing.T) {
	mutation.Fit(t, mutations())
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
		"a gang keeps room for members above its minimum": {File: "gangs/look.go", Tests: "TestNoRoomIsKeptAboveTheMinimum",
			Old: "g.isOf(uid) && g.lacksMinimum() &&", New: "g.isOf(uid) &&"},
		"a gang that can't be helped keeps others from being helped": {File: "place/seek.go", By: ".", Tests: "TestAGangThatCantBeHelped",
			Old: "\t\tout.Helpless = s.gang.StarvationAfter\n", New: ""},
		"two broken gangs wait for each other": {File: "place/seek.go", By: ".", Tests: "TestTwoBrokenGangs",
			Old: "if s.gang.Starving && s.gang.MayPreempt && s.gang.Broken() {", New: "if false {"},
		"the time for which a gang waits goes on when it is placed": {File: "gangs/gangs.go", Tests: "TestAGangThatHadItsPlace",
			Old: "\tt.line.Settled(g.key, t.config.Now())\n", New: ""},

		// Turns.
		"a gang that can't be bound has no back-off": {File: "gangs/turn.go", By: ".",
			Old: "t.line.Unbound(g.key, f.Terms, t.config.Now())", New: "t.line.Wake(g.key, t.config.Now())"},
		"a gang ahead takes the turns of those behind it": {File: "line/line.go", Tests: "TestAGangAheadTakesEarlyTurns",
			Old: "g.early = now.Add(g.initial)", New: "g.early = now"},
		"a turn takes as long as it likes": {File: "place/overdue.go", By: ".", Tests: "TestAGangThatTakesTooLong",
			Old: "return !c.Deadline.IsZero() && c.Now()", New: "return false && c.Now()"},
		"turns that take too long cost nothing": {File: "line/turn.go", Tests: "Debt|TestGangsWhoseTurns",
			Old: "\t\tl.debts.owe(key.Namespace, why.Took, now)\n", New: ""},
		"gangs with other minima in their roles are alike": {File: "place/likeness.go", Tests: "TestGangsThatDiffer",
			Old: "spec.Minimum.Members, spec.Minimum.Roles,", New: "spec.Minimum.Members, 0,"},
		"gangs are alike of which one may not preempt": {File: "place/likeness.go", Tests: "TestGangsThatDiffer",
			Old: "g.Rank.Priority, g.MayPreempt,", New: "g.Rank.Priority, true,"},
		"a node that goes helps nobody": {File: "events.go", Tests: "TestAGangThatSpreads",
			Old: "\t\t{Resource: fwk.Node, ActionType: fwk.Delete},\n", New: ""},
		"a Pod that ends helps nobody": {File: "events.go",
			Old: "fwk.Delete | fwk.UpdatePodScaleDown", New: "fwk.UpdatePodScaleDown"},
		"a member that changes its role is not counted anew": {File: "gangs/transitions.go", Tests: "TestAMemberThatChangesItsRole",
			Old: "roleChanged := g.key.RoleOf(m.pod) != g.key.RoleOf(pod)", New: "roleChanged := false"},
		"other plugins are asked about nobody": {File: "place/place.go", By: ".", Tests: "TestOtherPluginsKeepMembersBackToo",
			Old: "if status := plugin.PreEnqueue(ctx, pod); !status.IsSuccess() {\n\t\t\treturn status.WithPlugin(plugin.Name())", New: "if status := plugin.PreEnqueue(ctx, pod); false {\n\t\t\treturn status.WithPlugin(plugin.Name())"},

		// Members.
		"the first member speaks for the claims of its class": {File: "place/world.go", By: ".", Tests: "TestMembersGoWhereTheirVolumesAre",
			Old: "if ownsClaims(pod) {", New: "if false && ownsClaims(pod) {"},
		"a Pod that was made anew is two members": {File: "members.go",
			Old: "\t\t\tif was.UID != is.UID { // the watch was broken\n", New: "\t\t\tif false {\n"},
		"what is not seen to run any more is gone": {File: "podwatch/join.go", By: ".",
			Old: `case pod.Spec.NodeName == "" && (final || !j.gangs.IsAssumed(pod)):`, New: "case true:"},
		"nobody asks what has become of a member": {File: "members.go", Tests: "TestAMemberThatIsDeletedOutright",
			Old: "\tm.missing.AddAfter(gang, missingDelay)\n}", New: "\t_ = gang\n}"},
		"a member that may be gone counts": {File: "gangs/gang.go", By: ".", Tests: "TestAGangDoesNotCountOn",
			Old: "\tplaced.Total -= g.missing.Total\n", New: ""},
		"the two watches of Pods begin at once": {File: "members.go", Tests: "TestAMemberThatEndsWhileTheSchedulerStarts",
			Old: `if cache.WaitFor(w.ctx, "", livingSeen.HasSyncedChecker()) {`, New: "if livingSeen != nil {"},
		"a Pod that was made anew waits twice": {File: "kube/queue.go", Tests: "TestMembersStay",
			Old: "\tif before.UID != after.UID {\n", New: "\tif false {\n"},
		"a Pod of whose name there is another takes room for ever": {File: "kube/queue.go", By: ".", Tests: "TestAMemberOfWhich|TestAnOrdinaryPodThatIs",
			Old: "\tif pod.Spec.NodeName == \"\" {\n\t\tq.gone(pod)\n\t}\n", New: ""},
		"a Pod that loses its node ends the scheduler": {File: "kube/cache.go", By: ".", Tests: "TestAPodThatLosesItsNode",
			Old: `if before.UID == after.UID && after.Spec.NodeName != "" && (`, New: "if true || ("},
		"a scheduler that does not lead asks as others do": {File: "members.go", Tests: "TestASchedulerThatDoesNotLead",
			Old: "case <-time.After(standbyPause):", New: "case <-time.After(0):"},
		"each gang is asked about by itself": {File: "members.go", Tests: "TestOneRequestAsks",
			Old: "len(questions) < missingGangs", New: "len(questions) < 1"},
		"a gang that falls behind wakes nobody": {File: "gangs/gangs.go", Tests: "TestGangsThatOutrank",
			Old: "\tif g.fell() {\n", New: "\tif g.fell() && false {\n"},
		"a PodGroup that was made anew inherits everything": {File: "gangs/transitions.go", Tests: "TestRecreatedGroup|MadeAnew",
			Old: "if old == nil || old.UID != group.UID {", New: "if old == nil {"},
		"a placement for a PodGroup is one for another of its name": {File: "gangs/turn.go", Tests: "TestABindingThatOutlives|TestAGangThatChanges",
			Old: "if g == nil || !g.isOf(view.Group.UID) ||", New: "if g == nil || g.group == nil ||"},
		"every Pod is a member that says so": {File: "gangs/transitions.go", Tests: "TestStrangersMakeNoGangComplete",
			Old: "case g.group == nil || g.group.HasMember(m.pod):", New: "case true:"},
		"nobody is told that there is no such PodGroup": {File: "news/marks.go", By: ".", Tests: "TestAPodThatNamesNoPodGroup",
			Old: "return g.grouplessMark(p), true", New: "return Mark{}, false"},
		"any error means that PodGroups are not served": {File: "watch.go", Tests: "TestAFailedDiscovery",
			Old: "if apierrors.IsNotFound(err) {", New: "if err != nil || apierrors.IsNotFound(err) {"},

		// PodGroups of other dialects.
		"the phase of another program is overwritten": {File: "status/reporter.go", Tests: "TestAPhaseThatSomebodyElseWrites",
			Old: `group.PhaseBy != "" && group.PhaseBy != FieldManager`, New: "false"},
		"the groups of other schedulers are written": {File: "gangs/look.go", By: ".", Tests: "TestTheGroupsOfOthers",
			Old: "known.Theirs = !ours", New: "known.Theirs = false"},
		"a Pod that has ended is forgotten by a watch that shows it no more": {File: "podwatch/join.go", Tests: "TestWhatGangsAreToldOfTheirPods",
			Old: "\t\treturn // another watch shows it as one of another gang\n", New: ""},
		"the status of a group that Pods wait for is told late": {File: "gangs/gangs.go", Tests: "TestAGroupThatSomebodyWaitsFor",
			Old: "if group.IsAwaited() {", New: "if false {"},
		"groups without Pods are nobody's": {File: "gangs/census.go", By: ".", Tests: "TestAVolcanoGangIsPlacedWhole",
			Old: "ours = len(g.members) == 0 && ", New: "ours = false && "},
		"a member that begins to run is no news": {File: "gangs/gangs.go", By: ".", Tests: "TestAGangOfSchedulerPlugins",
			Old: "if key.Dialect != dialect.Own && m.pod.Status.Phase", New: "if false && m.pod.Status.Phase"},
		"a dialect that may not be read is on": {File: "foreign.go", Tests: "TestPodsOfADialectThatIsOffAreOrdinary",
			Old: "\t\treturn forbidden, nil\n", New: "\t\treturn served, nil\n"},
		"groups of one name in two dialects are one": {File: "dialect/links.go", By: ".", Tests: "TestAGangOfSchedulerPlugins",
			Old: "Key{Dialect: d, Namespace", New: "Key{Namespace"},

		// Nominations.
		"members are not nominated while victims end": {File: "nominate.go", Tests: "TestMembersAreNominatedWhile",
			Old: "return n.room.NodeFor(gang.Key, gang.Group.UID, pod.Pod.UID)", New: "return \"\""},
		"a gang that starves is nominated": {File: "room/barrier.go", By: ".", Tests: "TestAGangThatWaitsForLong",
			Old: "func (b *Barrier) NodeFor(types.UID) string { return \"\" }", New: "func (b *Barrier) NodeFor(member types.UID) string { return b.claim.NodeFor(member) }"},
		"a nomination outlives the room": {File: "gangs/turn.go", By: ".", Tests: "TestANominationEnds",
			Old: "\t\tif kept == \"\" {\n", New: "\t\tif false {\n"},
		"a new scheduler leaves the nominations of the one before": {File: "news/nominations.go", By: ".", Tests: "TestASchedulerThatBeginsFinds",
			Old: "return \"\", told || marked", New: "return \"\", (told || marked) && false"},
		"a member is nominated that was told nothing": {File: "news/nominations.go", Tests: "TestForWhichNode",
			Old: "case p.Nominee != \"\" && (marked ||", New: "case p.Nominee != \"\" && (true ||"},
		"nominations change as often as the room": {File: "news/nominations.go", By: "status", Tests: "TestRoomThatComesAndGoes",
			Old: "return g.Record.Renominated.Add(nominationPeriod)", New: "return time.Time{}"},
		"members that are alike go elsewhere in each plan": {File: "place/steady.go", Tests: "TestMembersThatAreAlikeKeep",
			Old: "\t\tif free[at] > 0 {\n\t\t\tfree[at]--\n\t\t\tstays", New: "\t\tif false {\n\t\t\tfree[at]--\n\t\t\tstays"},
		"a nominated member is a class of its own": {File: "place/class.go", Tests: "TestClassify",
			Old: "Selector: spec.NodeSelector,", New: "Selector: []any{spec.NodeSelector, pod.Status.NominatedNodeName},"},
		"members of a higher priority are not needed first": {File: "planner/pack.go", Tests: "TestPlans",
			Old: "\treturn []func([]int) []int{func(order", New: "\treturn []func([]int) []int{asItIs, func(order"},
		"members of a higher priority are not placed first beyond the minimum": {File: "planner/pack.go", Tests: "TestPlans",
			Old: "p.placeRest(byPriority(gang, order), gang.size())", New: "p.placeRest(order, gang.size())"},
		"a minimum that only members of a low priority can hold is given up": {File: "planner/pack.go", Tests: "TestPlans",
			Old: "return byPriority(g, order) }, asItIs}", New: "return byPriority(g, order) }}"},
		"the planner knows no priorities": {File: "place/world.go", By: ".", Tests: "TestMembersOfAHigherPriority",
			Old: "Priority: corev1helpers.PodPriority(class.members[0]), ", New: "Priority: 0 * corev1helpers.PodPriority(class.members[0]), "},
		"the planner gives away the room of nominated Pods": {File: "place/pass.go", By: ".", Tests: "TestAGangLeavesRoomToPods|TestAGangIsPackedBeside",
			Old: "\t\t\tseen.Free[r] -= q\n", New: "\t\t\t_, _ = r, q\n"},
		"a gang yields to nominated Pods that it outranks": {File: "place/nominated.go", By: ".", Tests: "TestAGangLeavesRoomToPods",
			Old: "own[pod.UID] || corev1helpers.PodPriority(pod) < g.Rank.Priority", New: "own[pod.UID] || corev1helpers.PodPriority(pod) < g.Rank.Priority && false"},
		"nobody hears that a nominated Pod is placed elsewhere": {File: "place/place.go", By: ".", Tests: "TestAGangIsPlacedWhenANominationEnds",
			Old: "out.Shortfall.Need.RegardsOthers || len(cluster.Nominated) > 0", New: "out.Shortfall.Need.RegardsOthers"},
		"each nomination that ends has everybody tried again": {File: "kube/queue.go", Tests: "TestWhoHearsOfANomination",
			Old: "\tif q.isDenomination(event, oldObj) {\n\t\treturn\n\t}\n", New: ""},

		// Devices.
		"a trial takes back what is reserved for a member": {File: "kube/undo.go", By: ".", Tests: "TestATrialWritesNothing",
			Old: "\tend()\n\treturn ended", New: "\tcontext.AfterFunc(ctx, end)\n\treturn ended"},
		"members that share a claim are bound as they come": {File: "kube/sharing.go", By: ".", Tests: "TestMembersThatShareADeviceAreBoundAtOnce",
			Old: "if len(by) < 2 || isAllocated", New: "if true || isAllocated"},
		"members get the devices of claims that they share": {File: "place/filters.go", By: ".", Tests: "TestMembersThatShareADeviceAndHave",
			Old: "kube.PendingClaimsLast(class.handle, pod))", New: "pod)"},
		"a gang that starts keeps what preemption leaves of it": {File: "gangs/breach.go", By: ".", Tests: "TestAGangIsNotLeftInPart",
			Old: "(g.starts || ", New: "("},
		"a claim that has moved is taken for one that has not": {File: "kube/sharing.go", By: ".", Tests: "TestAClaimThatMoves",
			Old: "if !reached.Match(node) {", New: "if reached.Match(node); false {"},
		"devices stay with a gang that waits": {File: "cycle.go", Tests: "TestDevicesOfAnother|TestAGangThatWaitsHolds",
			Old: "if len(out.Placements) == 0 && out.Claim == nil {", New: "if false {"},
		"devices stay with a gang that is not complete": {File: "gangs/look.go", By: ".", Tests: "TestAGangThatIsNotComplete",
			Old: "if g == nil || g.complete() {", New: "if true || g.complete() {"},
		"devices are taken from who uses them": {File: "kube/claims.go", By: ".", Tests: "TestDevicesOfOthersStay",
			Old: "return ok && s.hasNode(pod)", New: "return ok && false && s.hasNode(pod)"},
		"devices are taken from those for whom they are reserved": {File: "kube/claims.go", By: ".", Tests: "TestDevicesOfOthersStay",
			Old: "return !pods.Has(by.UID) })", New: "return false && !pods.Has(by.UID) })"},
		"a member with a device is like one without": {File: "place/pins.go", By: ".", Tests: "TestMembersGoWhereTheirDevicesAre",
			Old: "p.Allocated, p.Nodes = true,", New: "p.Allocated, p.Nodes = false,"},
		"a member whose claim is told wakes nobody": {File: "gangs/transitions.go", By: ".", Tests: "TestAMemberWhoseClaimsAreTold",
			Old: "!equality.Semantic.DeepEqual(was.Status.ResourceClaimStatuses, pod.Status.ResourceClaimStatuses))", New: "false && equality.Semantic.DeepEqual(1, 1))"},

		// Preemption.
		"a PriorityClass lends priority": {File: "gangs/gang.go", By: ".",
			Old: "r.Priority = min(r.Priority, priority)", New: "r.Priority = priority"},
		"room of Pods that end anyway is not kept": {File: "place/seek.go", By: ".", Tests: "TestRoomOfPodsThatEndAnyway",
			Old: " && !pool.yielding &&", New: " &&"},
		"own members that end are no room to come": {File: "place/pool.go", By: ".", Tests: "TestAGangWaitsForItsOwnMembers",
			Old: "s.gang.Group.HasMember(pod) {\n\t\t\t\tif leaves {", New: "s.gang.Group.HasMember(pod) {\n\t\t\t\tif false {"},
		"the late end of a surplus dissolves its gang": {File: "gangs/transitions.go", Tests: "TestTheLateEnd",
			Old: "\treturn true, before == memberPlaced\n", New: "\treturn true, before != memberWaiting\n"},
		"a scheduler that begins dissolves healthy gangs": {File: "gangs/breach.go", Tests: "TestASchedulerThatBegins",
			Old: "return g.group.HeldBy(before)\n", New: "return true\n"},
		"a member of a gang costs ordinary Pods no more than another Pod": {File: "gangs/guard.go", Tests: "TestWhoGoesWithAMember",
			Old: "return 1 + int(left.Total)", New: "return 1 + 0*int(left.Total)"},
		"ordinary Pods leave the rest of a gang": {File: "gangs/guard.go", Tests: "TestWhoGoesWithAMember",
			Old: "rest = append(rest, of.restWithout(pods)...)", New: "_, _ = of, pods"},
		"a victim that does not end is chosen again": {File: "place/pool.go", By: ".", Tests: "TestGangDoesNotPreempt|TestGangPreempts",
			Old: "if !takes || pod.DeletionTimestamp != nil {", New: "if !takes {"},
		"a Pod that takes the name of a victim is evicted": {File: "kube/evict.go", Tests: "TestAnotherPodOfTheName",
			Old: "onlyPod{handle, pod.UID}", New: "handle"},
		"more is evicted than has to be": {File: "victims/choose.go",
			Old: "\ts.spareHalves(0, prefix)\n", New: ""},
	}
}
