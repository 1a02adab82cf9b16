// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

// fault is a way to make one function wrong. After a rename of the function, or of what the fault
// uses of it, "make audit" fails and says what to change here.
type fault struct {
	// users is the fault in the words of a user.
	users string
	// in is the folder of the function, and function its name: that of a method is Type.method.
	in, function string
	// begins has statements that are put before those of the function.
	begins string
	// skips is the name of a function or a variable. The statements of the function that call it, or
	// assign to it, do nothing. It counts only if begins is empty.
	skips string
	// test is the name of the test that notices the fault, and testIn the folder of the test. Empty:
	// the folder of the function.
	testIn, test string
}

const (
	lifecycle    = "controller/lifecycle"
	engine       = "controller/engine"
	plan         = "controller/engine/plan"
	kueue        = "controller/kueue"
	volcano      = "controller/volcano"
	kubeflow     = "controller/kubeflow"
	fair         = "internal/fair"
	coscheduling = "scheduler-plugin/coscheduling"
)

var faults = []fault{
	// Frameworks.
	{users: "A task runs twice: its Pod is only missing from the cache, and the controller creates another",
		in: lifecycle, function: "cursor.podIsGone", begins: "return t.pod() == nil", test: "TestTraces"},
	{users: "A running Pod is lost: the controller dies after it creates a Pod, and its successor creates another",
		in: lifecycle, function: "cursor.adoptPod", begins: "return", test: "TestAdoptionKeepsTheConfigMapAndThePodOfTheAttempt"},
	{users: "A running Pod is lost: a controller that lost the lease deletes what its successor created",
		in: plan, function: "Draft.ActIfChecked", begins: "d.Act(action); return", testIn: lifecycle, test: "TestADeposedLeaderDeletesNothingOfItsSuccessor"},
	{users: "A new leader with an old cache creates Pods of an attempt that is over",
		in: plan, function: "Draft.ActIfCurrent", begins: "d.Act(action); return", testIn: lifecycle, test: "TestNothingIsCreatedForAnOldStatus"},
	{users: "Pods run on after the Framework has completed",
		in: lifecycle, function: "decision.planRemains", begins: "return", test: "TestWhatIsThereAfterTheEndIsDeleted"},
	{users: "An attempt ends while Pods of it run",
		in: lifecycle, function: "decision.anythingSeen", begins: "return false", test: "TestAnAttemptDoesNotEndBeforeItsLeftovers"},
	{users: "A Framework waits for ever for a Pod that was deleted before the controller saw it",
		in: lifecycle, function: "cursor.planLook", begins: "return", test: "TestTraces"},
	{users: "Pods are deleted by force without their grace period",
		in: lifecycle, function: "decision.planForce", begins: "since = metav1.Time{}", test: "TestTraces"},
	{users: "A Framework in a queue starts before Kueue admits it",
		in: lifecycle, function: "decision.isHeld", begins: "return false", test: "TestAFrameworkInAQueueWaitsUntilItIsAdmitted"},
	{users: "A Framework succeeds although too few of its tasks have",
		in: lifecycle, function: "reached", begins: "threshold = min(threshold, 1)", test: "TestCompletionOfAnAttempt"},

	// What all jobs share in the controller.
	{users: "A Pod that a user created under an old name is deleted",
		in: engine, function: "deleteOptions", begins: `uid = ""`, testIn: "controller", test: "TestADeletionSparesAStranger"},
	{users: "A Pod counts as gone although a webhook refused its deletion",
		in: engine, function: "confirmGone", begins: "return nil", test: "TestAConflictIsNoEnd"},
	{users: "The controller overwrites the status that its successor wrote",
		in: engine, function: "pass.checkStatus", begins: "defer func() { current = err == nil }()", testIn: "controller", test: "TestNewLeaderWithAnOldCache"},
	{users: "One job that panics the controller stops all others",
		in: engine, function: "Owners.syncSafely", begins: "return o.sync(ctx, key, turn)", testIn: "controller", test: "TestAPanicCostsOneFrameworkAWhile"},
	{users: "A job over its quota floods the API server",
		in: engine, function: "pass.refuse", skips: "Refused", testIn: "controller", test: "TestAnExhaustedQuotaCostsTwoRequestsAMinuteAndItsEndIsNoticed"},
	{users: "A job too large to store holds up all jobs",
		in: engine, function: "isTooLarge", begins: "return false", test: "TestAStatusThatIsTooLargeHoldsUpNothingElse"},
	{users: "One namespace holds up the others with requests that hang",
		in: fair, function: "flights.begin", begins: "f.limits = Limits{Namespace: 1000, All: 1000}", test: "TestANamespaceHasABoundedNumberOfSyncsInFlight"},
	{users: "An API server that hangs holds a Framework in its queue for ever",
		in: kueue, function: "aRequest", begins: "return context.WithCancel(ctx)", test: "TestAnAPIServerThatHangsHoldsUpNoFrameworkForEver"},
	{users: "A Framework keeps its old quota after a change of its spec",
		in: kueue, function: "isFor", begins: "return true", test: "TestWhatIsDoneForAFrameworkInAQueue"},

	// Volcano's Jobs.
	{users: "A Command is executed again when the controller restarts and its cache is old",
		in: volcano, function: "decision.isClaimed", begins: "return true", test: "TestACommandThatIsGoneButStillInACacheIsNotExecutedAgain"},
	{users: "A Job that fails at once is restarted without a pause",
		in: volcano, function: "distance", begins: "return 0", test: "TestAJobThatFailsAtOnceIsRestartedLaterAndLater"},
	{users: "A Pod of a lost node counts as failed, not as evicted",
		in: "internal/podend", function: "disruption", begins: "return nil", testIn: volcano, test: "TestAPodOfALostNodeIsEvicted"},
	{users: "A Job is restarted because the cache does not show one of its Pods",
		in: volcano, function: "decision.confirmGone", begins: "return true", test: "TestAPodThatIsOnlyOutOfSightIsNotEvicted"},
	{users: "A hostile spec that unfolds to gigabytes takes the memory of the controller",
		in: volcano, function: "CheckSpec", begins: "return nil", testIn: "controller/volcanojobs", test: "TestASpecThatUnfoldsToFarMoreIsNotDecoded"},
	{users: "A Job goes with its logs as soon as it finishes",
		in: volcano, function: "decision.planRetention", begins: "d.spec.TTLSecondsAfterFinished = new(int32)", test: "TestStories"},

	// Kubeflow's jobs.
	{users: "A job that the training operator runs is run by Lockstep, too",
		in: kubeflow, function: "decision.stranger", begins: `return ""`, test: "TestAJobThatAnotherControllerHasBegunIsLeftAlone"},
	{users: "The exit code of a Pod is lost, and a program that can only fail runs again and again",
		in: "internal/podend", function: "Verdict.ExitCode", begins: "return 0, false", testIn: kubeflow, test: "TestStories"},
	{users: "The success of a Pod is lost: it ends while the controller deletes it",
		in: "controller/jobpods", function: "DeletionAsSeen", skips: "Version", testIn: kubeflow, test: "TestAPodThatHasEndedMeanwhileStays"},

	// Gangs.
	{users: "A gang starts in part",
		in: coscheduling + "/gangs", function: "gang.complete", begins: "return g.group != nil && g.waiting.Total > 0", test: "TestAGangThatIsNotStagedWaitsForAll"},
	{users: "Pods of other owners that name a gang start it without its own members",
		in: coscheduling + "/dialect", function: "Group.HasMember", begins: "return true", testIn: coscheduling + "/gangs", test: "TestStrangersMakeNoGangComplete"},
	{users: "Pods of a Job are placed one by one while lockstep-controller is down",
		in: coscheduling + "/dialect", function: "Links.implicitKey", begins: "return Key{}, false", testIn: coscheduling, test: "TestNoPodIsPlacedAloneWhileLockstepControllerIsDown"},
	{users: "A new leader deletes the Pods of gangs that are well",
		in: coscheduling + "/gangs", function: "gang.wasBroken", begins: "return g.group != nil", test: "TestASchedulerThatBeginsDissolvesWhatPreemptionHasBroken"},
	{users: "The rest of a gang keeps its nodes after preemption has deleted a member",
		in: coscheduling + "/gangs", function: "gang.breakUp", begins: "return nil", test: "TestAGangThatCanNotSpareAMemberAnyMoreGoesAsAWhole"},
	{users: "A gang is placed beside a member that has succeeded and is gone",
		in: coscheduling + "/gangs", function: "gang.existing", begins: "return g.placed.Plus(podgroup.Tally{})", test: "TestAMemberIsNotPlacedBesideOneThatIsGone"},
	{users: "A Pod that was no member after all never starts",
		in: coscheduling + "/kube", function: "PodQueue.Settle", skips: "Add", test: "TestAPodThatIsLetInWhileItIsKeptOut"},
	{users: "Preemption deletes a new Pod that has the name of its victim",
		in: coscheduling + "/kube", function: "onlyPod.ClientSet", begins: "return h.Handle.ClientSet()", test: "TestAnotherPodOfTheNameIsNotEvicted"},
	{users: "Preemption deletes a Pod that has succeeded, and its result is lost",
		in: coscheduling + "/kube", function: "lastPod.hasResult", begins: "return false", testIn: coscheduling, test: "TestAPodThatSucceedsWhileItIsToBeEvictedKeepsItsResult"},
	{users: "Nodes stay idle for a gang for longer than the gang will use them",
		in: coscheduling + "/room", function: "Reservation.MayHold", begins: "return true", test: "TestAReservationKeepsNoMoreIdleThanItsGangWillUse"},
	{users: "Nodes stay reserved for members that never come",
		in: coscheduling + "/place", function: "Gang.timeout", begins: "return 1000 * time.Hour", testIn: coscheduling, test: "TestRoomIsGivenUpWhenNobodyComes"},
	{users: "Gangs of one namespace that take long to plan hold up all other namespaces",
		in: coscheduling + "/queue", function: "Debts.Owe", begins: "return", test: "TestGangsWhoseTurnsTakeTooLongHaveATenthOfTheTimeForEachNamespace"},
	{users: "A bound Pod counts as waiting: the reply to its binding was lost",
		in: coscheduling, function: "mayBeBound", begins: "return false", test: "TestABindingWhoseOnlyReplyIsLostHasNotFailed"},
}
