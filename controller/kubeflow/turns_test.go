// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

func TestWhatIsCountedOfATrainingJob(t *testing.T) {
	created := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	with := func(conditions ...kubeflowv1.JobConditionType) *kubeflowv1.JobStatus {
		status := &kubeflowv1.JobStatus{}
		for _, condition := range conditions {
			status.Conditions = append(status.Conditions, kubeflowv1.JobCondition{
				Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(created.Add(time.Minute)),
			})
		}
		return status
	}
	const succeeded, running, restarting = kubeflowv1.JobConditionSucceeded, kubeflowv1.JobConditionRunning, kubeflowv1.JobConditionRestarting
	for name, tc := range map[string]struct {
		before, after *kubeflowv1.JobStatus
		want          []plan.Turn
		state         string
	}{
		"its first status":          {nil, with(kubeflowv1.JobConditionCreated), nil, "Created"},
		"it runs":                   {with(), with(running), []plan.Turn{{Kind: plan.Ran, Took: time.Minute}}, "Running"},
		"it restarts":               {with(running), with(restarting), []plan.Turn{{Kind: plan.Retried, Reason: "Restart"}}, "Restarting"},
		"it runs once more":         {with(restarting), with(running), nil, "Running"},
		"it succeeds":               {with(running), with(running, succeeded), []plan.Turn{{Kind: plan.Completed, Type: "Succeeded"}}, "Succeeded"},
		"a word that somebody made": {with(), with("x-12345"), nil, "New"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Turns(created, tc.before, tc.after)); diff != "" {
				t.Errorf("what is counted differs (-want,+got):\n%s", diff)
			}
			if got := KnownState(tc.after); got != tc.state {
				t.Errorf("it is counted as %q, want %q", got, tc.state)
			}
		})
	}
}
