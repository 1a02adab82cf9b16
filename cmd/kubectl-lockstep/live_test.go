// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// TestWhatCannotBeReadForAWhileIsNotSaidToBeDeleted: a kind that fails, or all, is told of once, and the watch goes on.
func TestWhatCannotBeReadForAWhileIsNotSaidToBeDeleted(t *testing.T) {
	for name, tc := range map[string]struct {
		args    []string
		refuses func(*apiserver.Request) bool
		told    string
	}{
		"jobs of one kind":         {nil, func(r *apiserver.Request) bool { return r.Resource == "jobs" }, "Jobs of the kind Job.batch.volcano.sh can't be shown"},
		"all":                      {nil, func(*apiserver.Request) bool { return true }, "Can't show the latest state: etcdserver"},
		"those that are named":     {[]string{"train", "vcjob/mpi"}, func(*apiserver.Request) bool { return true }, "Can't show the latest state: etcdserver"},
		"one of those, by another": {[]string{"train", "vcjob/mpi"}, func(r *apiserver.Request) bool { return r.Resource == "jobs" }, "Can't show the latest state: etcdserver"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := someone(t)
				u.has(frameworkv1.FrameworkAttemptRunning, 1)
				apiserver.Add(u.api, &batchv1alpha1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "mpi"}})
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Minute, func() {
					u.api.SetHook(func(r *apiserver.Request) apiserver.Fault {
						if tc.refuses(r) {
							return apiserver.Fault{Refusal: apiserver.Unavailable()}
						}
						return apiserver.Fault{}
					})
				})
				time.AfterFunc(2*time.Minute, func() { u.api.SetHook(nil) })
				time.AfterFunc(3*time.Minute, func() { u.goes(frameworkv1.FrameworkCompleted) })
				time.AfterFunc(4*time.Minute, func() { apiserver.Remove[batchv1alpha1.Job](u.api, "a", "mpi") })
				time.AfterFunc(5*time.Minute, cancel)
				said := u.typesUntil(ctx, append([]string{"get", "-w", "-o", "wide"}, tc.args...)...)
				u.sees(said, exitInterrupted, tc.told, "a/train Framework Failed")
				for text, times := range map[string]int{"was deleted": 1, "a/mpi Job.batch.volcano.sh was deleted": 1, tc.told: 1, "a/train Framework Running": 1} {
					if count := strings.Count(said.out+said.err, text); count != times {
						t.Errorf("%q is told %d times, want %d:\n%s%s", text, count, times, said.out, said.err)
					}
				}
			})
		})
	}
}

// TestTheWatchOfANameEndsWhenAllOfItAreGone, which is no error.
func TestTheWatchOfANameEndsWhenAllOfItAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := someone(t)
		apiserver.Add(u.api, &batchv1alpha1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "mpi"}})
		time.AfterFunc(time.Minute, func() { apiserver.Remove[batchv1alpha1.Job](u.api, "a", "mpi") })
		u.sees(u.types("get", "-w", "mpi"), 0, "a/mpi Job.batch.volcano.sh was deleted")
		u.sees(u.types("get", "-w", "mpi"), 3, "not found")
	})
}

// TestAWatchEndsWhereItMayNotRead: at once if it never could, and if it may not any more.
func TestAWatchEndsWhereItMayNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := someone(t)
		u.has(frameworkv1.FrameworkAttemptRunning, 1)
		time.AfterFunc(time.Minute, func() { u.api.SetHook(refusesTo(apiserver.List)) })
		u.sees(u.types("get", "-w"), 4, "a/train Framework Running", "no such right")
		u.sees(u.types("get", "-w"), 4, "no such right")
	})
}
