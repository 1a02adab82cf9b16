// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build mutation

package lifecycle

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mutation is a change of one source file that makes it wrong.
type mutation struct {
	file string
	// old occurs once in the file.
	old, new string
	// tests, as a pattern, have to notice. Empty means the random lives, or for a
	// file of the parent package all of its tests.
	tests string
}

// TestMutations shows that the tests bite: each mutation, compiled in the place of
// the file it changes, must make the random lives fail, or the tests that it
// names. A mutation costs the seconds to compile its package and link one binary,
// which stops at the first failure. "make mutations" runs it.
func TestMutations(t *testing.T) {
	for name, m := range mutations() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m.check(t)
		})
	}
}

func (m mutation) check(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "lifecycle.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-ldflags=-s -w",
		"-overlay", m.overlay(t, dir), "-o", binary, "./"+filepath.Dir(m.file))
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the mutation does not compile: %v\n%s", err, output)
	}
	tests, arguments := cmp.Or(m.tests, "TestRandomLives"), []string{"-lives", "20000"}
	if filepath.Dir(m.file) != "." {
		tests, arguments = ".", nil
	}
	run := exec.CommandContext(t.Context(), binary, append([]string{"-test.failfast", "-test.run", tests}, arguments...)...)
	run.Dir = filepath.Dir(m.file)
	output, err := run.CombinedOutput()
	if err == nil {
		t.Fatalf("%s has not noticed", tests)
	}
	t.Logf("noticed: %.400s", output)
}

