// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// TestNothingThatIsStoredMakesADecisionPanic decides about specs, statuses and Pods of which
// nobody has checked anything.
func TestNothingThatIsStoredMakesADecisionPanic(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	pick := func(numbers ...int32) int32 { return numbers[random.IntN(len(numbers))] }
	word := func(words ...string) string { return words[random.IntN(len(words))] }
	names := []string{"Worker", "PS", "Chief", "Master", "Local", "wORKER", "Launcher", "", "x y"}
	for range 5000 {
		job := &Job{ObjectMeta: metav1.ObjectMeta{Name: word("j", "", "J.x"), Namespace: "n", UID: "u"}, Spec: Spec{Replicas: map[string]kubeflowv1.ReplicaSpec{}}}
		job.Kind = word("TFJob", "PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob", "MPIJob", "Odd")
		job.Spec.CreatedAs = kubeflowv1.CreatedAs(word("", "v1alpha2", "v9"))
		for range random.IntN(4) {
			spec := kubeflowv1.ReplicaSpec{RestartPolicy: kubeflowv1.RestartPolicy(word("", "Never", "ExitCode", "odd"))}
			if random.IntN(2) == 0 {
				spec.Replicas = ptr.To(pick(0, 1, 3, -1, math.MaxInt32, math.MinInt32))
			}
			spec.Template = runtime.RawExtension{Raw: []byte(word(
				`{"spec":{"containers":[{"name":"tensorflow","image":"i"},{"name":"pytorch","image":"i"},{"name":"xgboost","image":"i"},{"name":"paddle","image":"i"},{"name":"jax","image":"i"}]}}`,
				`{"spec":{"containers":[{"name":"tensorflow","image":"i"},{"name":"pytorch","image":"i"},{"name":"xgboost","image":"i"},{"name":"paddle","image":"i"},{"name":"jax","image":"i"}]}}`, "", "[]", "{", "null", `{"spec":7}`))}
			job.Spec.Replicas[names[random.IntN(len(names))]] = spec
		}
		policy := &job.Spec.RunPolicy
		if random.IntN(2) == 0 {
			policy.ActiveDeadlineSeconds, policy.BackoffLimit = ptr.To(int64(pick(0, -1, math.MaxInt32))), ptr.To(pick(0, -1, 2))
			policy.TTLSecondsAfterFinished, policy.Suspend = ptr.To(pick(0, -1, math.MaxInt32)), ptr.To(random.IntN(2) == 0)
			policy.SchedulingPolicy = &kubeflowv1.SchedulingPolicy{MinAvailable: ptr.To(pick(0, -1, 2, math.MaxInt32))}
			policy.CleanPodPolicy = ptr.To(kubeflowv1.CleanPodPolicy(word("All", "Running", "", "odd")))
		}
		if random.IntN(3) == 0 {
			job.Spec.ElasticPolicy = &kubeflowv1.ElasticPolicy{MinReplicas: ptr.To(pick(0, -1, math.MaxInt32)), Metrics: []kubeflowv1.Metric{{}}}
		}
		if random.IntN(2) == 0 {
			job.Spec.MPI = &MPI{SlotsPerWorker: pick(1, -1), LauncherCreationPolicy: "WaitForWorkersReady", Implementation: "OpenMPI"}
		}
		ranges := func() string { return word("", "0-2147483647", "0-3,7", "-", "x", "2-1") }
		stored := &status{
			Phase: kubeflowv1.JobPhase(word("", "Running", "Succeeded", "Failed", "Odd")), Starts: pick(0, 1, 2, -1, math.MaxInt32), Services: kubeflowv1.ServiceMode(word("", "PerJob", "PerReplica", "Odd")),
			ReplicaStatuses: map[string]kubeflowv1.ReplicaStatus{names[random.IntN(len(names))]: {
				CompletedIndexes: ranges(), FailedIndexes: ranges(), RestartingIndexes: ranges(), Restarts: pick(0, -1, math.MaxInt32),
			}},
		}
		for _, c := range []kubeflowv1.JobConditionType{"Created", "Running", "Suspended", "Restarting", "Odd"} {
			if random.IntN(3) == 0 {
				stored.Conditions = append(stored.Conditions, kubeflowv1.JobCondition{Type: c, Status: corev1.ConditionStatus(word("True", "False", "odd"))})
			}
		}
		if random.IntN(2) == 0 {
			stored.StartTime = &metav1.Time{}
		}
		if random.IntN(8) == 0 {
			stored = nil
		}
		pods, services := map[string]*corev1.Pod{}, map[string]metav1.Object{}
		for i := range random.IntN(4) {
			index := word("0", "1", "7", "-1", "2147483647", "x")
			labels := map[string]string{kubeflowv1.KeyReplicaType: word("worker", "ps", "", "master"), kubeflowv1.KeyReplicaIndex: index}
			metadata := metav1.ObjectMeta{
				Name: "j-" + labels[kubeflowv1.KeyReplicaType] + "-" + index, UID: types.UID(strconv.Itoa(i)), Labels: labels,
				Annotations: map[string]string{KeyStart: word("1", "0", "x", "99999999999"), KeyCreatedAs: word("", "v1", "v1alpha2")},
			}
			pod := &corev1.Pod{ObjectMeta: metadata, Status: corev1.PodStatus{Phase: []corev1.PodPhase{"", corev1.PodRunning, corev1.PodFailed, corev1.PodSucceeded, "Odd"}[random.IntN(5)]}}
			if random.IntN(4) == 0 {
				pod.DeletionTimestamp = &metav1.Time{Time: time.Unix(1e9, 0)}
			}
			pods[pod.Name] = pod
			services[pod.Name] = &corev1.Service{ObjectMeta: metadata}
		}
		p, _ := Decide(Snapshot{
			Job: job, Known: plan.Known[kubeflowv1.JobStatus]{Persisted: stored, Status: stored, Current: true}, Pods: pods, Services: services,
			Options: Options{TakeJobs: TakeAll, Keys: fixedKeys, GangSchedulerName: gangScheduler, GangAlways: random.IntN(2) == 0},
		}, time.Unix(1e9+int64(random.IntN(100)), 0), steady{})
		for _, action := range p.Actions {
			if action.Verb == plan.Create && action.Build != nil {
				if _, err := action.Build(); err != nil {
					t.Errorf("%s: %v", action, err)
				}
			}
		}
	}
}
