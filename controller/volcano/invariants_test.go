// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
	"github.com/lockstep-k8s/lockstep/internal/podend"
)

var podInMessage = regexp.MustCompile(`Pod (j-\S+)`)

// checkPlan notes what has caused a restart, by the Pod that the controller has seen, or
// that was the last of its name, and with which spec was decided.
func (l *life) checkPlan(seen Snapshot, p plan.Plan[batchv1alpha1.JobStatus]) {
	l.t.Helper()
	if p.Status == nil {
		return
	}
	for _, task := range seen.Job.Spec.Tasks {
		if len(Validate(seen.Job)) > 0 {
			break // Nothing is rescaled by a spec that makes no sense.
		}
		least, known := l.truth.leastReplicas[task.Name]
		if !known || task.Replicas < least {
			l.truth.leastReplicas[task.Name] = task.Replicas
		}
	}
	if l.truth.specs[p.Status] == nil { // The write may have failed, and the user changed the spec since.
		l.truth.specs[p.Status] = seen.Job
		for name, pod := range seen.Pods {
			counts := jobpods.EndedForGood(pod) && (l.truth.endedAlive[pod.UID] || !podend.Of(pod).ByCluster())
			if counts && pod.Annotations[KeyMark] == "" && versionOf(pod) == p.Status.Version {
				l.truth.seenEnded[p.Status] = append(l.truth.seenEnded[p.Status], name)
			}
		}
	}
	if seen.Persisted == nil || p.Status.State.Phase == seen.Persisted.State.Phase || l.truth.cause[p.Status] != "" {
		return
	}
	state := p.Status.State
	if !slices.Contains([]batchv1alpha1.JobPhase{rs, ab, tt, cc}, state.Phase) {
		return
	}
	match := podInMessage.FindStringSubmatch(state.Message)
	if match == nil || strings.HasPrefix(state.Message, commandPrefix) {
		return
	}
	uid := l.lastUID[ObjectKey{KindPod, match[1]}]
	if pod := seen.Pods[match[1]]; pod != nil {
		uid = pod.UID
	}
	l.truth.cause[p.Status] = state.Reason + " of " + string(uid)
}

// checkWrite holds what must be true of every status that anyone can see.
func (l *life) checkWrite(before, after *batchv1alpha1.JobStatus) {
	l.t.Helper()
	l.log("write %s", transcript(after))
	fail := func(what string) {
		l.t.Helper()
		l.t.Errorf("%s:\nbefore %s\nafter  %s", what, transcript(before), transcript(after))
	}
	if before == nil {
		if after.State.Phase != pp || len(after.Conditions) != 1 {
			fail("the first status")
		}
		return
	}
	entered := before.State.Phase != after.State.Phase
	if entered && !slices.Contains(legalSteps[before.State.Phase], after.State.Phase) {
		fail("an illegal step")
	}
	restarts := entered && after.State.Phase == rs
	resumes := restarts && (before.State.Phase == ab || before.State.Phase == abd)
	if want := before.RetryCount + count(restarts && !resumes); after.RetryCount != want {
		fail("retryCount is wrong")
	}
	if want := before.Version + count(entered && isWhole(after)); after.Version != want {
		fail("version is wrong")
	}
	if !entered && !after.State.LastTransitionTime.Equal(&before.State.LastTransitionTime) {
		fail("the time of the transition changes without one")
	}
	if last := after.Conditions[len(after.Conditions)-1]; last.Status != after.State.Phase {
		fail("the last condition is not the phase")
	}
	if after.Pending < 0 || after.Running < 0 || after.Succeeded < 0 || after.Failed < 0 || after.Terminating < 0 || after.Unknown < 0 {
		fail("a counter is negative")
	}
	l.checkEnded(before, after, restarts, fail)
	l.checkCommand(before, after, fail)
	l.checkNaturalEnd(before, after, fail)
	if cause := l.truth.cause[after]; cause != "" && entered {
		l.truth.causes[cause]++
		if n := l.truth.causes[cause]; n > 1 {
			fail("the second action for one event, " + cause)
		}
	}
	if (after.State.Phase == abd || after.State.Phase == td || after.State.Phase == cd && before.State.Phase == cc) && entered {
		if after.Pending+after.Running+after.Terminating+after.Unknown > 0 {
			fail("a stop ends before the Pods are gone")
		}
	}
	if entered && before.State.Phase == rs && after.State.Phase == pp {
		l.checkRestarted(before, after, fail)
	}
	if entered && before.State.Phase == rs && after.State.Phase == ff {
		if spec := l.truth.specs[after]; len(Validate(spec)) > 0 || after.RetryCount < effective(&spec.Spec).MaxRetry {
			fail("maxRetry does not ask for its end")
		}
	}
	if entered && after.State.Phase == rr && after.Running+after.Succeeded+after.Failed < after.MinAvailable {
		fail("it runs without its minimum")
	}
	if isOver(after.State.Phase) && (after.RunningDuration == nil ||
		!l.job.CreationTimestamp.Add(after.RunningDuration.Duration).Equal(after.State.LastTransitionTime.Time)) {
		fail("runningDuration is wrong")
	}
}

