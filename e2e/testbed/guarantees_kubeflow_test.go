// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
)

// trainingEvent is a write of a job that is in a start and has conditions that are True. worker
// is what it knows of its workers.
func trainingEvent(starts int32, worker kubeflowv1.ReplicaStatus, conditions ...kubeflowv1.JobConditionType) event {
	status := kubeflowv1.JobStatus{Starts: starts, ReplicaStatuses: map[string]kubeflowv1.ReplicaStatus{"Worker": worker}}
	for _, t := range conditions {
		status.Conditions = append(status.Conditions, kubeflowv1.JobCondition{Type: t, Status: corev1.ConditionTrue})
		if t == kubeflowv1.JobConditionSucceeded || t == kubeflowv1.JobConditionFailed {
			status.CompletionTime = new(metav1.Unix(int64(time.Hour/time.Second), 0))
		}
	}
	return event{training: &trainingRecord{Object: &metav1.ObjectMeta{Name: "j", UID: "u"}, status: status}}
}

// trainingPodEvent is a write of a Pod of worker 0, made for a start, of which containers were
// restarted so often.
func trainingPodEvent(uid types.UID, start int, phase corev1.PodPhase, restarts int32) event {
	return event{pod: &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "p", UID: uid,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: kubeflowv1.SchemeGroupVersion.String(), Kind: kubeflowv1.TFJobKind, UID: "u", Controller: new(true)}},
			Annotations:     map[string]string{keyTrainingStart: strconv.Itoa(start)},
			Labels:          map[string]string{kubeflowv1.KeyReplicaType: "worker", kubeflowv1.KeyReplicaIndex: "0"},
		},
		Status: corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{{RestartCount: restarts}}},
	}}
}

func TestBrokenGuaranteesOfTrainingJobsAreFound(t *testing.T) {
	const (
		created   = kubeflowv1.JobConditionCreated
		succeeded = kubeflowv1.JobConditionSucceeded
		failed    = kubeflowv1.JobConditionFailed
		suspended = kubeflowv1.JobConditionSuspended
	)
	none := kubeflowv1.ReplicaStatus{}
	counted := func(restarts int32) kubeflowv1.ReplicaStatus { return kubeflowv1.ReplicaStatus{Restarts: restarts} }
	begun := []event{trainingEvent(1, none, created), trainingPodEvent("1", 1, corev1.PodRunning, 0)}
	fails, goes := trainingPodEvent("1", 1, corev1.PodFailed, 0), isGone(trainingPodEvent("1", 1, corev1.PodFailed, 0))
	for name, tc := range map[string]struct {
		then []event
		want string
	}{
		"a Pod that fails and is replaced": {then: []event{
			fails, trainingEvent(1, counted(1), created), goes, trainingPodEvent("2", 1, corev1.PodRunning, 0),
			trainingPodEvent("2", 1, corev1.PodSucceeded, 0), trainingEvent(1, counted(1), created, succeeded),
		}},
		"a job that is suspended and resumed": {then: []event{
			trainingPodEvent("1", 1, corev1.PodSucceeded, 0), trainingEvent(1, none, created, suspended), goes,
			trainingEvent(2, none, created), trainingPodEvent("2", 2, corev1.PodRunning, 0),
		}},
		"a Pod that is deleted and made again":       {then: []event{isGone(trainingPodEvent("1", 1, corev1.PodRunning, 0)), trainingPodEvent("2", 1, "", 0)}},
		"a Pod of a job that is over":                {then: []event{trainingEvent(1, none, created, succeeded), goes, trainingPodEvent("2", 1, "", 0)}, want: "Pod p was made for start 1; job j is in start 1, [Created Succeeded]"},
		"a Pod of a job that is suspended":           {then: []event{goes, trainingEvent(1, none, created, suspended), trainingPodEvent("2", 1, "", 0)}, want: "[Created Suspended]"},
		"a Pod of a job that is gone":                {then: []event{isGone(trainingEvent(1, none, created)), trainingPodEvent("2", 1, "", 0)}, want: "its job is gone"},
		"a Pod of an old start":                      {then: []event{goes, trainingEvent(2, none, created), trainingPodEvent("2", 1, "", 0)}, want: "Pod p was made for start 1; job j is in start 2"},
		"Pods of two starts":                         {then: []event{trainingEvent(2, none, created), trainingPodEvent("2", 2, "", 0)}, want: "was made beside p of start 1"},
		"an index that runs again after its success": {then: []event{trainingPodEvent("1", 1, corev1.PodSucceeded, 0), goes, trainingPodEvent("2", 1, "", 0)}, want: "had succeeded"},
		"an index that runs again after its failure": {then: []event{fails, trainingEvent(1, kubeflowv1.ReplicaStatus{FailedIndexes: "0-3,7"}, created), goes, trainingPodEvent("2", 1, "", 0)}, want: "has failed for good"},
		"an end that is both":                        {then: []event{trainingEvent(1, none, created, succeeded, failed)}, want: "both succeeded and failed"},
		"an end that changes":                        {then: []event{trainingEvent(1, none, created, succeeded), trainingEvent(1, none, created, failed)}, want: "had ended with [Created Succeeded]"},
		"a restart that counts twice":                {then: []event{fails, trainingEvent(1, counted(2), created)}, want: "counts 2 restarts of Worker, and there were 1 at most"},
		"restarts of containers":                     {then: []event{trainingPodEvent("1", 1, corev1.PodRunning, 3), trainingEvent(1, counted(3), created)}},
		"a restart that is forgotten":                {then: []event{fails, trainingEvent(1, counted(1), created), trainingEvent(1, none, created)}, want: "counted 1 restarts of Worker, and now 0"},
		"a start that is left out":                   {then: []event{goes, trainingEvent(3, none, created)}, want: "went from start 1 to 3"},
		"Pods of nobody":                             {then: []event{{pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "other", UID: "9"}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := brokenTrainingGuarantees(append(append([]event{}, begun...), tc.then...))
			if tc.want == "" && len(got) > 0 || tc.want != "" && (len(got) != 1 || !strings.Contains(got[0], tc.want)) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
