//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// startForTrainingJobs starts a controller of training jobs with further settings, and waits until it is ready.
func startForTrainingJobs(t *testing.T, settings string) *testbed.Controller {
	t.Helper()
	controller := cluster.StartController(t, localenv.WithKubeflowJobs("takeJobs: All, "+settings))
	controller.WaitReady(t)
	return controller
}

// reconciled are the times between two reconciliations of a job, as its status tells them.
func reconciled(j *testbed.TrainingJob) []time.Duration {
	var times []time.Time
	for _, s := range j.Statuses() {
		if at := s.LastReconcileTime; at != nil && !slices.Contains(times, at.Time) {
			times = append(times, at.Time)
		}
	}
	var between []time.Duration
	for i := 1; i < len(times); i++ {
		between = append(between, times[i].Sub(times[i-1]))
	}
	return between
}

// TestTheReconcilerOfV1alpha2 looks less and less often at a job that nothing happens to, often
// again once something has, and finds what has happened while no controller ran.
func TestTheReconcilerOfV1alpha2(t *testing.T) {
	const settings = "reconcilerSyncLoopPeriod: 1s"
	controller := startForTrainingJobs(t, settings)
	j, recording := recordedTraining(t, testbed.TFJobV1alpha2, "{tfReplicaSpecs: {PS: {replicas: 2, @?}, Worker: {replicas: 3, @?}}}")
	name := func(replicas string, n int) string { return fmt.Sprintf("j-%s-%d-%s", replicas, n, j.UID[:8]) }
	all := []string{name("ps", 1), name("ps", 2), name("worker", 1), name("worker", 2), name("worker", 3)}
	j.HasPairs(all...).Has("Created")
	testbed.Eventually(t, "eight seconds between two looks", func(context.Context) (bool, string, error) {
		between := reconciled(j)
		return len(between) > 0 && between[len(between)-1] >= 8*time.Second, fmt.Sprint(between), nil
	})
	quiet := reconciled(j)
	if n := len(quiet); n > 12 || !slices.IsSorted(quiet[max(0, n-3):]) {
		t.Errorf("there were %v between looks at a quiet job, want about 1s, 2s, 4s, 8s", quiet)
	}
	j.Run(name("worker", 1)).Counts("Worker", testbed.PodCounts{Active: 1})
	testbed.Eventually(t, "looks to be a second or two apart again", func(context.Context) (bool, string, error) {
		between := reconciled(j)
		return len(between) > len(quiet)+1 && between[len(between)-1] <= 3*time.Second, fmt.Sprint(between), nil
	})

	controller.Kill()
	before := maps.Clone(j.UIDs())
	j.KillService(name("ps", 1)).Kill(name("ps", 2)).HasPods(slices.DeleteFunc(slices.Clone(all), func(n string) bool { return n == name("ps", 2) })...)
	startForTrainingJobs(t, settings)
	j.HasPairs(all...)
	after := j.UIDs()
	for _, kept := range []string{name("ps", 1), name("worker", 1), name("worker", 2), name("worker", 3)} {
		if before[kept] != after[kept] {
			t.Errorf("Pod %s was made anew", kept)
		}
	}
	recording.CheckQuiet(t)
}

// TestSettings that change what Pods are told, and which jobs are taken.
func TestSettings(t *testing.T) {
	startForTrainingJobs(t, "customClusterDomain: tf.org, pytorchInitImage: 'example.com/init:1', pytorchInitMaxTries: 7, gang: Always")
	tf := cluster.GivenTrainingJob(t, testbed.TFJob, "{tfReplicaSpecs: {Worker: {replicas: 1, @∞}, PS: {replicas: 1, @∞}}}")
	want := fmt.Sprintf(`{"cluster":{"ps":["j-ps-0.%[1]s.svc.tf.org:2222"],"worker":["j-worker-0.%[1]s.svc.tf.org:2222"]},"task":{"type":"worker","index":0},"environment":"cloud"}`, tf.Namespace)
	if got, _ := testbed.EnvOf(tf.Pod("j-worker-0"), "tensorflow", "TF_CONFIG"); got != want {
		t.Errorf("TF_CONFIG is %s, want %s", got, want)
	}
	if least := tf.PodGroup(1).Spec.MinMember; least != 2 {
		t.Errorf("the gang has the minimum %d, want both", least)
	}
	tf.Has("Created Running")
	torch := cluster.GivenTrainingJob(t, testbed.PyTorchJob, "{pytorchReplicaSpecs: {Master: {replicas: 1, @∞}, Worker: {replicas: 1, @∞}}}")
	init := torch.Pod("j-worker-0").Spec.InitContainers
	if len(init) != 1 || init[0].Image != "example.com/init:1" || !slices.Contains(init[0].Args, "--tries=7") {
		t.Errorf("the worker waits for the master with %+v", init)
	}
}

