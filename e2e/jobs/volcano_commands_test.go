//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

func TestCommandsAreExecutedOnce(t *testing.T) {
	tell(t, map[string]func(t *testing.T){
		"AbortJob stops a Job, and ResumeJob runs it again": func(t *testing.T) {
			j := given(t, "{tasks: [{name: a, replicas: 2, @∞}]}").Passes(running)
			before := j.UIDs()
			j.Do(abort).Passes(aborting, aborted).HasPods()
			j.Tells(corev1.EventTypeNormal, "CommandIssued", "AbortJob").Tells(corev1.EventTypeNormal, "ExecuteAction", "AbortJob")
			j.Do(resume).Passes(restarting, pending, running).Counts(tally{Running: 2})
			for name, uid := range j.UIDs() {
				if uid == before[name] {
					t.Errorf("Pod %s is the old one", name)
				}
			}
		},
		"a Job that waits for room is aborted without having run": func(t *testing.T) {
			j := inRoom(t, cluster.Room(t, 3), "{tasks: [{name: a, replicas: 4, @∞/1}]}").Passes(pending)
			j.HasPods("j-a-0", "j-a-1", "j-a-2", "j-a-3").Do(abort).Passes(aborting, aborted).HasPods().Never(running)
		},
		"what has succeeded is not run again when a Job is resumed": func(t *testing.T) {
			j := given(t, "{tasks: [{name: a, replicas: 1, @2→0}, {name: b, replicas: 1, @∞}]}").Passes(running).Counts(tally{Running: 1, Succeeded: 1})
			before := j.Pod("j-a-0").UID
			j.Do(abort).Passes(aborted).Do(resume).Passes(restarting, running).Counts(tally{Running: 1, Succeeded: 1})
			if after := j.Pod("j-a-0").UID; after != before {
				t.Errorf("Pod j-a-0 was %s and is %s", before, after)
			}
		},
		"RestartJob makes all Pods anew": func(t *testing.T) {
			j := given(t, "{tasks: [{name: a, replicas: 2, @∞}]}").Passes(running)
			before, version := j.UIDs(), j.Status().Version
			j.Do(restart).Passes(restarting, pending, running).Counts(tally{Running: 2, Retries: 1})
			for name, uid := range j.UIDs() {
				if uid == before[name] {
					t.Errorf("Pod %s is the old one", name)
				}
			}
			if now := j.Status().Version; now <= version {
				t.Errorf("the version was %d and is %d", version, now)
			}
			if !slices.ContainsFunc(j.Statuses(), func(s batchv1alpha1.JobStatus) bool { return s.State.Phase == restarting && s.Terminating > 0 }) {
				t.Error("no status of the restart counts Pods that go")
			}
		},
		"TerminateJob is for good": func(t *testing.T) {
			j := given(t, "{tasks: [{name: a, replicas: 2, @∞}]}").Passes(running).Do(terminate).Passes(terminating, terminated).HasPods()
			j.Do(resume).Stays(time.Second).Never(restarting)
		},
		"CompleteJob ends what runs, and the numbers stay": func(t *testing.T) {
			j := given(t, "{tasks: [{name: a, replicas: 1, @2→0}, {name: b, replicas: 1, @∞}]}").Passes(running).Counts(tally{Running: 1, Succeeded: 1})
			j.Do(complete).Passes(completing, completed).HasPods("j-a-0").Counts(tally{Succeeded: 1})
			testbed.Consistently(t, "a success", 10*time.Second, func(context.Context) (bool, string, error) {
				return j.Status().Succeeded == 1, "", nil
			})
		},
		"a Command for another kind is left alone": func(t *testing.T) {
			j := given(t, "{tasks: [{name: a, replicas: 1, @∞}]}").Passes(running)
			command := j.Command(abort)
			command.Target.Kind = "Queue"
			name := j.Issue(command)
			j.Stays(2 * time.Second)
			if left := j.Commands(); !slices.Contains(left, name) {
				t.Errorf("the Commands are %v, want %s, too", left, name)
			}
		},
		"a Command for an earlier Job of the name does nothing": func(t *testing.T) {
			j := given(t, "{tasks: [{name: a, replicas: 1, @∞}]}").Passes(running)
			command := j.Command(abort)
			command.OwnerReferences, command.Target.UID = nil, "earlier"
			name := j.Issue(command)
			j.Tells(corev1.EventTypeWarning, "CommandIssued", name).Never(aborting)
			wantNoCommands(t, j)
		},
		"a Command that makes no sense is deleted with a warning": func(t *testing.T) {
			j := given(t, "{tasks: [{name: a, replicas: 1, @∞}]}").Passes(running)
			j.Do("Foo").Tells(corev1.EventTypeWarning, "CommandIssued", "Foo")
			j.Do(busv1alpha1.ActionRestartTask).Tells(corev1.EventTypeWarning, "CommandIssued", "RestartTask").Never(restarting)
		},
		"a Command for a Job that does not exist is left alone": func(t *testing.T) {
			j := given(t, "{tasks: [{name: a, replicas: 1, @∞}]}").Passes(running)
			command := j.Command(abort)
			command.OwnerReferences, command.Target.Name = nil, "nobody"
			name := j.Issue(command)
			j.Stays(2 * time.Second)
			if left := j.Commands(); !slices.Contains(left, name) {
				t.Errorf("the Commands are %v, want %s, too", left, name)
			}
		},
		"a Job may be resumed more often than maxRetry": func(t *testing.T) {
			j := given(t, "{maxRetry: 1, tasks: [{name: a, replicas: 1, @∞}]}").Passes(running)
			for range 2 {
				j.Do(abort).Passes(aborted).Do(resume).Passes(restarting, running).Counts(tally{Running: 1})
			}
		},
		"the last try keeps what has ended": func(t *testing.T) {
			j := given(t, "{maxRetry: 1, tasks: [{name: a, replicas: 1, @1→0}, {name: b, replicas: 1, @∞}]}").Passes(running).Counts(tally{Running: 1, Succeeded: 1})
			j.Do(restart).Passes(restarting, failed).HasPods("j-a-0").Counts(tally{Succeeded: 1, Retries: 1})
		},
		"many Commands at once are executed one after the other, in their order": func(t *testing.T) {
			j := given(t, "{maxRetry: 10, tasks: [{name: a, replicas: 1, @∞}]}").Passes(running)
			j.Issue(j.Command(restart))
			j.Issue(j.Command(abort))
			j.Issue(j.Command(terminate))
			wantNoCommands(t, j)
			j.Passes(restarting, aborting, aborted).HasPods().Never(terminating)
		},
	})
}

// wantNoCommands waits until no Command is left.
func wantNoCommands(t *testing.T, j *testbed.VolcanoJob) {
	t.Helper()
	testbed.Eventually(t, "all Commands to be gone", func(context.Context) (bool, string, error) {
		left := j.Commands()
		return len(left) == 0, "", nil
	})
}
