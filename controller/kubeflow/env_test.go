// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
)

// envOf are the variables of a container of a Pod, in order.
func (w *world) envOf(pod string, container int) []string {
	w.T.Helper()
	p := w.settle().Pod(pod)
	if p == nil {
		w.T.Fatalf("there is no Pod %s", pod)
	}
	var all []string
	for _, e := range p.Spec.Containers[container].Env {
		all = append(all, e.Name+"="+e.Value)
	}
	return all
}

// TestTensorFlowIsToldOfTheCluster in TF_CONFIG.
func TestTensorFlowIsToldOfTheCluster(t *testing.T) {
	tests := map[string]struct {
		spec, domain, pod string
		want              string
	}{
		"a worker and a parameter server": {
			spec: "{tfReplicaSpecs: {Worker: {@t}, PS: {@t}}}", domain: "tf.org", pod: "j-worker-0",
			want: `{"cluster":{"ps":["j-ps-0.n.svc.tf.org:2222"],"worker":["j-worker-0.n.svc.tf.org:2222"]},"task":{"type":"worker","index":0},"environment":"cloud"}`,
		},
		"an evaluator is part of the cluster": {
			spec: "{tfReplicaSpecs: {Worker: {replicas: 2, @t}, PS: {@t}, Evaluator: {@t}}}", pod: "j-evaluator-0",
			want: `{"cluster":{"evaluator":["j-evaluator-0.n.svc:2222"],"ps":["j-ps-0.n.svc:2222"],"worker":["j-worker-0.n.svc:2222","j-worker-1.n.svc:2222"]},"task":{"type":"evaluator","index":0},"environment":"cloud"}`,
		},
		"a port of one's own": {
			spec: "{tfReplicaSpecs: {Worker: {@t}, PS: {template: {spec: {containers: [{name: tensorflow, image: i, ports: [{name: tfjob-port, containerPort: 5000}, {name: http, containerPort: 80}]}]}}}}}", pod: "j-worker-0",
			want: `{"cluster":{"ps":["j-ps-0.n.svc:5000"],"worker":["j-worker-0.n.svc:2222"]},"task":{"type":"worker","index":0},"environment":"cloud"}`,
		},
		"a dynamic worker knows itself and the parameter servers": {
			spec: "{enableDynamicWorker: true, tfReplicaSpecs: {Worker: {replicas: 2, @t}, PS: {replicas: 2, @t}}}", pod: "j-worker-1",
			want: `{"cluster":{"worker":{"1":"j-worker-1.n.svc:2222"},"ps":["j-ps-0.n.svc:2222","j-ps-1.n.svc:2222"]},"task":{"type":"worker","index":1}}`,
		},
		"its parameter servers know themselves": {
			spec: "{enableDynamicWorker: true, tfReplicaSpecs: {Worker: {replicas: 2, @t}, PS: {replicas: 2, @t}}}", pod: "j-ps-0",
			want: `{"cluster":{"worker":{},"ps":["j-ps-0.n.svc:2222"]},"task":{"type":"ps","index":0}}`,
		},
		"its chief knows nobody": {
			spec: "{enableDynamicWorker: true, tfReplicaSpecs: {Chief: {@t}, Worker: {@t}}}", pod: "j-chief-0",
			want: `{"cluster":{"worker":{},"ps":[]},"task":{"type":"chief","index":0}}`,
		},
		"a type without replicas": {
			spec: "{tfReplicaSpecs: {Chief: {@t}, Worker: {@t}, PS: {replicas: 0, @t}}}", pod: "j-chief-0",
			want: `{"cluster":{"chief":["j-chief-0.n.svc:2222"],"ps":[],"worker":["j-worker-0.n.svc:2222"]},"task":{"type":"chief","index":0},"environment":"cloud"}`,
		},
		"a single Pod is no cluster": {spec: "{tfReplicaSpecs: {PS: {@t}}}", pod: "j-ps-0"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := given(t, tc.spec)
			w.core.options.ClusterDomain = tc.domain
			if got, _ := w.env(tc.pod, 0, "TF_CONFIG"); got != tc.want {
				t.Errorf("TF_CONFIG is\n%s, want\n%s", got, tc.want)
			}
		})
	}
}