var legalSteps = map[batchv1alpha1.JobPhase][]batchv1alpha1.JobPhase{
	pp: {rr, rs, ab, tt, cc}, rr: {pp, cd, ff, rs, ab, tt, cc}, rs: {ff, pp, ab, tt, cc},
	ab: {abd, rs}, abd: {rs}, tt: {td}, cc: {cd},
}

func count(is bool) int32 {
	if is {
		return 1
	}
	return 0
}

// isWhole says whether a phase was entered by an action on the whole Job.
func isWhole(after *batchv1alpha1.JobStatus) bool {
	switch after.State.Phase {
	case ab, tt, cc:
		return true
	case rs:
		_, part := readTarget(after.State.Message)
		return !part
	}
	return false
}

// checkEnded holds that what has ended stays ended, as long as nothing is restarted, and
// nothing is scaled away.
func (l *life) checkEnded(before, after *batchv1alpha1.JobStatus, restarts bool, fail func(string)) {
	l.t.Helper()
	var succeeded, failed int32
	for _, task := range effective(&l.job.Spec).Tasks {
		was := readRecord(before, task.Name, 10)
		is := readRecord(after, task.Name, 10)
		succeeded += is.succeeded.Count()
		failed += is.failed.Count()
		for index := range min(task.Replicas, 10) {
			if is.succeeded.Has(index) && is.failed.Has(index) || is.ended(index) && is.there.Has(index) {
				fail("an index is two things")
			}
			if uid := l.lastUID[ObjectKey{KindPod, podName(l.job.Name, task.Name, index)}]; is.ended(index) && !was.ended(index) &&
				!l.truth.endedAlive[uid] && !l.truth.foreign[uid] {
				fail("the end of a Pod that somebody had deleted counts: " + task.Name + " " + strconv.Itoa(int(index)))
			}
			kept := index < l.truth.leastReplicas[task.Name]
			marked := l.truth.marked[podName(l.job.Name, task.Name, index)]
			// A restart that waits, for a Pod which is gone or a task that has ended, joins the one
			// under way, and may be over with it, in one write.
			_, waits := was.waits[index]
			joins := is.joined.Has(index) || before.State.Phase == rs && (waits || was.done != nil)
			if was.ended(index) && !is.ended(index) && !restarts && kept && !marked && !joins {
				fail("an index that had ended has not: " + task.Name + " " + strconv.Itoa(int(index)))
			}
		}
	}
	clear(l.truth.leastReplicas)
	l.checkSeenEnds(after, fail)
	if succeeded != after.Succeeded || failed != after.Failed {
		fail("what has ended is not what is counted")
	}
}

// checkSeenEnds holds that what was seen to end, when the status was decided, is on record,
// unless it is restarted.
func (l *life) checkSeenEnds(after *batchv1alpha1.JobStatus, fail func(string)) {
	l.t.Helper()
	if job := l.truth.specs[after]; job == nil || len(Validate(job)) > 0 {
		return
	}
	part, isPart := readTarget(after.State.Message)
	for _, name := range l.truth.seenEnded[after] {
		taskName, index, _ := partsOf(l.job.Name, name)
		for _, spec := range effective(&l.truth.specs[after].Spec).Tasks {
			r := readRecord(after, taskName, spec.Replicas)
			restarted := after.State.Phase == rs && (isPart && part.has(&task{spec: &spec}, index) || r.joined.Has(index))
			if spec.Name == taskName && index < spec.Replicas && !r.ended(index) && !restarted {
				fail("the end of " + name + " was seen, and is not on record")
			}
		}
	}
}

// checkRestarted holds that all Pods of a part are new, or go, when its restart is over. Those of an
// older version, of which ends were kept at a resume, go for their version.
func (l *life) checkRestarted(before, after *batchv1alpha1.JobStatus, fail func(string)) {
	l.t.Helper()
	part, isPart := readTarget(before.State.Message)
	for _, spec := range effective(&l.job.Spec).Tasks {
		joined := readRecord(before, spec.Name, 10).joined
		for _, name := range l.ownPods() {
			pod := l.pod(name)
			taskName, index, _ := partsOf(l.job.Name, name)
			restarted := isPart && part.has(&task{spec: &spec}, index) || joined.Has(index)
			// A surplus Pod goes by the rescale.
			if taskName == spec.Name && restarted && index < spec.Replicas && versionOf(pod) == after.Version && retriesOf(pod) < after.RetryCount && pod.Annotations[KeyMark] == "" && !jobpods.IsBeingDeleted(pod) {
				fail("the restart is over, and has left " + name + " as it was")
			}
		}
	}
}

