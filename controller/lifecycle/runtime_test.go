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
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
)

// limited is a world with a Framework of two tasks that may run for 100 seconds.
func limited(t *testing.T, change func(*frameworkv1.Framework)) *world {
	t.Helper()
	f := framework(role("w", 2))
	f.Spec.Gang = &frameworkv1.GangSpec{MaxRuntimeSeconds: ptr.To[int32](100)}
	f.Spec.TaskRoles[0].FrameworkAttemptCompletionPolicy.MinFailedTaskCount = ptr.To[int32](-1)
	if change != nil {
		change(f)
	}
	w := newWorld(t, f)
	w.run()
	return w
}

// runs has Pods run.
func (w *world) runs(names ...string) {
	for _, name := range names {
		w.setPhase(name, corev1.PodRunning, 0)
	}
	w.run()
}

// codeOfAttempt is that of the end of the first attempt. False if it goes on.
func codeOfAttempt(status *frameworkv1.FrameworkStatus) (frameworkv1.CompletionCode, bool) {
	if end := status.AttemptStatus.CompletionStatus; end != nil {
		return end.Code, true
	}
	return 0, false
}

func TestAnAttemptEndsByItsRuntimeLimit(t *testing.T) {
	const limit = frameworkv1.CodeRuntimeLimitExceeded
	annotate := func(value string) func(*frameworkv1.Framework) {
		return func(f *frameworkv1.Framework) {
			f.Spec.Gang = nil
			f.Annotations = map[string]string{schedulingv1alpha1.AnnotationMaxRuntime: value}
		}
	}
	for name, test := range map[string]struct {
		change func(*frameworkv1.Framework)
		story  func(w *world)
		ends   bool
	}{
		"it counts from when minMember tasks run": {story: func(w *world) {
			w.runs("fw-w-0")
			w.after(99 * time.Second)
			w.runs("fw-w-1")
			w.after(100 * time.Second)
		}, ends: true},
		"it does not count before": {story: func(w *world) {
			w.runs("fw-w-0")
			w.after(99 * time.Second)
			w.runs("fw-w-1")
			w.after(99 * time.Second)
		}},
		"a task that has succeeded counts as one that runs": {story: func(w *world) {
			w.runs("fw-w-0")
			w.setPhase("fw-w-0", corev1.PodSucceeded, 0)
			w.runs("fw-w-1")
			w.after(100 * time.Second)
		}, ends: true},
		"a task that is Completed does not stand for another of the minimum": {
			change: func(f *frameworkv1.Framework) { f.Spec.TaskRoles[0].TaskNumber = 3 },
			story: func(w *world) {
				w.runs("fw-w-0")
				w.end("w-0", 0)
				w.runs("fw-w-1")
				w.after(99 * time.Second)
				w.runs("fw-w-2")
				w.after(99 * time.Second)
			}},
		"a Framework without a gang counts from its first task": {change: annotate("100"), story: func(w *world) {
			w.runs("fw-w-1")
			w.after(100 * time.Second)
		}, ends: true},
		"an annotation that makes no sense is no limit": {change: annotate("1h"), story: func(w *world) {
			w.runs("fw-w-0", "fw-w-1")
			w.after(1000 * time.Second)
		}},
		"a longer limit counts from the next attempt": {story: func(w *world) {
			w.runs("fw-w-0", "fw-w-1")
			w.editNow(func(spec *frameworkv1.FrameworkSpec) { spec.Gang.MaxRuntimeSeconds = ptr.To[int32](1000) })
			w.after(100 * time.Second)
		}, ends: true},
		"a limit that is taken away still counts": {story: func(w *world) {
			w.runs("fw-w-0", "fw-w-1")
			w.editNow(func(spec *frameworkv1.FrameworkSpec) { spec.Gang = nil })
			w.after(100 * time.Second)
		}, ends: true},
		"a shorter limit counts at once": {story: func(w *world) {
			w.runs("fw-w-0", "fw-w-1")
			w.after(60 * time.Second)
			w.editNow(func(spec *frameworkv1.FrameworkSpec) { spec.Gang.MaxRuntimeSeconds = ptr.To[int32](50) })
		}, ends: true},
		"restarts of the controller give no more time": {story: func(w *world) {
			w.runs("fw-w-0", "fw-w-1")
			for range 10 {
				w.after(10 * time.Second)
				w.crash()
			}
			w.run()
		}, ends: true},
		"a task that is run again gives no more time": {
			change: func(f *frameworkv1.Framework) {
				f.Spec.TaskRoles[0].Task.RetryPolicy.MaxRetryCount = frameworkv1.UnlimitedRetry
			},
			story: func(w *world) {
				w.runs("fw-w-0", "fw-w-1")
				w.setPhase("fw-w-0", corev1.PodFailed, 1)
				w.run()
				w.after(100 * time.Second)
			}, ends: true},
		"Pods that ended in time decide, though their watch is behind": {story: func(w *world) {
			w.runs("fw-w-0", "fw-w-1")
			w.prompt = false
			w.setPhase("fw-w-0", corev1.PodSucceeded, 0)
			w.setPhase("fw-w-1", corev1.PodSucceeded, 0)
			w.after(100 * time.Second)
			w.deliverAll()
			w.run()
			if end, _ := codeOfAttempt(w.written); end != frameworkv1.CodeSucceeded {
				w.t.Errorf("it has ended with %d, though all tasks had succeeded", end)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := limited(t, test.change)
			test.story(w)
			code, _ := codeOfAttempt(w.written)
			if (code == limit) != test.ends {
				t.Errorf("the Framework is %s, its attempt has ended with %d", w.written.State, code)
			}
		})
	}
}

// TestARuntimeLimitIsAPermanentFailureAndARetryHasTheWholeTimeAgain, with Pods of its own.
func TestARuntimeLimitIsAPermanentFailureAndARetryHasTheWholeTimeAgain(t *testing.T) {
	w := limited(t, func(f *frameworkv1.Framework) { f.Spec.RetryPolicy.MaxRetryCount = 1 })
	w.runs("fw-w-0", "fw-w-1")
	w.after(100 * time.Second)
	w.settles()
	end := w.written.History[0].CompletionStatus
	if end.Code != frameworkv1.CodeRuntimeLimitExceeded || end.Phrase != "RuntimeLimitExceeded" ||
		!slices.Equal(end.Type.Attributes, []frameworkv1.CompletionTypeAttribute{frameworkv1.AttributePermanent}) {
		t.Errorf("it has ended with %+v", end)
	}
	w.runs("fw-w-0", "fw-w-1")
	w.after(99 * time.Second)
	if code, ended := codeOfAttempt(w.written); ended || w.written.AttemptStatus.ID != 1 {
		t.Errorf("attempt %d has ended with %d before its time", w.written.AttemptStatus.ID, code)
	}
}

func TestThePodGroupOfAGangHasItsRunTimes(t *testing.T) {
	w := limited(t, func(f *frameworkv1.Framework) { f.Spec.Gang.ExpectedRuntimeSeconds = ptr.To[int32](30) })
	if spec := w.podGroup.Spec; ptr.Deref(spec.MaxRuntimeSeconds, 0) != 100 || ptr.Deref(spec.ExpectedRuntimeSeconds, 0) != 30 {
		t.Errorf("it is made with %v and %v", spec.MaxRuntimeSeconds, spec.ExpectedRuntimeSeconds)
	}
	w.editNow(func(spec *frameworkv1.FrameworkSpec) {
		spec.Gang.MaxRuntimeSeconds, spec.Gang.ExpectedRuntimeSeconds = ptr.To[int32](20), nil
	})
	w.run()
	if spec := w.podGroup.Spec; ptr.Deref(spec.MaxRuntimeSeconds, 0) != 20 || spec.ExpectedRuntimeSeconds != nil {
		t.Errorf("after the edit it has %v and %v", spec.MaxRuntimeSeconds, spec.ExpectedRuntimeSeconds)
	}
}

func TestARunTimeThatMakesNoSenseIsTold(t *testing.T) {
	var told []string
	f := framework(role("w", 1))
	f.Annotations = map[string]string{schedulingv1alpha1.AnnotationMaxRuntime: "1h"}
	w := newWorld(t, f)
	w.onEvent = func(e Event) {
		if e.Reason == podgroup.ReasonInvalidRuntime {
			told = append(told, e.Message)
		}
	}
	w.run()
	w.after(time.Hour)
	if len(told) != 1 || !strings.Contains(told[0], "lockstep.dev/max-runtime-seconds") || !strings.Contains(told[0], "1 to 315360000") {
		t.Errorf("told %q", told)
	}
}
