// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build mutation

package volcano

import (
	"testing"

	"github.com/lockstep-k8s/lockstep/internal/testing/mutation"
)

// TestMutations shows that the tests bite: each mutation must make the random lives fail, or
// the tests that it names. "make mutations" runs it.
func TestMutations(t *testing.T) {
	suite := mutation.Suite{Default: "TestRandomLives", Arguments: []string{"-lives", "8000"}}
	suite.Run(t, mutations())
}

// TestMutationsFit shows that each mutation still changes something. "make test" runs it.
func TestMutationsFit(t *testing.T) {
	mutation.Fit(t, mutations())
}

func mutations() map[string]mutation.Mutation {
	const stories = "TestStories"
	return map[string]mutation.Mutation{
		"P1 dropped: Pods are made before the first status": {File: "phases.go",
			Old: "\td.persist(plan.PersistNow)\n\td.pause = true\n", New: "\td.persist(plan.PersistNow)\n\td.pause = len(d.Pods) > 0\n"},
		"P2 dropped: a step is taken from one that is not written": {File: "decide.go",
			Old: "if d.Persisted == nil || d.Persisted.State.Phase != d.next.State.Phase ||", New: "if d.Persisted == nil || false && d.Persisted.State.Phase != d.next.State.Phase ||"},
		"P5 dropped: a marked Pod is deleted while it is on record": {File: "actions.go", Tests: stories,
			Old: "if d.isOnRecord(m) {", New: "if false {"},
		"P5 dropped: a Pod is made for an index that has ended on record": {File: "actions.go", Tests: stories,
			Old: "if d.persistedOf(t).ended(index) {", New: "if false {"},
		"P6 dropped: the status is written before the Command is gone": {File: "commands.go",
			Old: "\t\td.hold = true\n\t\treturn false\n", New: "\t\treturn true\n"},
		"a Command that is on record is executed again": {File: "commands.go", Tests: "TestRandomLives|TestACommand",
			Old: "if c.UID != uid || c.DeletionTimestamp != nil || d.Gone[uid] {", New: "if c.UID != uid || true {"},
		"a Command needs no claim": {File: "commands.go", Tests: "TestRandomLives|TestACommand",
			Old: "case c.Annotations[KeyClaim] != strconv.Itoa(int(d.next.Version)):", New: "case false:"},
		"a claim counts for any version": {File: "commands.go", Tests: "TestACommand",
			Old: "case c.Annotations[KeyClaim] != strconv.Itoa(int(d.next.Version)):", New: "case c.Annotations[KeyClaim] == \"\":"},
		"a Command is deleted by a status that may be old": {File: "commands.go",
			Old: "if !d.Checked[c.UID] {", New: "if false {"},
		"Commands for other Jobs of the name count": {File: "commands.go",
			Old: "case c.Target.UID != d.Job.UID:", New: "case false:"},
		"Pods of an older version may be beside new ones": {File: "actions.go",
			Old: "left = left || m.version < d.next.Version && d.standing(m) == going", New: "left = left || false"},
		"whole restarts have no version": {File: "phases.go",
			Old: "case busv1alpha1.ActionRestartJob, busv1alpha1.ActionResumeJob:\n\t\td.next.Version++", New: "case busv1alpha1.ActionResumeJob:\n\t\td.next.Version++"},
		"stops have no version": {File: "phases.go",
			Old: "\td.enter(to, reason, message)\n\td.next.Version++\n", New: "\td.enter(to, reason, message)\n"},
		"a restart is not counted": {File: "phases.go",
			Old: "\td.next.RetryCount++\n", New: "\tif target == wholeJob {\n\t\td.next.RetryCount++\n\t}\n"},
		"a restart goes on before all its Pods have their marks": {File: "phases.go", Tests: stories + "|TestRandomLives",
			Old: "case len(d.unmarkedTargets()) > 0:", New: "case false:"},
		"Pods of a restart are not marked": {File: "actions.go", Tests: stories,
			Old: "\t\tcase onRecord.isOf(m):\n\t\t\td.mark(m, onRecord.String())", New: "\t\tcase onRecord.isOf(m):"},
		"Pods that were made after a restart are restarted": {File: "policies.go",
			Old: " || m.retries >= d.next.RetryCount {", New: " || false {"},
		"Pods are marked for what has joined before that is written": {File: "actions.go",
			Old: "case d.persistedOf(m.task).joined.Has(m.index):", New: "case true:"},
		"a restart that joins another is not on record": {File: "policies.go", Tests: "TestARestartThatJoins",
			Old: "t.record.joined.Set(index, true)", New: "t.record.joined.Set(index, false)"},
		"a restart ends while Pods are looked for that may be events": {File: "phases.go", Tests: "TestARestartThatJoins",
			Old: "case d.areMissing() || len(d.confirming) > 0:", New: "case d.areMissing():"},
		"what has joined one restart is restarted by the next": {File: "phases.go", Tests: "TestARestartThatJoins",
			Old: "\t\td.endJoins()\n", New: ""},
		"Pods of a part that joins are not looked for": {File: "policies.go", Tests: "TestAPodOfAPartThatJoins",
			Old: "\td.joined[part] = true\n\td.noteMissing(part)\n", New: "\td.joined[part] = true\n"},
		"the last restart is joined": {File: "policies.go",
			Old: "if d.isLastRestart() {", New: "if false {"},
		"what ends during a restart is not on record": {File: "members.go", Tests: "TestWhatEndsDuring",
			Old: "return m.version == d.next.Version && !d.isTarget(m)", New: "return hasPods(phase) && m.version == d.next.Version"},
		"what a restart has no use for is forgotten": {File: "record_moments.go", Tests: "TestAnEventThatARestart",
			Old: "p.delay == 0 && hasPods(d.next.State.Phase) ||", New: "p.delay == 0 ||"},
		"a Pod that is made Failed to be deleted has failed": {File: "../jobpods/ends.go", By: ".", Tests: "TestAPodOfALostNode",
			Old: "return pod.DeletionTimestamp != nil || orphaned(pod) != nil", New: "return pod.DeletionTimestamp != nil"},
		"what is kept of a Pod does not say who deletes it": {File: "../jobpods/keep.go", By: ".", Tests: "TestAPodOfALostNode",
			Old: "keep.Reason = condition.Reason", New: "keep.Reason = \"\""},
		"a Pod is deleted though it has ended since": {File: "actions.go", Tests: "TestASuccessThatAStop",
			Old: "deletion.Version = m.ResourceVersion", New: "deletion.Version = \"\""},
		"Pods are looked for while a Command goes": {File: "decide.go", Tests: "TestNothingIsLookedFor",
			Old: "clear(d.confirming)", New: ""},
		"objects of plugins go before the last Pod": {File: "actions.go", Tests: "TestAPodThatStillEnds",
			Old: "if d.counts().left() == 0 {", New: "if true {"},
		"the time of an eviction is not on record": {File: "record_moments.go", Tests: "TestADelayAfterAnEviction",
			Old: "r.lost.add(h.index, moment{at: h.at.Unix()})", New: ""},
		"an update that is refused is told to nobody": {File: "obstacle.go", Tests: "TestTheUserIsTold",
			Old: "d.warnOnce(ReasonFailedUpdate,", New: "_ = fmt.Sprint("},
		"a hash that was made in another way freezes a Job": {File: "effective_hash.go", Tests: "TestAHash",
			Old: "return strings.HasPrefix(hash, hashScheme)", New: "return hash != \"\""},
		"defaults that are filled in change a spec": {File: "effective_hash.go", Tests: "TestTheHash",
			Old: "fixed := *effective(spec)", New: "fixed := *spec.DeepCopy()"},
		"an unreadable spec limits restarts": {File: "reading.go", Tests: "TestASpecThatCantBeRead",
			Old: "batchv1alpha1.JobSpec{MaxRetry: math.MaxInt32}", New: "batchv1alpha1.JobSpec{MaxRetry: min(3, math.MaxInt32)}"},
		"Pods of other schedulers get a group": {File: "podtemplate.go", Tests: "TestAPodOfAnother",
			Old: "if spec.SchedulerName == b.gangScheduler {", New: "if true {"},
		"the end of a marked Pod is an event": {File: "events.go",
			Old: "case m.version != d.next.Version || m.isMarked() || d.isTarget(m):", New: "case m.version != d.next.Version || d.isTarget(m):"},
		"events of an older version count": {File: "events.go",
			Old: "case m.version != d.next.Version || m.isMarked() || d.isTarget(m):", New: "case m.isMarked() || d.isTarget(m):"},
		"a Pod that is missing is taken for gone without a look": {File: "policies.go", Tests: "TestAPodThatIsOnlyOutOfSight",
			Old: "if h.event == busv1alpha1.EventPodEvicted && h.member == nil && !d.confirmGone(h) {", New: "if false {"},
		"what has ended is forgotten with its Pod": {File: "members.go", Tests: stories + "|TestRandomLives",
			Old: "func (d *decision) followRecords() (goOn bool) {\n", New: "func (d *decision) followRecords() (goOn bool) {\n\tfor _, t := range d.tasks {\n\t\tt.record.succeeded.Clear()\n\t}\n"},
		"what has ended is made again": {File: "actions.go", Tests: stories + "|TestRandomLives",
			Old: "if t.record.ended(index) || t.member(index) != nil {", New: "if t.member(index) != nil {"},
		"a resumed Job runs all again": {File: "phases.go", Tests: stories,
			Old: "if action != busv1alpha1.ActionResumeJob && !lastTry {", New: "if !lastTry {"},
		"the last try forgets what has ended": {File: "phases.go", Tests: stories,
			Old: "if action != busv1alpha1.ActionResumeJob && !lastTry {", New: "if action != busv1alpha1.ActionResumeJob && (true || lastTry) {"},
		"a rescale is an event": {File: "actions.go", Tests: stories + "|TestRandomLives",
			Old: "\t\tcase d.isSurplus(m):\n\t\t\t// It gets its mark first.\n", New: "\t\tcase d.isSurplus(m):\n\t\t\td.act(jobpods.Deletion(KindPod, m.Pod))\n"},
		"too many restarts don't fail the Job": {File: "phases.go", Tests: stories,
			Old: "return d.next.RetryCount >= d.spec.MaxRetry }", New: "return d.next.RetryCount > d.spec.MaxRetry }"},
		"a stop ends before its Pods have": {File: "phases.go",
			Old: "c.left() > 0 || d.areMissing()", New: "c.left()-c.terminating > 0 || d.areMissing()"},
		"Pods that are to go count as if they stayed": {File: "counters.go", Tests: stories + "|TestRandomLives",
			Old: "case standing == going:", New: "case m.DeletionTimestamp != nil:"},
		"the Job ends although a task lacks its minimum": {File: "naturalend.go",
			Old: "if got := t.record.succeeded.Count(); got < t.minAvailable() {", New: "if got := t.record.succeeded.Count(); got < 0 {"},
		"minSuccess that is not reached is no failure": {File: "naturalend.go",
			Old: "case d.spec.MinSuccess != nil:", New: "case false:"},
		"a Job without replicas ends": {File: "naturalend.go",
			Old: "return verdict{}, d.replicas() == 0", New: "return verdict{}, false"},
		"the minimum of a gang follows after Pods have gone": {File: "actions.go", Tests: stories,
			Old: "\tif group {\n\t\td.planSurplus()\n\t}\n", New: "\td.planSurplus()\n"},
		"Pods are made before what they need": {File: "actions.go", Tests: stories,
			Old: "if objects := makes && d.planObjects(); objects && group {", New: "if objects := makes && (d.planObjects() || true); objects && group {"},
		"what a dying Pod comes to counts": {File: "../jobpods/ends.go", By: ".", Tests: "TestWhatADyingPod",
			Old: "return HasEnded(pod) && !IsBeingDeleted(pod)", New: "return HasEnded(pod)"},
		"a Job that is aborted goes after its time to live": {File: "ttl.go", Tests: stories,
			Old: "if !isFinal(d.next.State.Phase) ||", New: "if !isOver(d.next.State.Phase) ||"},
		"a finished Job goes at once": {File: "ttl.go",
			Old: "time.Duration(*ttl) * time.Second", New: "0 * time.Duration(*ttl)"},
		"Jobs of others are served": {File: "ownership.go", Tests: stories,
			Old: "case !d.ours:", New: "case false:"},
		"Pods are made of a template that has changed": {File: "obstacle.go", Tests: stories,
			Old: "case d.recordedHash() != d.hash:", New: "case false:"},
		"a delay begins anew with each controller": {File: "policies.go", Tests: stories,
			Old: "due: h.at.Add(p.delay)}", New: "due: d.since(h.what, time.Time{}).Add(p.delay)}"},
		"a task starts before what it depends on": {File: "dependson.go", Tests: stories,
			Old: "if !ready && on.Iteration != batchv1alpha1.IterationAny {", New: "if !ready && false {"},
		"a task is ready although its containers are not": {File: "dependson.go", Tests: stories,
			Old: "&& allReady(m.Pod) {", New: "{"},
		"all containers of a task that was restarted tell of it again": {File: "events.go", Tests: "TestATaskThatFails",
			Old: "if m == nil || d.standing(m) != alive {\n\t\t\treturn happening{}, false\n\t\t}", New: "if m == nil || d.standing(m) != alive {\n\t\t\tcontinue\n\t\t}"},
	}
}
