// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// trackedJob is a job of a test, of a kind whose status is an S, with all of its statuses that
// were stored. Its methods fail the test where what they wait for does not come.
type trackedJob[S any] struct {
	// Namespace and Name are those of the job.
	Namespace, Name string
	// UID is that of the job.
	UID types.UID

	t       testing.TB
	cluster *Cluster
	// describe says what statuses tell, for messages.
	describe func([]S) string
	done     sync.WaitGroup

	mu sync.Mutex
	// stored are the statuses, each with another one than before; writes counts all changes
	// of the job.
	stored []S
	writes int
	gone   bool
	// passed is how many of the statuses waitPassed has gone over.
	passed int
}

// follow notes what a watch tells of the job, until the test ends. read takes an object apart:
// its status is nil before the first. What is no job is left out.
func (j *trackedJob[S]) follow(watcher watch.Interface, read func(runtime.Object) (metav1.Object, *S)) {
	j.t.Cleanup(j.done.Wait)
	j.done.Go(func() {
		defer watcher.Stop()
		var before string
		for told := range watcher.ResultChan() {
			if told.Type == watch.Bookmark {
				continue
			}
			job, status := read(told.Object)
			if job == nil || job.GetName() != j.Name {
				continue
			}
			j.mu.Lock()
			j.gone = told.Type == watch.Deleted
			if version := job.GetResourceVersion(); version != before && !j.gone {
				before = version
				j.writes++
				if status != nil {
					j.stored = append(j.stored, *status)
				}
			}
			j.mu.Unlock()
		}
	})
}

// Statuses are those that were stored until now.
func (j *trackedJob[S]) Statuses() []S {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.stored)
}

// Writes is how often the job was written until now.
func (j *trackedJob[S]) Writes() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.writes
}

// Status is the last one that was stored; nothing is in it before the first.
func (j *trackedJob[S]) Status() S {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.stored) == 0 {
		var none S
		return none
	}
	return j.stored[len(j.stored)-1]
}

// waitPassed waits until the job has had a status that fulfils a condition, since the one that
// was waited for before. Others may come between them.
func (j *trackedJob[S]) waitPassed(what string, condition func(*S) bool) {
	j.t.Helper()
	Eventually(j.t, what, func(context.Context) (bool, string, error) {
		j.mu.Lock()
		defer j.mu.Unlock()
		for i := j.passed; i < len(j.stored); i++ {
			if condition(&j.stored[i]) {
				j.passed = i
				return true, "", nil
			}
		}
		return false, j.describe(j.stored), nil
	})
}

// waitStatus waits until the last status fulfils a condition, which what tells.
func (j *trackedJob[S]) waitStatus(what string, condition func(*S) bool) {
	j.t.Helper()
	Eventually(j.t, what, func(context.Context) (bool, string, error) {
		status := j.Status()
		return condition(&status), j.describe(j.Statuses()), nil
	})
}

// IsGone waits until the job is deleted.
func (j *trackedJob[S]) IsGone() {
	j.t.Helper()
	Eventually(j.t, fmt.Sprintf("job %s to be gone", j.Name), func(context.Context) (bool, string, error) {
		seen := j.describe(j.Statuses())
		j.mu.Lock()
		defer j.mu.Unlock()
		return j.gone, seen, nil
	})
}

// controls says whether an object is the job's.
func (j *trackedJob[S]) controls(object metav1.Object) bool {
	owner := metav1.GetControllerOf(object)
	return owner != nil && owner.UID == j.UID
}

// Pods are those that the job controls, by name.
func (j *trackedJob[S]) Pods() map[string]*corev1.Pod {
	j.t.Helper()
	list, err := j.cluster.Kube.CoreV1().Pods(j.Namespace).List(j.t.Context(), metav1.ListOptions{})
	if err != nil {
		j.t.Fatal(err)
	}
	pods := map[string]*corev1.Pod{}
	for i := range list.Items {
		if j.controls(&list.Items[i]) {
			pods[list.Items[i].Name] = &list.Items[i]
		}
	}
	return pods
}

// waitPods waits until the job has these Pods and no others.
func (j *trackedJob[S]) waitPods(names []string) {
	j.t.Helper()
	names = slices.Sorted(slices.Values(names))
	Eventually(j.t, fmt.Sprintf("job %s to have the Pods %v", j.Name, names), func(context.Context) (bool, string, error) {
		have := slices.Sorted(maps.Keys(j.Pods()))
		return slices.Equal(have, names), fmt.Sprint(have), nil
	})
}

// Pod is a Pod of the job, once it is there.
func (j *trackedJob[S]) Pod(name string) *corev1.Pod {
	j.t.Helper()
	var pod *corev1.Pod
	Eventually(j.t, "Pod "+name, func(context.Context) (bool, string, error) {
		pod = j.Pods()[name]
		return pod != nil, "", nil
	})
	return pod
}

// UIDs are those of the Pods of the job that are not being deleted, by name.
func (j *trackedJob[S]) UIDs() map[string]types.UID {
	j.t.Helper()
	uids := map[string]types.UID{}
	for name, pod := range j.Pods() {
		if pod.DeletionTimestamp == nil {
			uids[name] = pod.UID
		}
	}
	return uids
}

// waitEvent waits until an event of the job has a type, a reason, and a text in its message.
func (j *trackedJob[S]) waitEvent(kind, reason, text string) {
	j.t.Helper()
	Eventually(j.t, fmt.Sprintf("job %s to tell of %s …%s…", j.Name, reason, text), func(context.Context) (bool, string, error) {
		events := j.Events()
		return slices.ContainsFunc(events, func(e corev1.Event) bool {
			return e.Type == kind && e.Reason == reason && strings.Contains(e.Message, text) && !e.LastTimestamp.IsZero()
		}), describeEvents(events), nil
	})
}

// Events are those of the job.
func (j *trackedJob[S]) Events() []corev1.Event {
	j.t.Helper()
	list, err := j.cluster.Kube.CoreV1().Events(j.Namespace).List(j.t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(j.UID)})
	if err != nil {
		j.t.Fatal(err)
	}
	return list.Items
}

func describeEvents(events []corev1.Event) string {
	var lines []string
	for _, e := range events {
		lines = append(lines, fmt.Sprintf("%s %s: %s", e.Type, e.Reason, e.Message))
	}
	return strings.Join(lines, "; ")
}
