// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// persistRule is one row of the rules of persist before act: what has to be
// persisted, and what must not happen before that.
type persistRule struct {
	framework *frameworkv1.Framework
	// before leads to rest, just before the fact.
	before func(*world)
	// event leads to the fact.
	event func(*world)
	fact  func(*frameworkv1.FrameworkStatus) bool
	// gated says whether a plan has what has to wait.
	gated func(Plan) bool
}

// TestPersistBeforeAct leads Frameworks to a fact and withholds the write of it:
// neither in the round in which the fact arises nor after the failed write may
// happen what rests on it, and the write is asked for. Once the fact is
// persisted, it happens. P1 to P12 are the rules in the package's documentation.
func TestPersistBeforeAct(t *testing.T) {
	rules := []map[string]persistRule{attemptPersistRules(), taskPersistRules(), rescalePersistRules()}
	for _, rules := range rules {
		for name, tc := range rules {
			t.Run(name, func(t *testing.T) { tc.check(t) })
		}
	}
}

func (r persistRule) check(t *testing.T) {
	w := newWorld(t, r.framework)
	if r.before != nil {
		r.before(w)
	}
	if r.event != nil {
		r.event(w)
	}
	for range 20 {
		if w.controller == nil {
			w.controller = w.remembered(w.written)
		}
		plan := w.plan(w.controller.outcomes)
		persisted := w.controller.persisted
		if !r.fact(plan.Status) || persisted != nil && r.fact(persisted) {
			w.round()
			continue
		}
		if r.gated(plan) {
			t.Errorf("it happens while nobody can see what it rests on:\n%v", plan)
		}
		if plan.Persist < PersistSoon {
			t.Errorf("the write is not asked for: %v", plan)
		}

		w.controller.status = plan.Status
		failed := w.plan(nil)
		if r.gated(failed) {
			t.Errorf("it happens after the write has failed:\n%v", failed)
		}
		if failed.Persist < PersistSoon {
			t.Errorf("the write that has failed is not asked for again: %v", failed)
		}

		w.controller.persisted, w.controller.status, w.controller.current = plan.Status, plan.Status, true
		if after := w.plan(nil); !r.gated(after) {
			t.Errorf("it does not happen after the write:\n%v\n%s", after, transcript(after.Status))
		}
		return
	}
	t.Fatalf("what has to be persisted never comes; the status is %s", transcript(w.controller.status))
}

