//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

// trainingLife is a training job, what its user and its Pods do, and the end that all of it implies.
type trainingLife struct {
	kind testbed.TrainingKind
	spec string
	use  func(j *testbed.TrainingJob, pause func())
	// want is the phase in the end.
	want kubeflowv1.JobPhase
	// restarts is what is counted of them in the end, over all types.
	restarts int32
	// left are the Pods that are left.
	left []string
}

// remake has a Pod fail again and again, each time that it runs, and be made anew.
func remake(times int, pod string, fail func(j *testbed.TrainingJob)) func(*testbed.TrainingJob, func()) {
	return func(j *testbed.TrainingJob, pause func()) {
		for range times {
			before := j.Run(pod).Pod(pod).UID
			pause()
			fail(j)
			waitOther(j, pod, before)
		}
	}
}

// waitOther waits until a Pod is another than before.
func waitOther(j *testbed.TrainingJob, pod string, before types.UID) {
	j.Is("have another Pod "+pod, func(*kubeflowv1.JobStatus) bool {
		uid := j.UIDs()[pod]
		return uid != "" && uid != before
	})
}

var trainingJobs = map[string]trainingLife{
	"natural": {
		kind: testbed.TFJob, spec: "{runPolicy: {schedulingPolicy: {}, cleanPodPolicy: Running}, tfReplicaSpecs: {Worker: {replicas: 3, @2→0}, PS: {replicas: 1, @∞}}, successPolicy: AllWorkers}",
		want: kubeflowv1.JobSucceeded, left: []string{"j-worker-0", "j-worker-1", "j-worker-2"},
	},
	"failing": {
		kind: testbed.PyTorchJob, spec: "{runPolicy: {schedulingPolicy: {}, cleanPodPolicy: All}, pytorchReplicaSpecs: {Master: {replicas: 1, @∞}, Worker: {replicas: 2, restartPolicy: Never, @2→3}}}",
		want: kubeflowv1.JobFailed,
	},
	"restarted by exit codes": {
		kind: testbed.TFJob, spec: "{tfReplicaSpecs: {Worker: {replicas: 2, restartPolicy: ExitCode, @?}}}",
		use: func(j *testbed.TrainingJob, pause func()) {
			remake(4, "j-worker-1", func(j *testbed.TrainingJob) { j.End(137, "j-worker-1") })(j, pause)
			j.Run().End(0, "j-worker-1", "j-worker-0")
		},
		want: kubeflowv1.JobSucceeded, restarts: 4, left: []string{"j-worker-0", "j-worker-1"},
	},
	"out of restarts": {
		kind: testbed.TFJob, spec: "{runPolicy: {backoffLimit: 3, cleanPodPolicy: All}, tfReplicaSpecs: {Worker: {replicas: 1, restartPolicy: OnFailure, @?}}}",
		use: func(j *testbed.TrainingJob, pause func()) {
			remake(2, "j-worker-0", func(j *testbed.TrainingJob) { j.Evict("j-worker-0") })(j, pause)
			j.Run("j-worker-0").Evict("j-worker-0")
		},
		want: kubeflowv1.JobFailed, restarts: 3,
	},
	"deleted by others": {
		kind: testbed.PyTorchJob, spec: "{runPolicy: {backoffLimit: 1}, pytorchReplicaSpecs: {Master: {replicas: 1, @?}, Worker: {replicas: 1, @?}}}",
		use: func(j *testbed.TrainingJob, pause func()) {
			remake(3, "j-worker-0", func(j *testbed.TrainingJob) { j.Kill("j-worker-0") })(j, pause)
			j.End(0, "j-master-0")
		},
		want: kubeflowv1.JobSucceeded, left: []string{"j-master-0", "j-worker-0"},
	},
	"suspended": {
		kind: testbed.TFJob, spec: "{runPolicy: {cleanPodPolicy: All}, tfReplicaSpecs: {Chief: {@?}, Worker: {replicas: 2, @?}}}",
		use: func(j *testbed.TrainingJob, pause func()) {
			for range 3 {
				j.HasPods("j-chief-0", "j-worker-0", "j-worker-1").Run()
				j.End(0, "j-worker-0")
				pause()
				j.Change("{spec: {runPolicy: {suspend: true}}}")
				pause()
				j.HasPods().Change("{spec: {runPolicy: {suspend: false}}}")
			}
			j.HasPods("j-chief-0", "j-worker-0", "j-worker-1").Run().End(0, "j-chief-0")
		},
		want: kubeflowv1.JobSucceeded,
	},
	"rescaled": {
		kind: testbed.TFJob, spec: "{enableDynamicWorker: true, tfReplicaSpecs: {Worker: {replicas: 2, @?}}, runPolicy: {cleanPodPolicy: All}}",
		use: func(j *testbed.TrainingJob, pause func()) {
			for _, replicas := range []int{5, 1, 4, 3} {
				pause()
				j.Change(fmt.Sprintf("{spec: {tfReplicaSpecs: {Worker: {replicas: %d}}}}", replicas))
			}
			j.HasPods("j-worker-0", "j-worker-1", "j-worker-2").End(0, "j-worker-0")
		},
		want: kubeflowv1.JobSucceeded,
	},
	"of XGBoost, restarted by exit codes": {
		kind: testbed.XGBoostJob, spec: "{xgbReplicaSpecs: {Master: {replicas: 1, restartPolicy: ExitCode, @?}, Worker: {replicas: 1, restartPolicy: ExitCode, @?}}}",
		use: func(j *testbed.TrainingJob, pause func()) {
			remake(2, "j-worker-0", func(j *testbed.TrainingJob) { j.End(137, "j-worker-0") })(j, pause)
			j.Run().End(0, "j-worker-0", "j-master-0")
		},
		want: kubeflowv1.JobSucceeded, restarts: 2, left: []string{"j-master-0", "j-worker-0"},
	},
	"of Paddle, evicted": {
		kind: testbed.PaddleJob, spec: "{runPolicy: {cleanPodPolicy: All}, paddleReplicaSpecs: {Worker: {replicas: 2, @?}}}",
		use: func(j *testbed.TrainingJob, pause func()) {
			remake(2, "j-worker-1", func(j *testbed.TrainingJob) { j.Evict("j-worker-1") })(j, pause)
			j.Run().End(0, "j-worker-0", "j-worker-1")
		},
		want: kubeflowv1.JobSucceeded, restarts: 2,
	},
	"of JAX, rescaled": {
		kind: testbed.JAXJob, spec: "{jaxReplicaSpecs: {Worker: {replicas: 1, @?}}, runPolicy: {cleanPodPolicy: All}}",
		use: func(j *testbed.TrainingJob, pause func()) {
			for _, replicas := range []int{3, 2} {
				pause()
				j.Change(fmt.Sprintf("{spec: {jaxReplicaSpecs: {Worker: {replicas: %d}}}}", replicas))
			}
			j.HasPods("j-worker-0", "j-worker-1").End(0, "j-worker-0", "j-worker-1")
		},
		want: kubeflowv1.JobSucceeded,
	},
	"of MPI, launched anew": {
		kind: testbed.MPIJob, spec: "{runPolicy: {backoffLimit: 3, cleanPodPolicy: All}, mpiReplicaSpecs: {Launcher: {replicas: 1, restartPolicy: Never, @?}, Worker: {replicas: 2, @?}}}",
		use: func(j *testbed.TrainingJob, pause func()) {
			remake(2, "j-launcher", func(j *testbed.TrainingJob) { j.End(1, "j-launcher") })(j, pause)
			j.Run("j-launcher").End(0, "j-launcher")
		},
		want: kubeflowv1.JobSucceeded, restarts: 2, left: []string{"j-launcher"},
	},
	"with one Service, suspended": {
		kind: testbed.PyTorchJob, spec: "{runPolicy: {cleanPodPolicy: All}, pytorchReplicaSpecs: {Master: {replicas: 1, @?}, Worker: {replicas: 2, @?}}}",
		use: func(j *testbed.TrainingJob, pause func()) {
			j.Change("{metadata: {annotations: {kubeflow.lockstep.dev/services: PerJob}}}")
			j.Change("{spec: {runPolicy: {suspend: true}}}").HasPods().HasServices()
			pause()
			j.Change("{spec: {runPolicy: {suspend: false}}}").HasPods("j-master-0", "j-worker-0", "j-worker-1").HasServices("j-pytorchjob")
			pause()
			j.Kill("j-worker-1").HasPods("j-master-0", "j-worker-0", "j-worker-1").HasServices("j-pytorchjob").Run().End(0, "j-master-0")
			j.HasServices()
		},
		want: kubeflowv1.JobSucceeded,
	},
	"out of time": {
		kind: testbed.TFJob, spec: "{runPolicy: {activeDeadlineSeconds: 12, cleanPodPolicy: All}, tfReplicaSpecs: {Worker: {replicas: 2, @?}}}",
		want: kubeflowv1.JobFailed,
	},
}

