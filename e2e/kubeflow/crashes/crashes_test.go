//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package crashes

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// jobLife is a job, what its user and its Pods do, and the end that all of it implies.
type jobLife struct {
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

var jobLives = map[string]jobLife{
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

// TestControllerCrashesUnderTrainingJobs kills the controller at random moments while jobs are
// made, restarted, suspended, rescaled and ended. Each must come to the end that its spec, its
// user and its Pods imply, as if nothing had happened, with the guarantees kept all the way.
func TestControllerCrashesUnderTrainingJobs(t *testing.T) {
	lives := map[string]testbed.Life{}
	for name, life := range jobLives {
		lives[name] = func(t *testing.T, namespace string, pause func(time.Duration)) {
			recording := cluster.RecordTrainingJobs(t, namespace, life.kind)
			j := cluster.CreateTrainingJob(t, namespace, life.kind, "j", life.spec, nil)
			if life.use != nil {
				life.use(j, func() { pause(2 * time.Second) })
			}
			j.InPhase(life.want).Is(fmt.Sprintf("count %d restarts", life.restarts), func(s *kubeflowv1.JobStatus) bool {
				sum := int32(0)
				for _, of := range s.ReplicaStatuses {
					sum += of.Restarts
				}
				return sum == life.restarts
			})
			j.HasPods(life.left...)
			recording.CheckQuiet(t)
		}
	}
	cluster.UnderCrashes(t, localenv.WithKubeflowJobs("takeJobs: All"), 20, lives)
}

// recorded makes a job j of a spec, in a namespace of its own of which all is recorded.
func recorded(t *testing.T, kind testbed.TrainingKind, spec string) (*testbed.TrainingJob, *testbed.Recording) {
	t.Helper()
	namespace := cluster.Namespace(t)
	recording := cluster.RecordTrainingJobs(t, namespace, kind)
	return cluster.CreateTrainingJob(t, namespace, kind, "j", spec, nil), recording
}

// TestAJobOfV1alpha2IsMadeOnce, of 50 workers, although the controller dies again and again
// while it makes them.
func TestAJobOfV1alpha2IsMadeOnce(t *testing.T) {
	const workers, kills = 50, 5
	namespace := cluster.Namespace(t)
	recording := cluster.RecordTrainingJobs(t, namespace, testbed.TFJobV1alpha2)
	controller := start(t, "")
	j := cluster.CreateTrainingJob(t, namespace, testbed.TFJobV1alpha2, "j", fmt.Sprintf("{tfReplicaSpecs: {Worker: {replicas: %d, @∞{schedulerName: lockstep-scheduler}}}}", workers), nil)
	var names []string
	for i := range workers {
		names = append(names, fmt.Sprintf("j-worker-%d-%s", i+1, j.UID[:8]))
	}
	for i := range kills {
		least := i * workers / kills
		testbed.Eventually(t, fmt.Sprintf("%d Services", least), func(context.Context) (bool, string, error) {
			n := len(j.Services())
			return n >= least, fmt.Sprint(n), nil
		})
		controller.Kill()
		controller = start(t, "")
	}
	j.HasPairs(names...).InPhase(kubeflowv1.JobRunning).Stays(2 * time.Second)
	recording.CheckQuiet(t)
	if made := recording.Pods(); made != workers {
		t.Errorf("%d Pods were made for %d workers", made, workers)
	}
}

// TestWhatHappensWhileNoControllerRunsIsNotLost: a failure, a success, and a Pod that somebody
// deletes.
func TestWhatHappensWhileNoControllerRunsIsNotLost(t *testing.T) {
	controller := start(t, "")
	var recordings []*testbed.Recording
	of := func(restartPolicy string) *testbed.TrainingJob {
		j, recording := recorded(t, testbed.TFJob, "{successPolicy: AllWorkers, tfReplicaSpecs: {Worker: {replicas: 2, restartPolicy: "+restartPolicy+", @?}}}")
		recordings = append(recordings, recording)
		return j.HasPods("j-worker-0", "j-worker-1").Run().Counts("Worker", testbed.PodCounts{Active: 2})
	}
	failing, remade, deleted := of("Never"), of("ExitCode"), of("Never")
	controller.Kill()
	failing.End(1, "j-worker-1")
	before := remade.Pod("j-worker-1").UID
	remade.End(143, "j-worker-1").End(0, "j-worker-0")
	deleted.Kill("j-worker-1").HasPods("j-worker-0")
	start(t, "")
	failing.Has("Created !Running Failed").Counts("Worker", testbed.PodCounts{Active: 1, Failed: 1})
	waitOther(remade, "j-worker-1", before)
	remade.End(0, "j-worker-1").InPhase(kubeflowv1.JobSucceeded).Counts("Worker", testbed.PodCounts{Succeeded: 2})
	if n := remade.Status().ReplicaStatuses["Worker"].Restarts; n != 1 {
		t.Errorf("%d restarts are counted, want 1", n)
	}
	deleted.HasPods("j-worker-0", "j-worker-1").Run("j-worker-1").Counts("Worker", testbed.PodCounts{Active: 2}).Never(kubeflowv1.JobConditionFailed)
	for _, recording := range recordings {
		recording.CheckQuiet(t)
	}
}

// TestTimesOutliveTheController that has begun to wait for them.
func TestTimesOutliveTheController(t *testing.T) {
	controller := start(t, "")
	late, ofLate := recorded(t, testbed.TFJob, "{runPolicy: {activeDeadlineSeconds: 10}, tfReplicaSpecs: {Worker: {@?}}}")
	late.HasPods("j-worker-0")
	done, ofDone := recorded(t, testbed.TFJob, "{runPolicy: {ttlSecondsAfterFinished: 10}, tfReplicaSpecs: {Worker: {@?}}}")
	done.End(0, "j-worker-0").Has("Created Succeeded")
	controller.Kill()
	testbed.PauseFor(t, 5*time.Second)
	start(t, "")
	s := late.Has("Created Failed").Status()
	if active := s.CompletionTime.Sub(s.StartTime.Time); active < 10*time.Second || active > time.Minute {
		t.Errorf("it was active for %v, want about 10s", active)
	}
	done.IsGone()
	if kept := time.Since(done.Status().CompletionTime.Time); kept < 10*time.Second {
		t.Errorf("it was kept for %v, want 10s", kept)
	}
	ofLate.CheckQuiet(t)
	ofDone.CheckQuiet(t)
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
	controller := start(t, settings)
	j, recording := recorded(t, testbed.TFJobV1alpha2, "{tfReplicaSpecs: {PS: {replicas: 2, @?}, Worker: {replicas: 3, @?}}}")
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
	start(t, settings)
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
	start(t, "customClusterDomain: tf.org, pytorchInitImage: 'example.com/init:1', pytorchInitMaxTries: 7, gang: Always")
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
	if len(init) != 1 || init[0].Image != "example.com/init:1" || !regexp.MustCompile(`\b7\b`).MatchString(fmt.Sprint(init[0].Command)) {
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

// TestComingOverFromTheTrainingOperator has jobs that it has left behind: one that it has
// suspended goes on, one that has ended stays as it is, and one whose Pods run is told of.
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
	running := of("running", "", began, "Created", "Running")
	cluster.CreatePod(t, namespace, testbed.MakePod("running-worker-0", func(pod *corev1.Pod) {
		pod.OwnerReferences, pod.Spec.SchedulerName = running.Owner(), testbed.ByHand
		pod.Labels = map[string]string{kubeflowv1.KeyJobName: "running", kubeflowv1.KeyReplicaType: "worker", kubeflowv1.KeyReplicaIndex: "0", kubeflowv1.KeyOperatorName: "tfjob-controller"}
	}))

	start(t, "")
	suspended.Change("{spec: {runPolicy: {suspend: false}}}").HasPairs("suspended-worker-0").Run().Has("Created !Suspended Running")
	running.Tells(corev1.EventTypeWarning, "ManagedElsewhere", "running-worker-0").HasPods("running-worker-0").HasServices()
	ended.HasPairs().Stays(time.Second)
	if s := ended.Status(); len(ended.Events()) > 0 || s.Starts > 0 {
		t.Errorf("the job that had ended has the events %+v and the status %+v", ended.Events(), s)
	}
}