// overlay writes the mutated file, and says for the compiler what it replaces.
func (m mutation) overlay(t *testing.T, dir string) string {
	t.Helper()
	source, err := os.ReadFile(m.file)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), m.old); n != 1 {
		t.Fatalf("%s has %d times, want once:\n%s", m.file, n, m.old)
	}
	original, err := filepath.Abs(m.file)
	if err != nil {
		t.Fatal(err)
	}
	mutated := filepath.Join(dir, filepath.Base(m.file))
	if err := os.WriteFile(mutated, []byte(strings.Replace(string(source), m.old, m.new, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(map[string]map[string]string{"Replace": {original: mutated}})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return overlay
}

func mutations() map[string]mutation {
	const (
		persist = "TestPersistBeforeAct"
		traces  = "TestTraces"
	)
	return map[string]mutation{
		"P1 dropped: the ConfigMap is created at once": {file: "actions.go", tests: persist,
			old: "case !d.creationPersisted():\n\t\td.persist(PersistNow)\n\tcase len", new: "case len"},
		"P2 dropped: Pods are created at once": {file: "actions.go",
			old: "case persisted == nil || persisted.State != task.State || persisted.DeletionPending != task.DeletionPending:",
			new: "case false:"},
		"P3 dropped: a mark that is not written counts": {file: "rescale.go",
			old: " || written.DeletionPending != task.DeletionPending", new: ""},
		"P4 dropped: a timeout that is not written counts": {file: "rescale.go",
			old: "!ptr.Equal(persisted.PodGracefulDeletionTimeoutSec, role.PodGracefulDeletionTimeoutSec)", new: "false"},
		"P5 dropped: the ConfigMap is deleted at once": {file: "actions.go",
			old: "if d.Persisted == nil || d.Persisted.AttemptStatus.CompletionStatus == nil {", new: "if false {"},
		"P6 dropped: Pods are deleted at once": {file: "actions.go",
			old: "case persisted == nil || persisted.AttemptStatus.CompletionStatus == nil ||\n\t\t\tpersisted.State != frameworkv1.TaskAttemptDeletionPending:",
			new: "case false:"},
		"P7 dropped: a task is retried at once": {file: "task.go",
			old: "if persisted == nil || persisted.State != frameworkv1.TaskAttemptCompleted {",
			new: "if persisted == nil && false {"},
		"P8 dropped: an attempt is retried at once": {file: "framework.go",
			old: "if d.Persisted == nil || d.Persisted.State != frameworkv1.FrameworkAttemptCompleted ||\n\t\td.Persisted.AttemptStatus.ID != d.next.AttemptStatus.ID {",
			new: "if false {"},
		"P9 dropped: a marked task is removed at once": {file: "rescale.go",
			old: "if persisted == nil || persisted.State != frameworkv1.TaskCompleted {",
			new: "if persisted == nil && false {"},
		"P10 dropped: the Framework is deleted at once": {file: "actions.go", tests: persist,
			old: "if d.Persisted == nil || d.Persisted.State != frameworkv1.FrameworkCompleted {", new: "if false {"},
		"P11 and P12 dropped: a scale that is not written counts": {file: "decide.go",
			old: "if !d.scalePersisted() || !d.gangPersisted() {", new: "if d.Persisted == nil {"},
		"the memory is taken for what is persisted": {file: "decide.go",
			old: "d := newDecision(snapshot, now, entropy)",
			new: "snapshot.Persisted = snapshot.Status\n\td := newDecision(snapshot, now, entropy)"},
		"adoption dropped: a crash costs the Pods whose UID is not on record": {file: "adoption.go",
			old: "\tt.taskBecomesCreationRequested(pod.UID)\n", new: "\tif true {\n\t\treturn\n\t}\n\tt.taskBecomesCreationRequested(pod.UID)\n"},
		"adoption dropped: a crash costs the ConfigMap whose UID is not on record": {file: "adoption.go",
			old: "d.ConfigMap != nil && d.creationPersisted() && d.isAwaitedConfigMap()", new: "false"},
		"a ConfigMap of another attempt is adopted": {file: "adoption.go", tests: "TestTraces|TestAdoption",
			old: " &&\n\t\td.ConfigMap.Annotations[frameworkv1.KeyFrameworkAttemptID] == strconv.Itoa(int(d.next.AttemptStatus.ID))", new: ""},
		"a ConfigMap that does not wait for its Pods is adopted": {file: "adoption.go", tests: "TestAdoption",
			old: "return waitsForPods && ", new: "_ = waitsForPods\n\treturn "},
		"a Pod of another task is adopted": {file: "adoption.go", tests: traces,
			old: "\t\tpod.Annotations[frameworkv1.KeyTaskUID] == string(task.InstanceUID) &&\n", new: ""},
		"a Pod of another attempt of the task is adopted": {file: "adoption.go", tests: "TestAdoption",
			old: " &&\n\t\tpod.Annotations[frameworkv1.KeyTaskAttemptID] == strconv.Itoa(int(task.AttemptStatus.ID))", new: ""},
		"a Pod of another role is adopted": {file: "adoption.go", tests: "TestAdoption",
			old: "\t\tpod.Annotations[frameworkv1.KeyTaskRoleUID] == string(t.role.InstanceUID) &&\n", new: ""},
		"a Pod outside of the gang is adopted": {file: "adoption.go", tests: "TestAdoption",
			old: " && inGroup == t.d.isGang() &&", new: " && (inGroup || true) &&"},
		"a Pod that its ConfigMap does not wait for is adopted": {file: "adoption.go", tests: "TestAdoption",
			old: " &&\n\t\tcontroller.BlockOwnerDeletion != nil && *controller.BlockOwnerDeletion", new: ""},
		"an adopted Pod begins to run when it is adopted": {file: "adoption.go", tests: "TestAdoption",
			old: "if !t.d.adopted[pod.UID] ||", new: "if true ||"},
		"leftovers are deleted by a status that may be old": {file: "actions.go",
			old: "case d.Current:", new: "case true:"},
		"an attempt begins while Pods of the one before live": {file: "actions.go",
			old: "case len(d.Pods) == 0:", new: "default:"},
		"a ConfigMap that is out of sight is taken for gone": {file: "framework.go",
			old: "d.ConfigMap == nil && uid != nil && !d.Gone[*uid]", new: "false"},
		"a Pod that is out of sight is taken for gone": {file: "task.go",
			old: "t.status().State == frameworkv1.TaskAttemptDeleting || t.d.Gone[*attempt.PodUID] ||", new: "true ||"},
		"an attempt ends with its ConfigMap while Pods live": {file: "framework.go",
			old: "case d.anyPodLeft():", new: "case false:"},
		"deletions are timed by the clock of the API server": {file: "actions.go", tests: traces,
			old: "return task.TransitionTime", new: "return metav1.NewTime(pod.DeletionTimestamp.Add(-30e9))"},
		"leftover Pods stay": {file: "actions.go",
			old: "if d.recorded == len(d.Pods) {", new: "if true {"},
		"a leftover ConfigMap stays": {file: "actions.go", tests: "TestAdoption",
			old: "case d.ConfigMap.DeletionTimestamp == nil && !d.Deleted[d.ConfigMap.UID]:", new: "case false:"},
		"a mark is taken back": {file: "rescale.go",
			old: "for index := int32(len(role.TaskStatuses)); index < spec.TaskNumber; index++ {",
			new: "for index := range min(len(role.TaskStatuses), int(spec.TaskNumber)) {\n\t\t\tcursor{d: d, role: role, index: index}.edit().DeletionPending = false\n\t\t}\n\t\tfor index := int32(len(role.TaskStatuses)); index < spec.TaskNumber; index++ {"},
		"another Pod of the same name counts": {file: "task.go",
			old: " || pod.UID != *attempt.PodUID", new: ""},
		"another ConfigMap of the same name counts": {file: "framework.go", tests: traces,
			old: "return d.ConfigMap != nil && uid != nil && d.ConfigMap.UID == *uid", new: "return d.ConfigMap != nil && uid != nil"},
		"the end of a task is overwritten": {file: "transition.go",
			old: "if task.AttemptStatus.CompletionStatus != nil {\n\t\treturn\n\t}", new: ""},
		"tasks outlive the decision on their attempt": {file: "transition.go",
			old: "if t.status().AttemptStatus.CompletionStatus == nil {\n\t\t\tt.edit()", new: "if false {\n\t\t\tt.edit()"},
		"marked tasks count for the completion policy": {file: "completion.go",
			old: "task.DeletionPending || ", new: ""},
		"the completion policy counts one too few": {file: "completion.go",
			old: "len(tasks) < int(threshold)", new: "len(tasks) < max(1, int(threshold)-1)"},
		"Pods are created for marked tasks": {file: "actions.go",
			old: "case !t.wanted():", new: "case false:"},
		"a stop does not look for the ConfigMap": {file: "framework.go",
			old: "d.stopRequested() && d.configMapCleaned && len(d.Pods) == 0", new: "d.stopRequested()"},
		"a ConfigMap that is not seen is given up without a look": {file: "framework.go",
			old: "case !d.configMapCleaned:\n\t\t// planActions sees to it.", new: ""},
		"a Pod that is not seen is given up without a look": {file: "task.go",
			old: "if !t.d.podsCleaned[t.status().AttemptStatus.PodName] {", new: "if false {"},
		"a marked task is given up without a look for its Pod": {file: "task.go",
			old: "!t.wanted() && t.d.podsCleaned[t.status().AttemptStatus.PodName]", new: "!t.wanted()"},
		"a retry of the Framework is not counted": {file: "transition.go",
			old: "retries.TotalRetriedCount++\n\tif accountable {\n\t\tretries.", new: "if accountable {\n\t\tretries."},
		"the ConfigMap does not wait for its Pods": {file: "configmap.go",
			old: "Finalizers:  []string{metav1.FinalizerDeleteDependents},", new: ""},
		"a Pod is deleted by force at once": {file: "actions.go",
			old: "!d.Forced[pod.UID] && d.due(since, timeout)", new: "!d.Forced[pod.UID] && (true || d.due(since, timeout))"},
		"a marked task is removed before it is completed": {file: "rescale.go",
			old: "!task.DeletionPending || task.State != frameworkv1.TaskCompleted {\n\t\treturn false\n\t}\n\tpersisted := t.persisted()\n\tif persisted == nil || persisted.State != frameworkv1.TaskCompleted {",
			new: "!task.DeletionPending {\n\t\treturn false\n\t}\n\tpersisted := t.persisted()\n\tif persisted == nil {"},
		"an attempt that is over is rescaled": {file: "rescale.go",
			old: "return !d.completing() && d.next.State != frameworkv1.FrameworkAttemptCompleted", new: "return true"},
		"the loss of the ConfigMap goes unnoticed": {file: "framework.go",
			old: "case d.ownConfigMap():\n\t\t\tif", new: "case true:\n\t\t\tif d.ConfigMap == nil {\n\t\t\t\treturn true\n\t\t\t}\n\t\t\tif"},
		"the loss of a Pod goes unnoticed": {file: "task.go",
			old: "if t.podIsGone() {\n\t\t\tt.taskBecomes", new: "if false {\n\t\t\tt.taskBecomes"},
		"a completed Framework is deleted at once": {file: "actions.go",
			old: "!d.due(d.next.TransitionTime, d.Options.CompletedRetention)", new: "d.Options.CompletedRetention < 0"},
		"Pods of a gang don't wait for the PodGroup": {file: "actions.go",
			old: "case groupReady:\n\t\t\tact(CreatePod", new: "default:\n\t\t\tact(CreatePod"},
		"P1 dropped: it is not known whether the attempt is a gang": {file: "rescale.go", tests: persist,
			old: " || !d.gangPersisted()", new: ""},
		"a change of the spec makes a gang of a running attempt": {file: "gang.go",
			old: "if attempt.Gang != nil {\n\t\treturn true\n\t}\n\tswitch", new: "if attempt.Gang != nil && !d.mayBegin() {\n\t\treturn true\n\t}\n\tswitch"},
		"an attempt of an older version becomes what the spec says": {file: "gang.go", tests: "OlderVersion",
			old: "case d.PodGroup != nil || attempt.PodGroup != nil:", new: "case false:"},
		"an attempt of an older version becomes a gang without members": {file: "gang.go", tests: "OlderVersion",
			old: "case d.anyPodRecorded():", new: "case false:"},
		"the class of a gang changes while it runs": {file: "gang.go", tests: "TestAGangKeepsTheClassThatItBeganWith",
			old: "spec.PriorityClassName = d.next.AttemptStatus.Gang.PriorityClassName", new: ""},
		"a PodGroup has a name that no label holds": {file: "configmap.go", tests: "TestTheGangOfAFrameworkWithALongNameIsPlaced",
			old: "frameworkv1.PodGroupName(framework.Name)", new: "attempt.ConfigMapName"},
		"Pods name another PodGroup than theirs": {file: "pod.go", tests: "TestTheGangOfAFrameworkWithALongNameIsPlaced",
			old: "frameworkv1.PodGroupName(b.framework.Name)", new: "b.attempt.ConfigMapName"},
		"a Pod that was refused counts as created": {file: "actions.go",
			old: "if outcome.Refused != nil {", new: "if false {"},
		"a status is believed that says of no Pod that it runs": {file: "../../apis/framework/statuscodec/check.go",
			old: "if task.State.Associated() && attempt.PodUID == nil {", new: "if false {"},
		"a compressed status may unfold to anything": {file: "../../apis/framework/statuscodec/compress.go",
			old: "objects > maxDecompressedObjects", new: "objects < 0"},
		"a spec is believed that makes no sense": {file: "../frameworks.go",
			old: "entry.decodeError = lifecycle.CheckSpec(&entry.Spec)", new: "_ = lifecycle.CheckSpec(&entry.Spec)"},
		"a stop is retried": {file: "retry.go",
			old: "case frameworkv1.CodeStopFrameworkRequested,\n\t\tframeworkv1.CodeFrameworkAttemptCompletion,", new: "case frameworkv1.CodeFrameworkAttemptCompletion,"},
		"a deleted Framework begins another attempt": {file: "actions.go",
			old: " || d.Framework.DeletionTimestamp != nil:\n\tcase !d.creation", new: ":\n\tcase !d.creation"},
		"a Pod is deleted by name": {file: "actions.go",
			old: "act(DeletePod, *task.AttemptStatus.PodUID)", new: "act(DeletePod, \"\")"},
		"the cached status is taken for the last one written": {file: "../memory.go",
			old: "ok && known.memory.uid == entry.UID", new: "ok && known.memory.uid == \"\""},
		"a Framework inherits the memory of one of its name": {file: "../memory.go",
			old: "ok && known.memory.uid == entry.UID", new: "ok"},
		"a new leader overwrites what its cache has not seen": {file: "../status.go",
			old: "if !p.pace.Writes.Any() {", new: "if false {"},
		"a controller begins with any old state": {file: "../informers.go",
			old: "options.ResourceVersion == \"0\"", new: "false"},
		"a status counts as persisted although its write failed": {file: "../status.go",
			old: "\tif err != nil {\n\t\treturn fmt.Errorf(\"writing the status: %w\", err)", new: "\tm.persisted = m.status\n\tif err != nil {\n\t\treturn fmt.Errorf(\"writing the status: %w\", err)"},
		"deletions don't name a UID": {file: "../apply.go",
			old: "Preconditions:     metav1.NewUIDPreconditions(string(uid)),", new: ""},
		"a deletion is not confirmed": {file: "../apply.go",
			old: "return fmt.Errorf(\"it is still there after its deletion was accepted\")", new: "return nil"},
		"what is left of a plan outlives a change of the Framework": {file: "../memory.go",
			old: " && m.generation == entry.Generation", new: ""},
		"a Framework is synced again while requests are under way": {file: "../controller.go",
			old: "\tdefer c.queue.Done(key)\n", new: "\tc.queue.Done(key)\n"},
		"a task that has changed is stored as it was": {file: "../../apis/framework/statuscodec/encode.go",
			old: "tasks[task] = data", new: "tasks[role.TaskStatuses[0]] = data"},
		"the history is written after the status": {file: "../pass.go",
			old: "\tc.logHistory(plan.History)\n", new: "\tdefer func() {\n\t\tif p.memory.persisted == plan.Status {\n\t\t\tc.logHistory(plan.History)\n\t\t}\n\t}()\n"},
		"the history is a format": {file: "../history.go",
			old: "klog.Info(message, \": \", string(trigger), \": ObjectSnapshot: \", string(data))", new: "klog.Infof(message + \": \" + string(trigger) + \": ObjectSnapshot: \" + string(data))"},
		"a conflict is retried without a delay": {file: "retry.go", tests: traces,
			old: "return retryDecision{retry: true, delay: *a.conflictDelay}", new: "return retryDecision{retry: true}"},
		"what ends at once is retried at once": {file: "retry.go", tests: "TestHopelessAttempts",
			old: "if decision.retry && a.quick {", new: "if false {"},
		"an attempt that could not create a Pod is retried at once": {file: "retry.go", tests: traces,
			old: "couldNotCreatePod(completion) ||\n", new: "false && couldNotCreatePod(completion) ||\n"},
		"a task that could not create a Pod is retried at once": {file: "retry.go", tests: "TestQuickEnds",
			old: "attempt.PodUID == nil || endedQuickly", new: "endedQuickly"},
		"conditions of others are lost": {file: "conditions.go",
			old: "\t\t\tmerged = append(merged, condition)\n\t\t} else if", new: "\t\t} else if"},
		"a condition that went before it was written is written": {file: "decide.go", tests: "TestABlockThat",
			old: "{d.Status, d.Persisted} {\n\t\tif known", new: "{d.Status} {\n\t\tif known"},
		"a condition that comes back has a new time": {file: "conditions.go", tests: "TestABlockThat",
			old: "for _, status := range []*frameworkv1.FrameworkStatus{d.Persisted, d.Status} {", new: "for _, status := range []*frameworkv1.FrameworkStatus{d.Status} {"},
		"creations of an attempt that has ended are blocked": {file: "conditions.go", tests: "TestABlockIsTold|TestRandomLives",
			old: "if d.completing() || d.next.State == frameworkv1.FrameworkAttemptCompleted || ", new: "if "},
		"a block is told again and again": {file: "conditions.go", tests: "TestBlockedTasksAreTold",
			old: "if !d.wasTold(condition) {", new: "if true {"},
		"Pods of a gang don't have its class": {file: "pod.go", tests: "TestPodsOfAGangHaveItsClass",
			old: "\tb.giveClass(pod)\n", new: ""},
		"a value of a template meets the class of a gang": {file: "priority.go", tests: "TestPodsOfAGangHaveItsClass",
			old: " && pod.Spec.Priority == nil", new: ""},
		"a missing class fails the attempt": {file: "createerror.go", tests: "TestAClassThatDoesNotExist",
			old: ", strings.Contains(message, noPriorityClass):\n\t\treturn nil", new: ":\n\t\treturn nil"},
		"a gang is timed by the clock of the API server": {file: "gang.go", tests: "TestAGangThat",
			old: "seen.CreationTime = d.timeNow()", new: "created := group.CreationTimestamp\n\t\tseen.CreationTime = &created"},
		"times of a gang are written when there is time": {file: "gang.go", tests: "TestAGangThat",
			old: "!group.UnknownSince.Equal(written.UnknownSince) {", new: "!group.UnknownSince.Equal(written.UnknownSince) && false {"},
		"a scale-up starts the recovery of a gang": {file: "recovery.go", tests: "TestAGangThatCouldGoOn",
			old: "case task.RunTime == nil && task.RetryPolicyStatus.TotalRetriedCount == 0:", new: "case false:"},
		"a member that has not run was never there": {file: "recovery.go", tests: "TestAGangThatDoesNot",
			old: "case task.RunTime == nil && task.RetryPolicyStatus.TotalRetriedCount == 0:", new: "case task.RunTime == nil:"},
		"a gang waits for members that it does not need": {file: "recovery.go", tests: "TestAGangThatCouldGoOn",
			old: "c.lost > 0 && c.up < min(minimum, c.up+c.lost)", new: "c.lost > 0 && c.up < c.up+c.lost"},
		"the minimum of a role does not count": {file: "recovery.go", tests: "TestAGangThatDoesNot",
			old: "look(roles[role], minimum)", new: "look(roles[role], 0*minimum)"},
		"the controller's own delays count for the recovery": {file: "recovery.go", tests: "TestAGangThatCouldGoOn",
			old: "case frameworkv1.TaskAttemptPreparing:\n\t\tcount.waiting", new: "default:\n\t\tcount.waiting"},
		"a recovery that was over goes on": {file: "recovery.go", tests: "TestAGangThat",
			old: "case !waiting && !coming:", new: "case !waiting && !coming && false:"},
		"a restart begins the recovery anew": {file: "recovery.go", tests: "TestAGangThatDoesNot",
			old: "case !waiting && !coming:", new: "case !waiting && (coming || true):"},
		"a gang ends while its members are on their way": {file: "gang.go", tests: "TestAGangThatCouldGoOn",
			old: "timeout > 0 && d.waitsForMembers &&", new: "timeout > 0 &&"},
		"a refused creation is not waited for": {file: "recovery.go", tests: "TestAGangThatDoesNot",
			old: "case blocked:", new: "case false:"},
		"a member that is placed is not back": {file: "recovery.go", tests: "TestAGangThatCouldGoOn",
			old: "return attempt.PodNodeName != nil && *attempt.PodNodeName != \"\"", new: "return false"},
		"a spec with too many tasks in all is believed": {file: "check.go", tests: "TestSpecThat",
			old: "if total > frameworkv1.MaxTasks {", new: "if total < 0 {"},
		"a transition that no comment tells": {file: "transition.go", tests: "TestExitsOfStates",
			old: "return []frameworkv1.FrameworkState{creationPending, completed}", new: "return []frameworkv1.FrameworkState{creationPending, completed, running}"},
		"a stop waits for the delay of a retry": {file: "framework.go", tests: traces,
			old: "if !d.stopRequested() && !d.due(", new: "if !d.due("},
	}
}