// trainingLives are lives of training jobs.
func trainingLives() map[string]life {
	lives := map[string]life{"of v1alpha2 whose Pods are made once": madeOnceOfV1alpha2}
	for name, job := range trainingJobs {
		lives[name] = func(t *testing.T, namespace string, pause func(time.Duration)) {
			recording := cluster.RecordTrainingJobs(t, namespace, job.kind)
			j := cluster.CreateTrainingJob(t, namespace, job.kind, "j", job.spec, nil)
			if job.use != nil {
				job.use(j, func() { pause(2 * time.Second) })
			}
			j.InPhase(job.want).Is(fmt.Sprintf("count %d restarts", job.restarts), func(s *kubeflowv1.JobStatus) bool {
				sum := int32(0)
				for _, of := range s.ReplicaStatuses {
					sum += of.Restarts
				}
				return sum == job.restarts
			})
			j.HasPods(job.left...)
			recording.CheckQuiet(t)
		}
	}
	return lives
}

// madeOnceOfV1alpha2 is the life of a job of many workers. It takes a controller seconds to make them.
func madeOnceOfV1alpha2(t *testing.T, namespace string, _ func(time.Duration)) {
	const workers = 50
	recording := cluster.RecordTrainingJobs(t, namespace, testbed.TFJobV1alpha2)
	j := cluster.CreateTrainingJob(t, namespace, testbed.TFJobV1alpha2, "j", fmt.Sprintf("{tfReplicaSpecs: {Worker: {replicas: %d, @∞{schedulerName: lockstep-scheduler}}}}", workers), nil)
	var names []string
	for i := range workers {
		names = append(names, fmt.Sprintf("j-worker-%d-%s", i+1, j.UID[:8]))
	}
	j.HasPairs(names...).InPhase(kubeflowv1.JobRunning).Stays(2 * time.Second)
	recording.CheckQuiet(t)
	if made := recording.Pods(); made != workers {
		t.Errorf("%d Pods were made for %d workers", made, workers)
	}
}
