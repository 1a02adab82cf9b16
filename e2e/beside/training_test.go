//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package beside

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/unknownfields"
)

// byName is the part of a spec that gives a job to Lockstep.
const byName = "runPolicy: {managedBy: lockstep.dev/kubeflow}, "

// TestAJobOfV1alpha2OutlivesTheCRD that it was made by: upstream's, which takes its place, knows
// nothing of that version, and drops the mark. It is the first of the tests, and not parallel:
// the others find upstream's CRD.
func TestAJobOfV1alpha2OutlivesTheCRD(t *testing.T) {
	j := cluster.GivenTrainingJob(t, testbed.TFJobV1alpha2, "{"+byName+"tfReplicaSpecs: {PS: {@?}, Worker: {replicas: 2, @?}}}")
	all := []string{"j-ps-1-" + string(j.UID[:8]), "j-worker-1-" + string(j.UID[:8]), "j-worker-2-" + string(j.UID[:8])}
	j.HasPairs(all...).Run().InPhase(kubeflowv1.JobRunning)
	onUpstreamsCRDs(t)
	before := j.UIDs()
	j.Kill(all[1])
	testbed.Eventually(t, "another Pod of its name", func(context.Context) (bool, string, error) {
		uid := j.UIDs()[all[1]]
		return uid != "" && uid != before[all[1]], "", nil
	})
	j.HasPairs(all...)
}

// TestJobsRunOnUpstreamsCRDs, which drop what only Lockstep's status has.
func TestJobsRunOnUpstreamsCRDs(t *testing.T) {
	onUpstreamsCRDs(t)
	t.Parallel()
	for name, story := range map[string]func(t *testing.T, j *testbed.TrainingJob){
		"to their success, and are deleted in time": func(t *testing.T, j *testbed.TrainingJob) {
			j.HasPairs("j-worker-0", "j-worker-1").Run().Has("Created Running").Counts("Worker", testbed.PodCounts{Active: 2})
			j.End(0, "j-worker-1", "j-worker-0").Has("Created !Running Succeeded")
			j.IsGone()
		},
		"after Pods were made anew": func(t *testing.T, j *testbed.TrainingJob) {
			before := j.HasPairs("j-worker-0", "j-worker-1").Run().Has("Created Running").UIDs()
			j.Evict("j-worker-1").Passes("Created Restarting")
			testbed.Eventually(t, "another Pod", func(context.Context) (bool, string, error) {
				uid := j.UIDs()["j-worker-1"]
				return uid != "" && uid != before["j-worker-1"], "", nil
			})
			j.Run("j-worker-1").Has("Created Running").End(0, "j-worker-0").Has("Created !Running Succeeded")
		},
		"and are suspended and resumed": func(t *testing.T, j *testbed.TrainingJob) {
			j.HasPairs("j-worker-0", "j-worker-1").Run().Has("Created Running")
			j.Change("{spec: {runPolicy: {suspend: true}}}").HasPairs().Has("Created !Running Suspended")
			j.Change("{spec: {runPolicy: {suspend: false}}}").HasPairs("j-worker-0", "j-worker-1").Run().Has("Created !Suspended Running")
			if n := j.Writes(); n > 30 {
				t.Errorf("the job was written %d times", n)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story(t, cluster.GivenTrainingJob(t, testbed.TFJob,
				"{runPolicy: {managedBy: lockstep.dev/kubeflow, ttlSecondsAfterFinished: 2}, tfReplicaSpecs: {Worker: {replicas: 2, restartPolicy: ExitCode, @?}}}"))
		})
	}
}

// TestMoreKindsRunOnUpstreamsCRDs: those of the training operator that came later. The MPIJob of
// v2beta1 has a CRD of its own project, and keeps Lockstep's.
func TestMoreKindsRunOnUpstreamsCRDs(t *testing.T) {
	onUpstreamsCRDs(t)
	t.Parallel()
	for kind, life := range map[testbed.TrainingKind]struct{ field, decides string }{
		testbed.XGBoostJob: {"xgbReplicaSpecs: {Master: {replicas: 1, @?}, Worker: {replicas: 1, @?}}", "j-master-0"},
		testbed.PaddleJob:  {"paddleReplicaSpecs: {Master: {replicas: 1, @?}, Worker: {replicas: 1, @?}}", "j-master-0"},
		testbed.JAXJob:     {"jaxReplicaSpecs: {Worker: {replicas: 1, @?}}", "j-worker-0"},
	} {
		t.Run(life.field[:3], func(t *testing.T) {
			t.Parallel()
			j := cluster.GivenTrainingJob(t, kind, "{"+byName+life.field+"}").HasPods(with(life.decides, "j-worker-0")...).Run().Has("Created Running")
			before := j.UIDs()
			j.Kill("j-worker-0")
			testbed.Eventually(t, "another worker", func(context.Context) (bool, string, error) {
				uid := j.UIDs()["j-worker-0"]
				return uid != "" && uid != before["j-worker-0"], "", nil
			})
			j.Run("j-worker-0").Has("Created Running").End(0, life.decides).Has("Created !Running Succeeded")
		})
	}
}

// with are two names, or one if they are the same.
func with(a, b string) []string { return slices.Compact([]string{a, b}) }

