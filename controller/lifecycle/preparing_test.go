// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// preparing is a world with a Framework of one task, which may prepare for 100 seconds.
func preparing(t *testing.T, gang *frameworkv1.GangSpec) *world {
	t.Helper()
	f := framework(role("w", 1))
	f.Spec.TaskRoles[0].PreparingTimeoutSeconds = ptr.To[int32](100)
	f.Spec.Gang = gang
	w := newWorld(t, f)
	w.run()
	return w
}

// codeOfTask is that of the end of the task's attempt, and false if it goes on.
func codeOfTask(status *frameworkv1.FrameworkStatus) (frameworkv1.CompletionCode, bool) {
	if end := taskNamed(status, "fw-w-0").AttemptStatus.CompletionStatus; end != nil {
		return end.Code, true
	}
	return 0, false
}

// TestAPodThatDoesNotRunInTimeEnds with a code of its own and what it waited for, and the rules of
// retries decide what follows.
func TestAPodThatDoesNotRunInTimeEnds(t *testing.T) {
	w := preparing(t, nil)
	w.waitsFor("fw-w-0", "ImagePullBackOff")
	w.after(99 * time.Second)
	if code, ended := codeOfTask(w.written); ended {
		t.Fatalf("the task has ended with %d before its time", code)
	}
	w.after(2 * time.Second)
	w.settles()
	end := w.written.AttemptStatus.CompletionStatus
	if end == nil || end.Code != frameworkv1.CodePodPreparingTimeout || end.Phrase != "PodPreparingTimeout" ||
		!strings.Contains(end.Diagnostics, "1m40s") || !strings.Contains(end.Diagnostics, "ImagePullBackOff") || len(end.Type.Attributes) > 0 {
		t.Errorf("the attempt is %s, and has ended with %+v", w.written.State, end)
	}
	if w.written.History[0].TaskAttempts.Failures != 1 {
		t.Errorf("it is no failure: %+v", w.written.History[0].TaskAttempts)
	}
}

// TestTheTimeToPrepareSurvivesARestart of the controller, however often.
func TestTheTimeToPrepareSurvivesARestart(t *testing.T) {
	w := preparing(t, nil)
	for range 10 {
		w.after(10 * time.Second)
		w.crash()
	}
	w.after(2 * time.Second)
	if code, ended := codeOfTask(w.written); !ended || code != frameworkv1.CodePodPreparingTimeout {
		t.Errorf("the Framework is %s after 102 s with ten controllers", w.written.State)
	}
}

// TestAnEndRestsOnATimeThatIsWritten: what only a controller knows that dies is none.
func TestAnEndRestsOnATimeThatIsWritten(t *testing.T) {
	w := preparing(t, nil)
	w.waitsFor("fw-w-0", "ImagePullBackOff")
	w.writeFrom = PersistSoon // What gates nothing is not written in time.
	w.written = frameworkv1.ShareTasks(w.written)
	task := cursor{role: w.written.AttemptStatus.TaskRoleStatuses[0]}.edit()
	task.AttemptStatus.PreparingSince = nil
	w.crash()
	w.after(99 * time.Second)
	for _, known := range tasksByUID(w.written) {
		if known.AttemptStatus.PreparingSince != nil {
			t.Fatal("the time is written, and nothing is shown")
		}
	}
	var order []string
	w.onWrite = func(_, after *frameworkv1.FrameworkStatus) {
		for _, known := range tasksByUID(after) {
			switch {
			case known.AttemptStatus.CompletionStatus != nil:
				order = append(order, "end")
			case known.AttemptStatus.PreparingSince != nil:
				order = append(order, "since")
			}
		}
	}
	w.after(3 * time.Second)
	if first := slices.Index(order, "end"); first < 1 || order[0] != "since" {
		t.Errorf("written are %v, want the time before the end", order)
	}
}