// TestWhichJobsAreTaken of those that are for the training operator: with takeJobs: Scheduler,
// the ones of which a template names a scheduler of ours, in the namespaces that are ours.
func TestWhichJobsAreTaken(t *testing.T) {
	ours, other := cluster.Namespace(t), cluster.Namespace(t)
	controller := cluster.StartController(t, localenv.WithKubeflowJobs("takeJobs: Scheduler, schedulerNames: [ours], namespaces: ["+ours+"]"))
	controller.WaitReady(t)
	of := func(namespace, name, scheduler, policy string) *testbed.TrainingJob {
		spec := fmt.Sprintf("{runPolicy: {%s}, tfReplicaSpecs: {Worker: {@?}, PS: {@∞{%s}}}}", policy, scheduler)
		return cluster.CreateTrainingJob(t, namespace, testbed.TFJob, name, spec, nil)
	}
	const names, managed = "schedulerName: ours", "managedBy: lockstep.dev/kubeflow"
	left := []*testbed.TrainingJob{
		of(ours, "of-another-scheduler", "schedulerName: another", ""), of(ours, "of-none", "", ""),
		of(ours, "of-another-cluster", names, "managedBy: kueue.x-k8s.io/multikueue"),
		of(other, "elsewhere", names, ""), of(other, "managed-elsewhere", "", managed),
	}
	for _, j := range []*testbed.TrainingJob{
		of(ours, "named", names, ""), of(ours, "of-the-operator", names, "managedBy: kubeflow.org/training-operator"), of(ours, "managed", "", managed),
	} {
		j.HasPairs(j.Name+"-worker-0", j.Name+"-ps-0").Has("Created")
	}
	for _, j := range left {
		if j.HasPairs(); len(j.Statuses()) > 0 || len(j.Events()) > 0 {
			t.Errorf("job %s has the statuses %+v and the events %+v", j.Name, j.Statuses(), j.Events())
		}
	}
}

// TestComingOverFromTheTrainingOperator has jobs that the training operator has left behind. A job that it has suspended goes on, a job that
// has ended stays as it is until its ttl is over, and a job with running Pods gets an event.
func TestComingOverFromTheTrainingOperator(t *testing.T) {
	namespace := cluster.Namespace(t)
	condition := func(what string) string {
		return fmt.Sprintf("{type: %[1]s, status: 'True', reason: TFJob%[1]s, message: by the training operator, lastTransitionTime: '2026-01-01T00:00:00Z', lastUpdateTime: '2026-01-01T00:00:00Z'}", what)
	}
	of := func(name, policy, status string, conditions ...string) *testbed.TrainingJob {
		var all []string
		for _, c := range conditions {
			all = append(all, condition(c))
		}
		j := cluster.CreateTrainingJob(t, namespace, testbed.TFJob, name, "{runPolicy: {"+policy+"}, tfReplicaSpecs: {Worker: {@?}}}", nil)
		return j.WriteStatus("training-operator", "{"+status+"replicaStatuses: {Worker: {}}, conditions: ["+strings.Join(all, ", ")+"]}")
	}
	const began = "startTime: '2026-01-01T00:00:00Z', "
	suspended := of("suspended", "suspend: true", "", "Created", "Suspended")
	ended := of("ended", "ttlSecondsAfterFinished: 100000000", began+"completionTime: '2026-01-01T00:01:00Z', ", "Created", "Succeeded")
	over := of("over", "ttlSecondsAfterFinished: 1, cleanPodPolicy: All", began, "Created", "Failed") // Without a completionTime.
	running := of("running", "", began, "Created", "Running")
	cluster.CreatePod(t, namespace, testbed.MakePod("running-worker-0", func(pod *corev1.Pod) {
		pod.OwnerReferences, pod.Spec.SchedulerName = running.Owner(), testbed.ByHand
		pod.Labels = map[string]string{kubeflowv1.KeyJobName: "running", kubeflowv1.KeyReplicaType: "worker", kubeflowv1.KeyReplicaIndex: "0", kubeflowv1.KeyOperatorName: "tfjob-controller"}
	}))

	startForTrainingJobs(t, "")
	suspended.Change("{spec: {runPolicy: {suspend: false}}}").HasPairs("suspended-worker-0").Run().Has("Created !Suspended Running")
	running.Tells(corev1.EventTypeWarning, "ManagedElsewhere", "running-worker-0").HasPods("running-worker-0").HasServices()
	over.Tells(corev1.EventTypeNormal, "SuccessfulDeleteJob", "another controller has ended").IsGone()
	ended.HasPairs().Stays(time.Second)
	if s := ended.Status(); len(ended.Events()) > 0 || s.Starts > 0 {
		t.Errorf("the job that had ended has the events %+v and the status %+v", ended.Events(), s)
	}
}