func attemptPersistRules() map[string]persistRule {
	retried := framework(role("w", 1))
	retried.Spec.RetryPolicy.MaxRetryCount = 1
	again := retried.DeepCopy()
	stopped := framework(role("w", 1))
	stopped.Spec.ExecutionType = frameworkv1.ExecutionStop
	created := framework(role("w", 1))
	created.Spec.ExecutionType = frameworkv1.ExecutionCreate
	created.Spec.Gang = &frameworkv1.GangSpec{}
	attempt := func(id int32, state frameworkv1.FrameworkState) func(*frameworkv1.FrameworkStatus) bool {
		return func(s *frameworkv1.FrameworkStatus) bool { return s.AttemptStatus.ID == id && s.State == state }
	}
	return map[string]persistRule{
		"P1 the ConfigMap is created after the attempt is known to be waiting for it": {
			framework: framework(role("w", 1)),
			fact:      attempt(0, frameworkv1.FrameworkAttemptCreationPending),
			gated:     plans(CreateConfigMap, "fw-attempt"),
		},
		"P1 the ConfigMap of the next attempt is created after the retry is known": {
			framework: retried,
			before:    func(w *world) { w.run(); w.end("w-0", 1); w.run() },
			event:     (*world).collectGarbage,
			fact:      attempt(1, frameworkv1.FrameworkAttemptCreationPending),
			gated:     plans(CreateConfigMap, "fw-attempt"),
		},
		"P1 the ConfigMap is created after it is known whether the attempt is a gang": {
			framework: created,
			before:    func(w *world) { w.run() },
			event:     func(w *world) { w.framework.Spec.ExecutionType = frameworkv1.ExecutionStart },
			fact:      func(s *frameworkv1.FrameworkStatus) bool { return s.AttemptStatus.Gang != nil },
			gated:     plans(CreateConfigMap, "fw-attempt"),
		},
		"P5 the ConfigMap is deleted after the end of the attempt is known": {
			framework: framework(role("w", 1)),
			before:    func(w *world) { w.run() },
			event:     (*world).stop,
			fact:      attempt(0, frameworkv1.FrameworkAttemptDeletionPending),
			gated:     plans(DeleteConfigMap, "fw-attempt"),
		},
		"P8 an attempt is retried, and logged, after it is known to be over": {
			framework: again,
			before:    func(w *world) { w.run(); w.end("w-0", 1); w.run() },
			event:     (*world).collectGarbage,
			fact:      attempt(0, frameworkv1.FrameworkAttemptCompleted),
			gated: func(p Plan) bool {
				return p.Status.AttemptStatus.ID == 1 || logs(OnFrameworkRetry)(p)
			},
		},
		"P8 a Framework completes after its attempt is known to be over": {
			framework: framework(role("w", 1)),
			before:    func(w *world) { w.run(); w.stop(); w.run() },
			event:     func(w *world) { w.endPod("fw-w-0"); w.collectGarbage() },
			fact:      attempt(0, frameworkv1.FrameworkAttemptCompleted),
			gated:     func(p Plan) bool { return p.Status.State == frameworkv1.FrameworkCompleted },
		},
		"P10 a Framework is deleted, and logged, after it is known to be completed": {
			framework: framework(role("w", 1)),
			before: func(w *world) {
				w.options.CompletedRetention = 0
				w.run()
				w.stop()
				w.run()
			},
			event: func(w *world) { w.endPod("fw-w-0"); w.collectGarbage() },
			fact:  attempt(0, frameworkv1.FrameworkCompleted),
			gated: func(p Plan) bool {
				return plans(DeleteFramework, "fw")(p) || logs(OnFrameworkDeletion)(p)
			},
		},
		"P11 nothing at all happens before the first status is written": {
			framework: stopped,
			fact:      func(*frameworkv1.FrameworkStatus) bool { return true },
			gated:     func(p Plan) bool { return len(p.Actions) > 0 },
		},
	}
}

func taskPersistRules() map[string]persistRule {
	retrying := func() *frameworkv1.Framework {
		f := framework(role("w", 1))
		f.Spec.TaskRoles[0].Task.RetryPolicy.MaxRetryCount = 1
		return f
	}
	return map[string]persistRule{
		"P2 the Pod of a task's next attempt is created after the retry is known": {
			framework: retrying(),
			before:    func(w *world) { w.run(); w.setPhase("fw-w-0", corev1.PodFailed, 1); w.run() },
			event:     func(w *world) { w.endPod("fw-w-0") },
			fact: func(s *frameworkv1.FrameworkStatus) bool {
				return taskOf(s, 0).AttemptStatus.ID == 1 && taskIs(0, frameworkv1.TaskAttemptCreationPending)(s)
			},
			gated: plans(CreatePod, "fw-w-0"),
		},
		"P4 a Pod is deleted by force after its shorter timeout is known": {
			framework: framework(role("w", 1)),
			before: func(w *world) {
				w.run()
				w.deletePod("fw-w-0", 0)
				w.run()
				w.now = w.now.Add(2 * time.Minute)
				w.run()
			},
			event: func(w *world) {
				w.framework.Spec.TaskRoles[0].Task.PodGracefulDeletionTimeoutSec = ptr.To[int64](60)
			},
			fact: func(s *frameworkv1.FrameworkStatus) bool {
				return *s.AttemptStatus.TaskRoleStatuses[0].PodGracefulDeletionTimeoutSec == 60
			},
			gated: plans(ForceDeletePod, "fw-w-0"),
		},
		"P4 a leftover Pod is deleted after its changed timeout is known": {
			framework: framework(role("w", 1)),
			before:    func(w *world) { w.run() },
			event: func(w *world) {
				w.framework.Spec.TaskRoles[0].Task.PodGracefulDeletionTimeoutSec = ptr.To[int64](60)
				leftover := w.pods["fw-w-0"].DeepCopy()
				leftover.Name, leftover.UID = "fw-w-7", w.NewUID()
				w.pods[leftover.Name] = leftover
				w.podChanged(leftover)
				w.controller.checked[leftover.UID] = true
			},
			fact: func(s *frameworkv1.FrameworkStatus) bool {
				return *s.AttemptStatus.TaskRoleStatuses[0].PodGracefulDeletionTimeoutSec == 60
			},
			gated: plans(DeletePod, "fw-w-7"),
		},
		"P6 a Pod is deleted after the end of the task's attempt is known": {
			framework: framework(role("w", 1)),
			before:    func(w *world) { w.run() },
			event:     func(w *world) { w.setPhase("fw-w-0", corev1.PodFailed, 1) },
			fact:      taskIs(0, frameworkv1.TaskAttemptDeletionPending),
			gated:     plans(DeletePod, "fw-w-0"),
		},
		"P7 a task is retried, and logged, after its attempt is known to be over": {
			framework: retrying(),
			before:    func(w *world) { w.run(); w.setPhase("fw-w-0", corev1.PodFailed, 1); w.run() },
			event:     func(w *world) { w.endPod("fw-w-0") },
			fact:      taskIs(0, frameworkv1.TaskAttemptCompleted),
			gated: func(p Plan) bool {
				return taskOf(p.Status, 0).AttemptStatus.ID == 1 || logs(OnTaskRetry)(p)
			},
		},
		"P7 a task completes after its attempt is known to be over": {
			framework: framework(role("w", 1)),
			before:    func(w *world) { w.run(); w.setPhase("fw-w-0", corev1.PodSucceeded, 0); w.run() },
			event:     func(w *world) { w.endPod("fw-w-0") },
			fact:      taskIs(0, frameworkv1.TaskAttemptCompleted),
			gated:     func(p Plan) bool { return taskIs(0, frameworkv1.TaskCompleted)(p.Status) },
		},
	}
}

