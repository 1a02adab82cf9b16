//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

func TestWhatAJobIsMadeOf(t *testing.T) {
	tell(t, map[string]func(t *testing.T){
		"one worker is a Pod and a Service, and no cluster": func(t *testing.T) {
			j := givenTraining(t, testbed.TFJob, "Worker 1").HasPairs("j-worker-0").Has("Created").Counts("Worker", counts{})
			wantTFConfig(t, j, map[string]string{"j-worker-0": ""})
			status := j.Status()
			if _, ok := status.ReplicaStatuses["Worker"]; !ok || len(status.ReplicaStatuses) != 1 || status.StartTime == nil {
				t.Errorf("the status is %+v, want counts of Worker and a startTime", status)
			}
		},
		"each replica has a Pod and a headless Service, with labels by which clients find them": func(t *testing.T) {
			names := append(numbered("worker", 4), numbered("ps", 2)...)
			j := givenTraining(t, testbed.TFJob, "Worker 4, PS 2").HasPairs(names...)
			pods, services := j.Pods(), j.Services()
			for _, name := range names {
				parts := strings.Split(name, "-")
				want := map[string]string{
					"training.kubeflow.org/operator-name": "tfjob-controller", "training.kubeflow.org/job-name": "j",
					"training.kubeflow.org/replica-type": parts[1], "training.kubeflow.org/replica-index": parts[2],
				}
				service := services[name]
				if diff := cmp.Diff(want, service.Spec.Selector); diff != "" || service.Spec.ClusterIP != corev1.ClusterIPNone || !service.Spec.PublishNotReadyAddresses {
					t.Errorf("the Service %s is %+v; its selector (-want,+got):\n%s", name, service.Spec, diff)
				}
				if name == "j-worker-0" {
					want["training.kubeflow.org/job-role"] = "master"
				}
				if diff := cmp.Diff(want, labelsWith(pods[name].Labels, "training.kubeflow.org/")); diff != "" {
					t.Errorf("labels of Pod %s (-want,+got):\n%s", name, diff)
				}
				for _, object := range []metav1.Object{pods[name], service} {
					owner := metav1.GetControllerOf(object)
					if owner.Kind != kubeflowv1.TFJobKind || owner.Name != "j" || owner.BlockOwnerDeletion == nil || !*owner.BlockOwnerDeletion {
						t.Errorf("the owner of %s is %+v", name, owner)
					}
				}
			}
		},
		"the logs of a job are those of its chief or master": func(t *testing.T) {
			for _, kind := range []struct {
				of       testbed.TrainingKind
				replicas string
				leader   string
			}{{testbed.TFJob, "Chief 1, Worker 1", "j-chief-0"}, {testbed.TFJob, "Master 1, Worker 1", "j-master-0"}, {testbed.PyTorchJob, "Master 1, Worker 1", "j-master-0"}} {
				for name, pod := range givenTraining(t, kind.of, kind.replicas).HasPairs("j-worker-0", kind.leader).Pods() {
					if role := pod.Labels[kubeflowv1.KeyJobRole]; (role == kubeflowv1.JobRoleMaster) != (name == kind.leader) {
						t.Errorf("Pod %s of %s has the role %q", name, kind.replicas, role)
					}
				}
			}
		},
		"types may be written in any case": func(t *testing.T) {
			j := givenTraining(t, testbed.TFJob, "ps 1, WORKER 1").HasPairs("j-ps-0", "j-worker-0")
			j.Is("count by the right names", func(s *kubeflowv1.JobStatus) bool {
				_, ps := s.ReplicaStatuses["PS"]
				_, worker := s.ReplicaStatuses["Worker"]
				return ps && worker && len(s.ReplicaStatuses) == 2
			})
		},
		"what a template says is kept, but for the job's own labels": func(t *testing.T) {
			j := cluster.GivenTrainingJob(t, testbed.TFJob, `{tfReplicaSpecs: {Worker: {template: {
				metadata: {labels: {a: "1", training.kubeflow.org/replica-index: "9"}, annotations: {b: "2"}, finalizers: [tests.lockstep.dev/kept]},
				spec: {schedulerName: by-hand, containers: [{name: tensorflow, image: i}]}}}}}`)
			pod := j.HasPairs("j-worker-0").Pod("j-worker-0")
			if pod.Labels["a"] != "1" || pod.Annotations["b"] != "2" || pod.Labels[kubeflowv1.KeyReplicaIndex] != "0" || !slices.Equal(pod.Finalizers, []string{"tests.lockstep.dev/kept"}) {
				t.Errorf("the Pod has the labels %v, annotations %v, finalizers %v", pod.Labels, pod.Annotations, pod.Finalizers)
			}
			release(t, j, "j-worker-0")
		},
		"the restartPolicy of the replicas counts, not that of the template": func(t *testing.T) {
			never := cluster.GivenTrainingJob(t, testbed.TFJob, "{tfReplicaSpecs: {Worker: {restartPolicy: Never, @?{restartPolicy: Always}}}}")
			never.Tells(corev1.EventTypeWarning, "SetPodTemplateRestartPolicy", "Worker")
			exitCode := givenTraining(t, testbed.TFJob, "Worker 1 ExitCode")
			for _, j := range []*testbed.TrainingJob{never, exitCode} {
				if policy := j.HasPairs("j-worker-0").Pod("j-worker-0").Spec.RestartPolicy; policy != corev1.RestartPolicyNever {
					t.Errorf("the Pod has the restartPolicy %s", policy)
				}
			}
			never.Run("j-worker-0").Has("Created Running")
			if n := never.Told("SetPodTemplateRestartPolicy"); n != 1 {
				t.Errorf("the user was warned %d times, want once", n)
			}
			if n := exitCode.Told("SetPodTemplateRestartPolicy"); n != 0 {
				t.Errorf("the user was warned %d times of a template that says nothing", n)
			}
		},
		"replicas come and go with their Services": func(t *testing.T) {
			j := givenTraining(t, testbed.TFJob, "Worker 3", "enableDynamicWorker: true").HasPairs(numbered("worker", 3)...)
			j.Change("{spec: {tfReplicaSpecs: {Worker: {replicas: 2}}}}").HasPairs(numbered("worker", 2)...)
			j = givenTraining(t, testbed.TFJob, "Worker 1").HasPairs("j-worker-0")
			j.Change("{spec: {tfReplicaSpecs: {Worker: {replicas: 3}}}}").HasPairs(numbered("worker", 3)...)
		},
		"the longest name that is allowed is one of Services, too": func(t *testing.T) {
			// The longest name that the API server takes: that of the last Service has 63 letters.
			name := strings.Repeat("x", 63-len("-worker-10"))
			j := cluster.CreateTrainingJob(t, cluster.Namespace(t), testbed.TFJob, name, trainingSpec(testbed.TFJob, "Worker 11", "@?"), nil)
			j.Pod(name + "-worker-10")
		},
	})
}