// checkCommand holds that a Command is executed once, while it is there, and that nothing
// is written before it is gone.
func (l *life) checkCommand(before, after *batchv1alpha1.JobStatus, fail func(string)) {
	l.t.Helper()
	was, is := commandOnRecord(before.State), commandOnRecord(after.State)
	if was != "" {
		for _, name := range l.names(KindCommand) {
			if l.objects[ObjectKey{KindCommand, name}].GetUID() == was {
				fail("the status is written before the Command is gone")
			}
		}
	}
	if is == "" || is == was {
		return
	}
	l.truth.executed[is]++
	c := l.truth.commands[is]
	switch {
	case l.truth.executed[is] > 1:
		fail("a Command is executed again")
	case c.Target.UID != l.job.UID:
		fail("a Command for another Job is executed")
	case reactionTo(before.State.Phase, c.Action) != changesPhase:
		fail("a Command is executed in a phase where it does nothing")
	}
}

// checkNaturalEnd counts anew whether a Job that runs had to end so.
func (l *life) checkNaturalEnd(before, after *batchv1alpha1.JobStatus, fail func(string)) {
	l.t.Helper()
	spec := l.truth.specs[after]
	if before.State.Phase != rr || after.State.Phase != cd && after.State.Phase != ff || spec == nil {
		return
	}
	e := effective(&spec.Spec)
	replicas, sum, lacks := int32(0), int32(0), false
	for _, task := range e.Tasks {
		replicas += task.Replicas
		sum += *task.MinAvailable
		lacks = lacks || readRecord(after, task.Name, task.Replicas).succeeded.Count() < *task.MinAvailable
	}
	want := ff
	switch {
	case e.MinSuccess != nil && after.Succeeded >= *e.MinSuccess:
		want = cd
	case after.Succeeded+after.Failed != replicas || replicas == 0:
		fail("it ends before its time")
	case e.MinAvailable >= sum && lacks, e.MinSuccess != nil:
	case after.Succeeded >= e.MinAvailable:
		want = cd
	}
	if after.State.Phase != want {
		fail("it ends as " + string(after.State.Phase) + ", want " + string(want))
	}
}

// checkAction holds that an action rests on what the API server has. The world has already
// done it.
func (l *life) checkAction(action plan.Action) {
	l.t.Helper()
	l.log("do    %s", action)
	status := l.written
	fail := func(what string) {
		l.t.Helper()
		l.t.Errorf("%s: %s while %s is persisted", what, action, transcript(status))
	}
	switch action.Verb {
	case plan.Delete, plan.Update:
		if action.UID == "" {
			fail("it does not say which")
		}
		if l.truth.foreign[action.UID] {
			fail("it is somebody else's")
		}
	}
	switch {
	case action.Verb == plan.Create && action.Kind == KindPod:
		l.checkCreation(action, fail)
	case action.Verb == plan.Update && action.Kind == KindPod:
		if pod := l.pod(action.Name); pod != nil && pod.UID == action.UID {
			l.truth.marked[action.Name] = true
		}
		if status.State.Phase != rs && hasPods(status.State.Phase) && !strings.HasPrefix(action.Content, "rescale") {
			fail("a Pod is marked while nothing restarts")
		}
	case action.Verb == plan.Delete && action.Kind == KindCommand:
		l.checkDismissal(action, fail)
	case action.Verb == plan.Delete && action.Kind == KindJob:
		ttl := l.job.Spec.TTLSecondsAfterFinished
		if ttl == nil || !isFinal(status.State.Phase) || l.now.Unix() < status.State.LastTransitionTime.Unix()+int64(*ttl) {
			fail("the Job is deleted too early")
		}
	}
}

// checkCreation holds that no Pod of an older version is beside a new one, and that a Pod
// is made for the version that is persisted.
func (l *life) checkCreation(action plan.Action, fail func(string)) {
	l.t.Helper()
	pod := l.pod(action.Name)
	if pod == nil || l.truth.foreign[pod.UID] {
		return
	}
	version := l.written.Version
	if !hasPods(l.written.State.Phase) && versionOf(pod) == version {
		fail("a Pod is made in this phase")
	}
	if versionOf(pod) != version {
		return // It was there.
	}
	for _, name := range l.ownPods() {
		other := l.pod(name)
		ended := other.Status.Phase == corev1.PodSucceeded || other.Status.Phase == corev1.PodFailed
		if versionOf(other) < version && !ended {
			fail("Pod " + name + " of version " + strconv.Itoa(int(versionOf(other))) + " is beside it")
		}
	}
	index, _ := strconv.Atoi(pod.Labels[batchv1alpha1.KeyTaskIndex])
	if readRecord(l.written, pod.Labels[batchv1alpha1.KeyTaskName], 10).ended(int32(index)) && pod.Status.Phase == corev1.PodPending &&
		pod.Status.StartTime == nil && l.wasJustMade(action) {
		fail("it has ended before")
	}
}