// TestOnlyTheContainerThatTrainsIsTold, after what the user has set.
func TestOnlyTheContainerThatTrainsIsTold(t *testing.T) {
	w := given(t, `{tfReplicaSpecs: {Worker: {replicas: 2, template: {spec: {containers: [{name: log, image: i}, {name: tensorflow, image: i, env: [{name: TF_CONFIG, value: x}]}]}}}, PS: {@t}}}`)
	if got := w.envOf("j-worker-0", 0); len(got) > 0 {
		t.Errorf("log has %v", got)
	}
	if got := w.envOf("j-worker-0", 1); len(got) != 2 || got[0] != "TF_CONFIG=x" || got[1] == "TF_CONFIG=x" {
		t.Errorf("tensorflow has %v", got)
	}
	if ports := w.Pod("j-worker-0").Spec.Containers[1].Ports; len(ports) != 1 || ports[0].Name != "tfjob-port" {
		t.Errorf("ports: %v", ports)
	}
}

// TestAServiceHasAllNamedPorts of the container that trains.
func TestAServiceHasAllNamedPorts(t *testing.T) {
	w := given(t, "{tfReplicaSpecs: {Worker: {template: {spec: {containers: [{name: tensorflow, image: i, ports: [{containerPort: 7}, {name: http, containerPort: 80}]}]}}}}}")
	var names []string
	for _, port := range w.service("j-worker-0").Spec.Ports {
		names = append(names, port.Name)
	}
	if diff := cmp.Diff([]string{"http", "tfjob-port"}, names); diff != "" {
		t.Errorf("ports (-want,+got):\n%s", diff)
	}
}

// TestPyTorchIsToldHowToMeet, in this order.
func TestPyTorchIsToldHowToMeet(t *testing.T) {
	tests := map[string]struct {
		spec, pod string
		want      []string
	}{
		"a worker with a master": {
			spec: torch("2", "", ""), pod: "j-worker-1",
			want: []string{"PYTHONUNBUFFERED=1", "MASTER_PORT=23456", "PET_MASTER_PORT=23456", "MASTER_ADDR=j-master-0", "PET_MASTER_ADDR=j-master-0",
				"WORLD_SIZE=3", "RANK=2", "PET_NODE_RANK=2", "PET_NPROC_PER_NODE=auto", "PET_NNODES=3"},
		},
		"the master": {
			spec: torch("2", "", "nprocPerNode: '4', "), pod: "j-master-0",
			want: []string{"PYTHONUNBUFFERED=1", "MASTER_PORT=23456", "PET_MASTER_PORT=23456", "MASTER_ADDR=j-master-0", "PET_MASTER_ADDR=j-master-0",
				"WORLD_SIZE=12", "RANK=0", "PET_NODE_RANK=0", "PET_NPROC_PER_NODE=4", "PET_NNODES=3"},
		},
		"processes that are no number": {
			spec: torch("2", "", "nprocPerNode: gpu, "), pod: "j-master-0",
			want: []string{"PYTHONUNBUFFERED=1", "MASTER_PORT=23456", "PET_MASTER_PORT=23456", "MASTER_ADDR=j-master-0", "PET_MASTER_ADDR=j-master-0",
				"WORLD_SIZE=3", "RANK=0", "PET_NODE_RANK=0", "PET_NPROC_PER_NODE=gpu", "PET_NNODES=3"},
		},
		"workers alone": {
			spec: "{pytorchReplicaSpecs: {Worker: {replicas: 2, @t}}}", pod: "j-worker-1",
			want: []string{"PYTHONUNBUFFERED=1", "PET_NPROC_PER_NODE=auto", "PET_NNODES=2"},
		},
		"elastic workers": {
			spec: "{elasticPolicy: {minReplicas: 1, maxReplicas: 3, maxRestarts: 3}, pytorchReplicaSpecs: {Worker: {@t}}}", pod: "j-worker-0",
			want: []string{"PYTHONUNBUFFERED=1", "PET_NPROC_PER_NODE=auto", "PET_RDZV_ENDPOINT=j-worker-0:23456", "PET_RDZV_BACKEND=c10d", "PET_NNODES=1:3", "PET_MAX_RESTARTS=3"},
		},
		"elastic workers with all there is": {
			spec: "{elasticPolicy: {maxReplicas: 4, rdzvBackend: etcd, rdzvHost: h, rdzvPort: 1234, rdzvId: r, rdzvConf: [{key: a, value: '1'}, {key: b, value: '2'}], standalone: true, nProcPerNode: 2}, pytorchReplicaSpecs: {Worker: {replicas: 2, @t}}}", pod: "j-worker-0",
			want: []string{"PYTHONUNBUFFERED=1", "PET_RDZV_ENDPOINT=h:1234", "PET_RDZV_BACKEND=etcd", "PET_NNODES=4:4", "PET_NPROC_PER_NODE=2", "PET_RDZV_ID=r", "PET_RDZV_CONF=a=1,b=2", "PET_STANDALONE="},
		},
		"elastic workers without bounds": {
			spec: "{elasticPolicy: {}, pytorchReplicaSpecs: {Worker: {replicas: 2, @t}}}", pod: "j-worker-0",
			want: []string{"PYTHONUNBUFFERED=1", "PET_NPROC_PER_NODE=auto", "PET_RDZV_ENDPOINT=j-worker-0:23456", "PET_RDZV_BACKEND=c10d", "PET_NNODES=2:2"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, givenTorch(t, tc.spec).envOf(tc.pod, 0)); diff != "" {
				t.Errorf("variables (-want,+got):\n%s", diff)
			}
		})
	}
}