// release lets a Pod go that has finalizers.
func release(t *testing.T, j *testbed.TrainingJob, pod string) {
	t.Helper()
	if _, err := cluster.Kubectl(t.Context(), "-n", j.Namespace, "patch", "pod", pod, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`); err != nil {
		t.Fatal(err)
	}
}

// labelsWith are the labels whose keys have a prefix.
func labelsWith(labels map[string]string, prefix string) map[string]string {
	with := map[string]string{}
	for key, value := range labels {
		if strings.HasPrefix(key, prefix) {
			with[key] = value
		}
	}
	return with
}

// wantTFConfig wants Pods to have these values of TF_CONFIG. In one that is wanted, N stands for
// the namespace; an empty one stands for none.
func wantTFConfig(t *testing.T, j *testbed.TrainingJob, want map[string]string) {
	t.Helper()
	for name, config := range want {
		got, _ := testbed.EnvOf(j.Pod(name), "tensorflow", "TF_CONFIG")
		if config = strings.ReplaceAll(config, ".N.svc", "."+j.Namespace+".svc"); got != config {
			t.Errorf("TF_CONFIG of Pod %s is %s, want %s", name, got, config)
		}
	}
}

func TestTFConfigTellsWhoTheOthersAre(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		// spec of a TFJob; if it is empty, one of replicas.
		spec, replicas string
		want           map[string]string
	}{
		"by type, in the order of their names": {
			replicas: "Worker 2, PS 1, Evaluator 1",
			want: map[string]string{
				"j-evaluator-0": `{"cluster":{"evaluator":["j-evaluator-0.N.svc:2222"],"ps":["j-ps-0.N.svc:2222"],"worker":["j-worker-0.N.svc:2222","j-worker-1.N.svc:2222"]},"task":{"type":"evaluator","index":0},"environment":"cloud"}`,
				"j-worker-1":    `{"cluster":{"evaluator":["j-evaluator-0.N.svc:2222"],"ps":["j-ps-0.N.svc:2222"],"worker":["j-worker-0.N.svc:2222","j-worker-1.N.svc:2222"]},"task":{"type":"worker","index":1},"environment":"cloud"}`,
			},
		},
		"also to a chief": {
			replicas: "Chief 1, Worker 1",
			want: map[string]string{
				"j-chief-0":  `{"cluster":{"chief":["j-chief-0.N.svc:2222"],"worker":["j-worker-0.N.svc:2222"]},"task":{"type":"chief","index":0},"environment":"cloud"}`,
				"j-worker-0": `{"cluster":{"chief":["j-chief-0.N.svc:2222"],"worker":["j-worker-0.N.svc:2222"]},"task":{"type":"worker","index":0},"environment":"cloud"}`,
			},
		},
		"not to one that is alone": {replicas: "PS 1", want: map[string]string{"j-ps-0": ""}},
		"by the ports that they have": {
			spec: "{tfReplicaSpecs: {Worker: {@?}, PS: {@?{containers: [{name: tensorflow, image: i, ports: [{name: tfjob-port, containerPort: 5000}, {name: http, containerPort: 80}]}]}}}}",
			want: map[string]string{
				"j-worker-0": `{"cluster":{"ps":["j-ps-0.N.svc:5000"],"worker":["j-worker-0.N.svc:2222"]},"task":{"type":"worker","index":0},"environment":"cloud"}`,
			},
		},
		"and nothing of other workers where those come and go": {
			spec: trainingSpec(testbed.TFJob, "Worker 2, PS 2", "@?", "enableDynamicWorker: true"),
			want: map[string]string{
				"j-worker-1": `{"cluster":{"worker":{"1":"j-worker-1.N.svc:2222"},"ps":["j-ps-0.N.svc:2222","j-ps-1.N.svc:2222"]},"task":{"type":"worker","index":1}}`,
				"j-ps-0":     `{"cluster":{"worker":{},"ps":["j-ps-0.N.svc:2222"]},"task":{"type":"ps","index":0}}`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.spec == "" {
				tc.spec = trainingSpec(testbed.TFJob, tc.replicas, "@?")
			}
			j := cluster.GivenTrainingJob(t, testbed.TFJob, tc.spec)
			wantTFConfig(t, j, tc.want)
			if name == "by the ports that they have" {
				wantPorts(t, j, "j-ps-0", map[string]int32{"tfjob-port": 5000, "http": 80})
			}
		})
	}
	t.Run("only in the container that trains, after what the user says", func(t *testing.T) {
		t.Parallel()
		j := cluster.GivenTrainingJob(t, testbed.TFJob, "{tfReplicaSpecs: {Worker: {replicas: 2, @?{containers: [{name: tensorflow, image: i, env: [{name: TF_CONFIG, value: x}]}, {name: log, image: i}]}}}}")
		pod := j.Pod("j-worker-0")
		if config, ok := testbed.EnvOf(pod, "log", "TF_CONFIG"); ok {
			t.Errorf("TF_CONFIG of the container log is %s", config)
		}
		env := pod.Spec.Containers[0].Env
		if len(env) != 2 || env[0].Value != "x" || !strings.HasPrefix(env[1].Value, `{"cluster":{"worker":["j-worker-0.`) {
			t.Errorf("the variables of the container tensorflow are %+v", env)
		}
	})
}

// wantPorts wants a Service to have these ports.
func wantPorts(t *testing.T, j *testbed.TrainingJob, service string, want map[string]int32) {
	t.Helper()
	got := map[string]int32{}
	for _, port := range j.Services()[service].Spec.Ports {
		got[port.Name] = port.Port
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ports of the Service %s (-want,+got):\n%s", service, diff)
	}
}

func TestPyTorchIsToldWhoTheOthersAre(t *testing.T) {
	t.Parallel()
	const elastic = "Worker 2"
	none := func(names ...string) map[string]string {
		absent := map[string]string{}
		for _, name := range names {
			absent[name] = "(none)"
		}
		return absent
	}
	for name, tc := range map[string]struct {
		replicas string
		more     []string
		pod      string
		want     map[string]string
		// waits says that the Pod waits for the master to have an address.
		waits bool
	}{
		"a worker of a job with a master": {
			replicas: "Master 1, Worker 2", pod: "j-worker-1", waits: true,
			want: map[string]string{
				"PYTHONUNBUFFERED": "1", "RANK": "2", "PET_NODE_RANK": "2", "WORLD_SIZE": "3", "MASTER_ADDR": "j-master-0", "PET_MASTER_ADDR": "j-master-0",
				"MASTER_PORT": "23456", "PET_MASTER_PORT": "23456", "PET_NNODES": "3", "PET_NPROC_PER_NODE": "auto",
			},
		},
		"the master": {replicas: "Master 1, Worker 2", pod: "j-master-0", want: map[string]string{"RANK": "0", "PET_NODE_RANK": "0", "WORLD_SIZE": "3"}},
		"four processes in each Pod": {
			replicas: "Master 1, Worker 2", more: []string{`nprocPerNode: "4"`}, pod: "j-worker-0", waits: true,
			want: map[string]string{"WORLD_SIZE": "12", "PET_NPROC_PER_NODE": "4"},
		},
		"as many processes as there are GPUs": {
			replicas: "Master 1, Worker 2", more: []string{"nprocPerNode: gpu"}, pod: "j-worker-0", waits: true,
			want: map[string]string{"WORLD_SIZE": "3", "PET_NPROC_PER_NODE": "gpu"},
		},
		"without a master nobody has a rank": {
			replicas: "Worker 2", pod: "j-worker-1",
			want: none("RANK", "WORLD_SIZE", "MASTER_ADDR", "PET_NODE_RANK"),
		},
		"where elastic workers meet": {
			replicas: elastic, more: []string{"elasticPolicy: {rdzvHost: h, rdzvPort: 1234, rdzvId: r, rdzvConf: [{key: a, value: '1'}, {key: b, value: '2'}]}"}, pod: "j-worker-0",
			want: map[string]string{"PET_RDZV_ENDPOINT": "h:1234", "PET_RDZV_ID": "r", "PET_RDZV_CONF": "a=1,b=2", "PET_NNODES": "2:2"},
		},
		"an empty rdzvConf is none": {replicas: elastic, more: []string{"elasticPolicy: {rdzvConf: []}"}, pod: "j-worker-0", want: none("PET_RDZV_CONF")},
		"the most elastic workers alone are the fewest, too": {
			replicas: elastic, more: []string{"elasticPolicy: {maxReplicas: 4}"}, pod: "j-worker-0", want: map[string]string{"PET_NNODES": "4:4"},
		},
		"a master is one more than the elastic workers": {
			replicas: "Master 1, Worker 2", more: []string{"elasticPolicy: {minReplicas: 1, maxReplicas: 3}"}, pod: "j-worker-0", waits: true,
			want: map[string]string{"PET_NNODES": "2:4"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := givenTraining(t, testbed.PyTorchJob, tc.replicas, tc.more...).Pod(tc.pod)
			for variable, want := range tc.want {
				got, ok := testbed.EnvOf(pod, "pytorch", variable)
				if !ok {
					got = "(none)"
				}
				if got != want {
					t.Errorf("%s of Pod %s is %s, want %s", variable, tc.pod, got, want)
				}
			}
			if waits := len(pod.Spec.InitContainers) == 1 && pod.Spec.InitContainers[0].Name == "init-pytorch"; waits != tc.waits || len(pod.Spec.InitContainers) > 1 {
				t.Errorf("Pod %s has the init containers %+v", tc.pod, pod.Spec.InitContainers)
			}
		})
	}
}