// wasJustMade says whether a creation has made a Pod rather than found it.
func (l *life) wasJustMade(action plan.Action) bool {
	pod := l.pod(action.Name)
	return pod.ResourceVersion == strconv.Itoa(l.rv)
}

// checkDeletion holds that a Pod that is about to be deleted goes for a reason: an action, a
// rescale, or the end.
func (l *life) checkDeletion(action plan.Action) {
	l.t.Helper()
	pod := l.pod(action.Name)
	if action.Verb != plan.Delete || action.Kind != KindPod || pod == nil || pod.UID != action.UID {
		return
	}
	status := l.written
	index, _ := strconv.Atoi(pod.Labels[batchv1alpha1.KeyTaskIndex])
	ended := readRecord(status, pod.Labels[batchv1alpha1.KeyTaskName], 10).ended(int32(index))
	switch {
	case pod.Annotations[KeyMark] != "":
	case versionOf(pod) < status.Version:
	case !isOpen(status.State.Phase):
	case ended:
	case podend.Of(pod).ByCluster() && !podend.IsAboutToBeDeleted(pod) && pod.DeletionTimestamp == nil:
	case podend.IsAboutToBeDeleted(pod) && !l.now.Before(jobpods.DeletionTime(pod).Add(deletionPatience)):
	default:
		l.t.Errorf("nothing asks for it: %s while %s is persisted", action, transcript(status))
	}
}

// checkDismissal holds that no Command is deleted that has still something to do.
func (l *life) checkDismissal(action plan.Action, fail func(string)) {
	l.t.Helper()
	c := l.truth.commands[action.UID]
	executed := l.truth.executed[action.UID] > 0
	useless := c.Target.UID != l.job.UID || c.Action == "Foo" || c.Action != busv1alpha1.ActionResumeJob && !isOpen(l.written.State.Phase) ||
		c.Action == busv1alpha1.ActionRestartJob && l.written.State.Phase == rs ||
		c.Action == busv1alpha1.ActionResumeJob && l.written.State.Phase != abd && l.written.State.Phase != ab
	if !executed && !useless {
		fail("a Command is lost")
	}
}

// checkEnd holds that a Job that is left alone comes to its end, with true numbers, and
// that nothing of it runs then.
func (l *life) checkEnd() {
	l.t.Helper()
	if l.deleted {
		return
	}
	s := l.written
	final := isFinal(s.State.Phase) || s.State.Phase == abd
	if !final && l.replicasOf(l.job) > 0 && !l.someTaskCannotStart() {
		l.t.Errorf("after peace the Job is %s", transcript(s))
	}
	if !final {
		return
	}
	for _, name := range l.ownPods() {
		if phase := l.pod(name).Status.Phase; phase != corev1.PodSucceeded && phase != corev1.PodFailed {
			l.t.Errorf("Pod %s is left %s: %s", name, phase, transcript(s))
		}
	}
	if s.Pending+s.Running+s.Terminating+s.Unknown > 0 {
		l.t.Errorf("Pods are counted that are gone: %s", transcript(s))
	}
	for _, kind := range []string{KindService, KindConfigMap, KindSecret, KindNetworkPolicy} {
		if names := l.names(kind); len(names) > 0 {
			l.t.Errorf("%s %v is left: %s", kind, names, transcript(s))
		}
	}
	if made := len(l.job.Spec.Volumes) > 0 && s.Succeeded+s.Failed > 0; made && len(l.names(KindClaim)) != 2 {
		l.t.Errorf("claims: %v", l.names(KindClaim))
	}
	if names := l.names(KindCommand); len(names) > 0 {
		l.t.Errorf("Commands %v are left", names)
	}
}

// someTaskCannotStart says whether a task waits for another that won't be ready any more.
func (l *life) someTaskCannotStart() bool {
	for _, task := range effective(&l.job.Spec).Tasks {
		if task.DependsOn == nil {
			continue
		}
		for _, needed := range effective(&l.job.Spec).Tasks {
			r := readRecord(l.written, needed.Name, needed.Replicas)
			if needed.Name == task.DependsOn.Name[0] && r.succeeded.Count() < *needed.MinAvailable {
				return true
			}
		}
	}
	return false
}
