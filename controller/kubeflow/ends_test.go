// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/internal/testing/podways"
)

// TestEachWayInWhichAPodEndsDecidesByItsRestartPolicy holds the table of all ways against a
// TFJob of two workers.
func TestEachWayInWhichAPodEndsDecidesByItsRestartPolicy(t *testing.T) {
	for _, way := range podways.Ways() {
		for policy, want := range map[kubeflowv1.RestartPolicy]podways.KubeflowEnd{
			kubeflowv1.RestartNever:     way.Kubeflow.Never,
			kubeflowv1.RestartOnFailure: way.Kubeflow.OnFailure,
			kubeflowv1.RestartExitCode:  way.Kubeflow.ExitCode,
		} {
			t.Run(way.Name+", "+string(policy), func(t *testing.T) {
				w := given(t, workers("replicas: 2, restartPolicy: "+string(policy))).run()
				before := w.Pod("j-worker-1").UID
				w.Now = w.Now.Add(2e9)
				w.EndIn("j-worker-1", way)
				w.settle()
				got := podways.Succeeds
				pod := w.Pod("j-worker-1")
				switch status := w.Written; {
				case is(status, kubeflowv1.JobConditionFailed):
					got = podways.Fails
				case pod == nil || pod.UID != before:
					got = podways.Again
				case pod.Status.Phase != corev1.PodSucceeded:
					got = "nothing"
				}
				if got != want {
					t.Errorf("%s, want %s: %s", got, want, shown(w.Written))
				}
				if counts := w.Written.ReplicaStatuses[kubeflowv1.ReplicaWorker].Restarts; got == podways.Again && (counts == 1) != way.Kubeflow.Counts {
					t.Errorf("%d count against backoffLimit", counts)
				}
			})
		}
	}
}