// TestWorkersOfPyTorchWaitForTheMaster in a container of their own.
func TestWorkersOfPyTorchWaitForTheMaster(t *testing.T) {
	w := givenTorch(t, torch("1", "", "")).settle()
	if inits := w.Pod("j-master-0").Spec.InitContainers; len(inits) > 0 {
		t.Errorf("the master has %v", inits)
	}
	inits := w.Pod("j-worker-0").Spec.InitContainers
	if len(inits) != 1 || inits[0].Name != "init-pytorch" || inits[0].Image != "lockstep.dev/frameworkbarrier:dev" || inits[0].ImagePullPolicy != corev1.PullIfNotPresent || len(inits[0].Env) > 0 {
		t.Fatalf("the worker has %+v", inits)
	}
	if diff := cmp.Diff([]string{"resolve", "--tries=100", "j-master-0"}, inits[0].Args); diff != "" || len(inits[0].Command) > 0 {
		t.Errorf("it runs %v with (-want,+got):\n%s", inits[0].Command, diff)
	}
	if inits := givenTorch(t, "{pytorchReplicaSpecs: {Worker: {@t}}}").settle().Pod("j-worker-0").Spec.InitContainers; len(inits) > 0 {
		t.Errorf("without a master a worker has %v", inits)
	}
}

// TestAnotherImageWaitsForTheMasterByACommandOfItsOwn, which is told the name and how often to try.
func TestAnotherImageWaitsForTheMasterByACommandOfItsOwn(t *testing.T) {
	w := givenTorch(t, torch("1", "", ""))
	w.core.options.InitImage, w.core.options.InitMaxTries = "alpine:3.22", 7
	w.core.options.InitCommand = []string{"sh", "-c", "until nslookup $MASTER_ADDR; do sleep 2; done"}
	init := w.settle().Pod("j-worker-0").Spec.InitContainers[0]
	if init.Image != "alpine:3.22" || len(init.Args) > 0 {
		t.Errorf("the image %s has the arguments %q", init.Image, init.Args)
	}
	if diff := cmp.Diff(w.core.options.InitCommand, init.Command); diff != "" {
		t.Errorf("command (-want,+got):\n%s", diff)
	}
	if diff := cmp.Diff([]corev1.EnvVar{{Name: "MASTER_ADDR", Value: "j-master-0"}, {Name: "MAX_TRIES", Value: "7"}}, init.Env); diff != "" {
		t.Errorf("variables (-want,+got):\n%s", diff)
	}
}