func rescalePersistRules() map[string]persistRule {
	tolerant := func() *frameworkv1.Framework {
		f := framework(role("w", 3))
		f.Spec.TaskRoles[0].FrameworkAttemptCompletionPolicy.MinFailedTaskCount = ptr.To[int32](3)
		return f
	}
	scaleTo := func(number int32) func(*world) {
		return func(w *world) { w.framework.Spec.TaskRoles[0].TaskNumber = number }
	}
	running := func(w *world) {
		w.run()
		for _, name := range w.podNames() {
			w.setPhase(name, corev1.PodRunning, 0)
		}
		w.run()
	}
	marked := func(index int) func(*frameworkv1.FrameworkStatus) bool {
		return func(s *frameworkv1.FrameworkStatus) bool { return taskOf(s, index).DeletionPending }
	}
	drained := func(index int) func(*frameworkv1.FrameworkStatus) bool {
		return func(s *frameworkv1.FrameworkStatus) bool {
			return taskOf(s, index).DeletionPending && taskIs(index, frameworkv1.TaskCompleted)(s)
		}
	}
	return map[string]persistRule{
		"P2 the Pod of a task that a rescale adds is created after the task is known": {
			framework: framework(role("w", 1)),
			before:    running,
			event:     scaleTo(2),
			fact:      taskIs(1, frameworkv1.TaskAttemptCreationPending),
			gated:     plans(CreatePod, "fw-w-1"),
		},
		"P2 the Pod of a task that replaces a deleted one is created after the new one is known": {
			framework: framework(role("w", 2)),
			before:    func(w *world) { running(w); scaleTo(1)(w); w.run(); scaleTo(2)(w); w.run() },
			event:     func(w *world) { w.endPod("fw-w-1") },
			fact: func(s *frameworkv1.FrameworkStatus) bool {
				return !taskOf(s, 1).DeletionPending && taskIs(1, frameworkv1.TaskAttemptCreationPending)(s)
			},
			gated: plans(CreatePod, "fw-w-1"),
		},
		"P3 a running task is ended after it is known to be marked": {
			framework: framework(role("w", 2)),
			before:    running,
			event:     scaleTo(1),
			fact:      marked(1),
			gated:     func(p Plan) bool { return taskIs(1, frameworkv1.TaskAttemptDeletionPending)(p.Status) },
		},
		"P3 a Pod that was not yet seen is looked for after its task is known to be marked": {
			framework: framework(role("w", 2)),
			before:    func(w *world) { w.prompt = false; w.run(); w.deliver(configMapKind, 1); w.run() },
			event:     scaleTo(1),
			fact:      marked(1),
			gated:     plans(LookForPod, "fw-w-1"),
		},
		"P3 a completed task is removed, and logged, after it is known to be marked": {
			framework: tolerant(),
			before:    func(w *world) { running(w); w.end("w-2", 1); w.run() },
			event:     scaleTo(2),
			fact:      marked(2),
			gated:     func(p Plan) bool { return taskOf(p.Status, 2) == nil || logs(OnTaskDeletion)(p) },
		},
		"P3 a completed task is replaced after it is known to be marked": {
			framework: tolerant(),
			before: func(w *world) {
				running(w)
				w.end("w-1", 1)
				w.run()
				scaleTo(1)(w)
				w.run() // w-1 waits for w-2 at the tail, which still has its Pod.
			},
			event: scaleTo(3),
			fact:  func(s *frameworkv1.FrameworkStatus) bool { return !taskOf(s, 1).DeletionPending },
			gated: plans(CreatePod, "fw-w-1"),
		},
		"P9 a marked task is removed, and logged, after its end is known": {
			framework: framework(role("w", 2)),
			before:    func(w *world) { running(w); scaleTo(1)(w); w.run() },
			event:     func(w *world) { w.endPod("fw-w-1") },
			fact:      drained(1),
			gated:     func(p Plan) bool { return taskOf(p.Status, 1) == nil || logs(OnTaskDeletion)(p) },
		},
		"P9 a marked task is replaced, and logged, after its end is known": {
			framework: framework(role("w", 2)),
			before:    func(w *world) { running(w); scaleTo(1)(w); w.run(); scaleTo(2)(w); w.run() },
			event:     func(w *world) { w.endPod("fw-w-1") },
			fact:      drained(1),
			gated:     func(p Plan) bool { return !taskOf(p.Status, 1).DeletionPending || logs(OnTaskDeletion)(p) },
		},
		"P12 a completion policy is applied after the scale that came with it is known": {
			framework: tolerant(),
			before:    func(w *world) { running(w); w.end("w-0", 1); w.end("w-2", 2); w.run() },
			event: func(w *world) {
				scaleTo(2)(w)
				w.framework.Spec.TaskRoles[0].FrameworkAttemptCompletionPolicy.MinFailedTaskCount = ptr.To[int32](1)
			},
			fact:  marked(2),
			gated: func(p Plan) bool { return p.Status.AttemptStatus.CompletionStatus != nil },
		},
	}
}

