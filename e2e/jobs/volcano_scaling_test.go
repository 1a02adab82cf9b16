//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

func TestJobsAreScaled(t *testing.T) {
	tell(t, map[string]func(t *testing.T){
		"more replicas are new indexes, old Pods are untouched, and hosts are those of a fresh Job": func(t *testing.T) {
			j := given(t, "{plugins: {svc: []}, tasks: [{name: a, replicas: 2, @∞}]}").Passes(running)
			before := j.UIDs()
			j.Edit(func(s *batchv1alpha1.JobSpec) { s.Tasks[0].Replicas, s.MinAvailable = 4, 4 }).Counts(tally{Running: 4})
			after := j.UIDs()
			for name, uid := range before {
				if after[name] != uid {
					t.Errorf("Pod %s was %s and is %s", name, uid, after[name])
				}
			}
			wantHosts(t, j, map[string]string{"a.host": "j-a-0.j\nj-a-1.j\nj-a-2.j\nj-a-3.j", "VC_A_HOSTS": "j-a-0.j,j-a-1.j,j-a-2.j,j-a-3.j", "VC_A_NUM": "4"})
			j.Is("be Running", func(s *batchv1alpha1.JobStatus) bool { return s.State.Phase == running })
		},
		"fewer replicas take the highest indexes, which is no event": func(t *testing.T) {
			j := given(t, "{minAvailable: 1, policies: [{event: PodEvicted, action: TerminateJob}], tasks: [{name: a, replicas: 4, @∞}]}").Passes(running).Counts(tally{Running: 4})
			before := j.UIDs()
			j.Edit(func(s *batchv1alpha1.JobSpec) { s.Tasks[0].Replicas = 2 }).HasPods("j-a-0", "j-a-1").Counts(tally{Running: 2})
			j.Stays(time.Second).Never(terminating, restarting)
			if after := j.UIDs(); after["j-a-0"] != before["j-a-0"] || after["j-a-1"] != before["j-a-1"] {
				t.Errorf("Pods were %v and are %v", before, after)
			}
		},
		"a Job that is scaled to nothing pauses": func(t *testing.T) {
			j := given(t, "{plugins: {svc: []}, tasks: [{name: a, replicas: 2, @∞}]}").Passes(running).Counts(tally{Running: 2})
			j.Edit(func(s *batchv1alpha1.JobSpec) { s.Tasks[0].Replicas = 0 }).HasPods().Counts(tally{})
			wantHosts(t, j, map[string]string{"a.host": "", "VC_A_HOSTS": "", "VC_A_NUM": "0"})
			j.Stays(10 * time.Second)
			j.Edit(func(s *batchv1alpha1.JobSpec) { s.Tasks[0].Replicas = 2 }).Counts(tally{Running: 2}).
				Is("be Running", func(s *batchv1alpha1.JobStatus) bool { return s.State.Phase == running }).Never(completed, failed)
		},
		"a Job that waits for room runs when its minima are lowered": func(t *testing.T) {
			j := inRoom(t, cluster.Room(t, 3), "{tasks: [{name: a, replicas: 4, @∞/1}]}").Passes(pending)
			j.HasPods("j-a-0", "j-a-1", "j-a-2", "j-a-3").Never(running)
			j.Edit(func(s *batchv1alpha1.JobSpec) { s.MinAvailable, s.Tasks[0].MinAvailable = 3, new(int32(3)) }).
				Passes(running).Counts(tally{Running: 3, Pending: 1})
		},
	})
}

// wantHosts waits until the ConfigMap of plugin svc holds this and nothing else.
func wantHosts(t *testing.T, j *testbed.VolcanoJob, want map[string]string) {
	t.Helper()
	testbed.Eventually(t, "the ConfigMap of the hosts to be rewritten", func(ctx context.Context) (bool, string, error) {
		config, err := cluster.Kube.CoreV1().ConfigMaps(j.Namespace).Get(ctx, j.Name+"-svc", metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		return maps.Equal(config.Data, want), cmp.Diff(want, config.Data), nil
	})
}

// sorted are the names of Pods.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