// TestXGBoostIsToldOfTheMasterAndTheWorkers, in all containers: the tracker of XGBoost is with the
// master, and LightGBM wants all workers.
func TestXGBoostIsToldOfTheMasterAndTheWorkers(t *testing.T) {
	of := func(rest string) string { return "{xgbReplicaSpecs: {Master: {replicas: 1, @t}" + rest + "}}" }
	const two = ", Worker: {replicas: 2, template: {spec: {containers: [{name: xgboost, image: i, ports: [{name: xgboostjob-port, containerPort: 77}]}, {name: log, image: i}]}}}"
	told := func(rank string) []string {
		return []string{"MASTER_PORT=9999", "MASTER_ADDR=j-master-0", "WORLD_SIZE=3", "RANK=" + rank, "PYTHONUNBUFFERED=1", "WORKER_PORT=77", "WORKER_ADDRS=j-worker-0,j-worker-1"}
	}
	tests := map[string]struct {
		spec, pod string
		container int
		want      []string
	}{
		"the master":                    {spec: of(two), pod: "j-master-0", want: told("0")},
		"a worker":                      {spec: of(two), pod: "j-worker-1", want: told("2")},
		"another container of it":       {spec: of(two), pod: "j-worker-0", container: 1, want: told("1")},
		"a master alone":                {spec: of(""), pod: "j-master-0", want: []string{"MASTER_PORT=9999", "MASTER_ADDR=j-master-0", "WORLD_SIZE=1", "RANK=0", "PYTHONUNBUFFERED=1"}},
		"a master with workers of none": {spec: of(", Worker: {replicas: 0, @t}"), pod: "j-master-0", want: []string{"MASTER_PORT=9999", "MASTER_ADDR=j-master-0", "WORLD_SIZE=1", "RANK=0", "PYTHONUNBUFFERED=1"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, givenXGBoost(t, tc.spec).envOf(tc.pod, tc.container)); diff != "" {
				t.Errorf("variables (-want,+got):\n%s", diff)
			}
		})
	}
}

// TestPaddleIsToldWhereToMeet as its launcher reads it: at the first server, or at worker 0, which
// knows its own address by nothing but its IP.
func TestPaddleIsToldWhereToMeet(t *testing.T) {
	const servers, alone = "{paddleReplicaSpecs: {Master: {replicas: 2, @t}, Worker: {replicas: 2, @t}}}", "{elasticPolicy: {minReplicas: 1, maxReplicas: 3, maxRestarts: 4}, paddleReplicaSpecs: {Worker: {replicas: 2, @t}}}"
	told := func(nodes string, rest ...string) []string {
		return append([]string{"PYTHONUNBUFFERED=1", "PADDLE_JOB_ID=j", "PADDLE_NNODES=" + nodes}, rest...)
	}
	tests := map[string]struct {
		spec, pod string
		want      []string
	}{
		"the first server": {spec: servers, pod: "j-master-0", want: told("4", "POD_IP_DUMMY=", "PADDLE_MASTER=$(POD_IP_DUMMY):36543", "PADDLE_SERVER_NUM=1")},
		"another server":   {spec: servers, pod: "j-master-1", want: told("4", "PADDLE_MASTER=j-master-0:36543", "PADDLE_SERVER_NUM=1")},
		"a trainer":        {spec: servers, pod: "j-worker-0", want: told("4", "PADDLE_MASTER=j-master-0:36543", "PADDLE_TRAINER_NUM=1")},
		"worker 0 of all":  {spec: alone, pod: "j-worker-0", want: told("2", "POD_IP_DUMMY=", "PADDLE_MASTER=$(POD_IP_DUMMY):36543", "PADDLE_MAX_RESTART=4")},
		"another worker":   {spec: alone, pod: "j-worker-1", want: told("2", "PADDLE_MASTER=j-worker-0:36543", "PADDLE_MAX_RESTART=4")},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := givenPaddle(t, tc.spec)
			if diff := cmp.Diff(tc.want, w.envOf(tc.pod, 0)); diff != "" {
				t.Errorf("variables (-want,+got):\n%s", diff)
			}
			for _, e := range w.Pod(tc.pod).Spec.Containers[0].Env {
				if e.Name == "POD_IP_DUMMY" && (e.ValueFrom == nil || e.ValueFrom.FieldRef.FieldPath != "status.podIP") {
					t.Errorf("%s is %+v", e.Name, e)
				}
			}
		})
	}
}

// TestJAXIsToldOfTheCoordinator, which is worker 0.
func TestJAXIsToldOfTheCoordinator(t *testing.T) {
	w := givenJAX(t, "{jaxReplicaSpecs: {Worker: {replicas: 3, @t}}}")
	want := []string{"PYTHONUNBUFFERED=1", "COORDINATOR_PORT=6666", "COORDINATOR_ADDRESS=j-worker-0", "NUM_PROCESSES=3", "PROCESS_ID=2"}
	if diff := cmp.Diff(want, w.envOf("j-worker-2", 0)); diff != "" {
		t.Errorf("variables (-want,+got):\n%s", diff)
	}
	for name, leads := range map[string]bool{"j-worker-0": true, "j-worker-1": false} {
		if role := w.Pod(name).Labels[kubeflowv1.KeyJobRole]; (role == "master") != leads {
			t.Errorf("%s has the role %q", name, role)
		}
	}
}