// TestAJobSharesAServiceOnUpstreamsCRDs, though its status does not tell.
func TestAJobSharesAServiceOnUpstreamsCRDs(t *testing.T) {
	onUpstreamsCRDs(t)
	t.Parallel()
	j := cluster.GivenTrainingJob(t, testbed.TFJob, "{runPolicy: {managedBy: lockstep.dev/kubeflow, suspend: true}, tfReplicaSpecs: {Worker: {replicas: 2, @?}}}").Has("Created Suspended")
	j.Change("{metadata: {annotations: {kubeflow.lockstep.dev/services: PerJob}}, spec: {runPolicy: {suspend: false}}}")
	j.HasPods("j-worker-0", "j-worker-1").HasServices("j-tfjob").Run().Has("Created !Suspended Running")
	j.Change("{metadata: {annotations: {kubeflow.lockstep.dev/services: PerReplica}}}").Kill("j-worker-1")
	j.HasPods("j-worker-0", "j-worker-1").HasServices("j-tfjob")
}

// TestJobsOfOthersAreNeverTouched has jobs of the training operator and of MultiKueue beside one
// that is ours, in one namespace, with Pods as the training operator would make them. What the
// API server has written down of the controller's requests shows that it has changed nothing of
// them: it has not even tried.
func TestJobsOfOthersAreNeverTouched(t *testing.T) {
	onUpstreamsCRDs(t)
	t.Parallel()
	namespace := cluster.Namespace(t)
	foreign := map[string]string{
		"unmanaged": "", "theirs": "managedBy: kubeflow.org/training-operator, ", "remote": "managedBy: kueue.x-k8s.io/multikueue, ",
		"unknown": "managedBy: example.com/another, ",
	}
	var jobs []*testbed.TrainingJob
	for name, manager := range foreign {
		for _, kind := range []testbed.TrainingKind{testbed.TFJob, testbed.PyTorchJob} {
			field := map[testbed.TrainingKind]string{testbed.TFJob: "tfReplicaSpecs", testbed.PyTorchJob: "pytorchReplicaSpecs"}[kind]
			spec := fmt.Sprintf("{runPolicy: {%sttlSecondsAfterFinished: 0, suspend: true}, %s: {Worker: {@?{schedulerName: lockstep-scheduler}}}}", manager, field)
			jobs = append(jobs, cluster.CreateTrainingJob(t, namespace, kind, name, strings.ReplaceAll(spec, "@?", "@∞"), nil))
		}
	}
	for _, j := range jobs {
		j.Change("{spec: {runPolicy: {suspend: false}}}")
	}
	for name := range foreign {
		makeTheirPod(t, jobs[slices.IndexFunc(jobs, func(j *testbed.TrainingJob) bool { return j.Name == name })])
	}
	// One that comes later and is served shows that the others have been looked at.
	own := cluster.CreateTrainingJob(t, namespace, testbed.TFJob, "ours", "{"+byName+"tfReplicaSpecs: {Worker: {@?}}}", nil)
	own.HasPairs("ours-worker-0").Run().Has("Created Running").Stays(2 * time.Second)

	asked := 0
	for _, r := range cluster.Audited(t) {
		if r.Namespace != namespace || !strings.HasSuffix(r.User, "lockstep-controller") {
			continue
		}
		if r.Name == "ours" || strings.HasPrefix(r.Name, "ours-") || r.Resource == "events" && strings.HasPrefix(r.Name, "ours.") || r.Name == unknownfields.PodName {
			asked++
			continue
		}
		t.Errorf("the controller has asked for %+v", r)
	}
	if asked == 0 {
		t.Error("nothing was written down of what the controller does with its own job")
	}
	for _, j := range jobs {
		if len(j.Statuses()) > 0 || len(j.Events()) > 0 {
			t.Errorf("job %s has the statuses %+v and the events %+v", j.Name, j.Statuses(), j.Events())
		}
	}
}

// TestAJobThatAnotherControllerHasBegunIsLeftAlone although it is ours by its managedBy: it is
// told of that and nothing else.
func TestAJobThatAnotherControllerHasBegunIsLeftAlone(t *testing.T) {
	onUpstreamsCRDs(t)
	t.Parallel()
	// Suspended, it has nothing of ours yet.
	j := cluster.GivenTrainingJob(t, testbed.TFJob, "{runPolicy: {managedBy: lockstep.dev/kubeflow, suspend: true}, tfReplicaSpecs: {Worker: {@?}}}").Has("Created Suspended")
	makeTheirPod(t, j)
	j.Tells(corev1.EventTypeWarning, "ManagedElsewhere", "j-worker-0").Change("{spec: {runPolicy: {suspend: false}}}").Stays(2 * time.Second)
	j.HasPods("j-worker-0").HasServices()
	if n := j.Told("ManagedElsewhere"); n != 1 {
		t.Errorf("it was told %d times, want once", n)
	}
}

// makeTheirPod makes a Pod of worker 0 of a job as the training operator would.
func makeTheirPod(t *testing.T, j *testbed.TrainingJob) {
	t.Helper()
	cluster.CreatePod(t, j.Namespace, testbed.MakePod(j.Name+"-worker-0", func(pod *corev1.Pod) {
		pod.OwnerReferences = j.Owner()
		pod.Labels = map[string]string{
			kubeflowv1.KeyOperatorName: "tfjob-controller", kubeflowv1.KeyJobName: j.Name,
			kubeflowv1.KeyReplicaType: "worker", kubeflowv1.KeyReplicaIndex: "0",
		}
		pod.Spec.SchedulerName = testbed.ByHand
	}))
}