// TestAGangThatWaitsInLineIsNotOutOfTime: it prepares from when its Pods have nodes.
func TestAGangThatWaitsInLineIsNotOutOfTime(t *testing.T) {
	w := preparing(t, &frameworkv1.GangSpec{})
	w.after(10 * time.Minute)
	if code, ended := codeOfTask(w.written); ended {
		t.Fatalf("the gang has ended with %d in the line", code)
	}
	w.waitsFor("fw-w-0", "ContainerCreating")
	w.after(99 * time.Second)
	if code, ended := codeOfTask(w.written); ended {
		t.Fatalf("the gang has ended with %d, 99 s after it was placed", code)
	}
	w.after(2 * time.Second)
	if code, _ := codeOfTask(w.written); code != frameworkv1.CodePodPreparingTimeout {
		t.Errorf("the gang is %s, 101 s after it was placed", w.written.State)
	}
}

// TestATaskThatIsNoGangMustHaveAPlaceInTime: nothing else bounds its wait.
func TestATaskThatIsNoGangMustHaveAPlaceInTime(t *testing.T) {
	w := preparing(t, nil)
	w.after(102 * time.Second)
	if code, _ := codeOfTask(w.written); code != frameworkv1.CodePodPreparingTimeout {
		t.Errorf("the Framework is %s after 102 s without a place", w.written.State)
	}
}

// TestAPodThatRunsIsNotOutOfTime, nor one whose time was taken back.
func TestAPodThatRunsIsNotOutOfTime(t *testing.T) {
	for name, spared := range map[string]func(*world){
		"it runs": func(w *world) { w.runPods() },
		"it may take forever": func(w *world) {
			w.editNow(func(s *frameworkv1.FrameworkSpec) { s.TaskRoles[0].PreparingTimeoutSeconds = nil })
		},
		"it may take longer": func(w *world) {
			w.editNow(func(s *frameworkv1.FrameworkSpec) { s.TaskRoles[0].PreparingTimeoutSeconds = ptr.To[int32](10000) })
		},
		"its node does not answer": func(w *world) { w.setPhase("fw-w-0", corev1.PodUnknown, 0); w.run() },
	} {
		t.Run(name, func(t *testing.T) {
			w := preparing(t, nil)
			w.after(50 * time.Second)
			spared(w)
			w.after(5 * time.Minute)
			if code, ended := codeOfTask(w.written); ended {
				t.Errorf("the task has ended with %d", code)
			}
		})
	}
}

// TestAPodThatRunsIsNotEndedByAWatchThatIsBehind: before a task ends by its time, the API server is asked.
func TestAPodThatRunsIsNotEndedByAWatchThatIsBehind(t *testing.T) {
	w := preparing(t, nil)
	w.after(50 * time.Second)
	w.prompt = false
	w.setPhase("fw-w-0", corev1.PodRunning, 0)
	w.after(5 * time.Minute)
	if code, ended := codeOfTask(w.written); ended {
		t.Errorf("the task has ended with %d, and runs", code)
	}
	if task := taskNamed(w.written, "fw-w-0"); task.State != frameworkv1.TaskAttemptRunning {
		t.Errorf("the task is %s, and its Pod was seen to run", task.State)
	}
	w.deliverAll()
	w.after(time.Minute)
	if code, ended := codeOfTask(w.written); ended {
		t.Errorf("the task has ended with %d when the watch was as new", code)
	}
}

// TestTheAPIServerIsAskedOnceForAnEnd, and not before the time is over.
func TestTheAPIServerIsAskedOnceForAnEnd(t *testing.T) {
	w := preparing(t, nil)
	lists, ends := 0, 0
	w.onPlan = func(_ Snapshot, plan Plan) {
		for _, action := range plan.Actions {
			switch action.Does() {
			case ListPods:
				lists++
			case DeletePod, DeleteConfigMap:
				ends++
			}
		}
	}
	w.after(99 * time.Second)
	if lists > 0 {
		t.Errorf("the Pods are listed %d times before the time is over", lists)
	}
	w.after(3 * time.Second)
	if lists != 1 || ends == 0 {
		t.Errorf("the Pods are listed %d times, and %d objects are deleted", lists, ends)
	}
}