// taskOf is the task of an index in the only role, or nil.
func taskOf(status *frameworkv1.FrameworkStatus, index int) *frameworkv1.TaskStatus {
	tasks := status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses
	if index >= len(tasks) {
		return nil
	}
	return tasks[index]
}

func taskIs(index int, state frameworkv1.TaskState) func(*frameworkv1.FrameworkStatus) bool {
	return func(s *frameworkv1.FrameworkStatus) bool {
		task := taskOf(s, index)
		return task != nil && task.State == state
	}
}

func plans(kind string, name string) func(Plan) bool {
	return func(p Plan) bool {
		return slices.ContainsFunc(p.Actions, func(a Action) bool { return a.Does() == kind && a.Name == name })
	}
}

func logs(trigger HistoryTrigger) func(Plan) bool {
	return func(p Plan) bool {
		return slices.ContainsFunc(p.History, func(h History) bool { return h.Trigger == trigger })
	}
}

// end lets the Pod of a task end with an exit code, and go as soon as the
// controller wants it to.
func (w *world) end(task string, exitCode int32) {
	name := fmt.Sprintf("%s-%s", w.framework.Name, task)
	phase := corev1.PodSucceeded
	if exitCode != 0 {
		phase = corev1.PodFailed
	}
	w.setPhase(name, phase, exitCode)
	w.run()
	w.endPod(name)
	w.run()
}

// stop is the user who stops the Framework.
func (w *world) stop() {
	w.framework.Spec.ExecutionType = frameworkv1.ExecutionStop
}
