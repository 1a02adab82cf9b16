// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// envOf are the variables of a container as texts, those of a plugin after the others.
func envOf(container corev1.Container) []string {
	var env []string
	for _, variable := range container.Env {
		value := variable.Value
		if from := variable.ValueFrom; from != nil {
			value = "from " + from.ConfigMapKeyRef.Name + "/" + from.ConfigMapKeyRef.Key
		}
		env = append(env, variable.Name+"="+value)
	}
	return env
}

// valueOf is the last value of a variable of a container, and whether there is one.
func valueOf(container corev1.Container, name string) (string, bool) {
	for _, variable := range slices.Backward(container.Env) {
		if variable.Name == name {
			return variable.Value, true
		}
	}
	return "", false
}

func portsOf(container corev1.Container) []string {
	var ports []string
	for _, port := range container.Ports {
		ports = append(ports, fmt.Sprintf("%s=%d", port.Name, port.ContainerPort))
	}
	return ports
}

func mountsOf(container corev1.Container) []string {
	var mounts []string
	for _, mount := range container.VolumeMounts {
		mounts = append(mounts, mount.Name+" at "+mount.MountPath+" "+mount.SubPath)
	}
	return mounts
}

func expect[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want,+got):\n%s", what, diff)
	}
}

func TestEnvTellsAllContainersTheIndex(t *testing.T) {
	pod := builderOf(t, `{plugins: {env: []}, tasks: [{name: a, replicas: 9, template: {spec: {
  initContainers: [{name: i}], containers: [{name: c, env: [{name: VC_TASK_INDEX, value: own}]}, {name: d}]}}}]}`).pod(0, 7, podMoment{})
	index := []string{"VK_TASK_INDEX=7", "VC_TASK_INDEX=7"}
	expect(t, "init container", index, envOf(pod.Spec.InitContainers[0]))
	expect(t, "container with its own", append([]string{"VC_TASK_INDEX=own"}, index...), envOf(pod.Spec.Containers[0]))
	expect(t, "other container", index, envOf(pod.Spec.Containers[1]))
}

func TestTensorflowTellsTheCluster(t *testing.T) {
	const twoTasks = "tasks: [{name: ps, replicas: 1, @t}, {name: worker, replicas: 2, @t}]}"
	tests := map[string]struct {
		spec  string
		place int
		index int32
		want  string
	}{
		"to the parameter server": {spec: "{plugins: {tensorflow: []}, " + twoTasks,
			want: `{"cluster":{"ps":["j-ps-0.j:2222"],"worker":["j-worker-0.j:2222","j-worker-1.j:2222"]},"task":{"type":"ps","index":0}}`},
		"to a worker": {spec: "{plugins: {tensorflow: []}, " + twoTasks, place: 1, index: 1,
			want: `{"cluster":{"ps":["j-ps-0.j:2222"],"worker":["j-worker-0.j:2222","j-worker-1.j:2222"]},"task":{"type":"worker","index":1}}`},
		"with other names, another port and all roles": {
			spec: `{plugins: {tensorflow: [--ps=p, --worker=w, --chief=c, --evaluator=e, --port=1]}, tasks: [{name: e, replicas: 1, @t}, {name: c, replicas: 1, @t},
  {name: w, replicas: 1, @t}, {name: p, replicas: 1, @t}]}`,
			want: `{"cluster":{"ps":["j-p-0.j:1"],"worker":["j-w-0.j:1"],"chief":["j-c-0.j:1"],"evaluator":["j-e-0.j:1"]},"task":{"type":"evaluator","index":0}}`},
		"to a task that has no role": {spec: "{plugins: {tensorflow: []}, tasks: [{name: ps, replicas: 1, @t}, {name: worker, replicas: 0, @t}, {name: log, replicas: 1, @t}]}", place: 2,
			want: `{"cluster":{"ps":["j-ps-0.j:2222"]},"task":{"type":"log","index":0}}`},
		"with names of the template": {spec: "{plugins: {tensorflow: []}, tasks: [{name: ps, replicas: 2, template: {spec: {hostname: h, subdomain: s, containers: [{name: c}]}}}]}",
			want: `{"cluster":{"ps":["h.s:2222","h.s:2222"]},"task":{"type":"ps","index":0}}`},
		"but not to one Pod that is alone": {spec: "{plugins: {tensorflow: []}, tasks: [{name: worker, replicas: 1, @t}]}"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := builderOf(t, tc.spec).pod(tc.place, tc.index, podMoment{})
			got, _ := valueOf(pod.Spec.Containers[0], "TF_CONFIG")
			expect(t, "TF_CONFIG", tc.want, got)
		})
	}
}

func TestTensorflowLeavesInitContainersAlone(t *testing.T) {
	pod := builderOf(t, "{plugins: {tensorflow: []}, tasks: [{name: ps, replicas: 2, template: {spec: {initContainers: [{name: i}], containers: [{name: c}]}}}]}").pod(0, 0, podMoment{})
	if _, there := valueOf(pod.Spec.InitContainers[0], "TF_CONFIG"); there {
		t.Error("an init container got TF_CONFIG")
	}
	if pod.Spec.Subdomain != "j" {
		t.Errorf("subdomain: got %q, want that of plugin svc", pod.Spec.Subdomain)
	}
}

func TestPytorchTellsRanks(t *testing.T) {
	b := builderOf(t, `{plugins: {pytorch: []}, tasks: [{name: master, replicas: 1, @t}, {name: worker, replicas: 2, template: {spec: {
  initContainers: [{name: i}], containers: [{name: c, ports: [{containerPort: 23456}]}, {name: d}]}}}, {name: logger, replicas: 1, @t}]}`)
	for _, tc := range []struct {
		pod   string
		place int
		index int32
		rank  string
	}{{"master", 0, 0, "RANK=0"}, {"first worker", 1, 0, "RANK=1"}, {"second worker", 1, 1, "RANK=2"}, {"logger", 2, 0, ""}} {
		pod := b.pod(tc.place, tc.index, podMoment{})
		want := []string{"MASTER_ADDR=j-master-0.j", "MASTER_PORT=23456", "WORLD_SIZE=3"}
		if tc.rank != "" {
			want = append(want, tc.rank)
		}
		for _, container := range pod.Spec.Containers {
			env := slices.DeleteFunc(envOf(container), func(variable string) bool { return strings.HasPrefix(variable, "VC_") })
			expect(t, tc.pod+", container "+container.Name, want, env)
		}
		if len(pod.Spec.InitContainers) > 1 {
			t.Errorf("%s: init containers: got %d", tc.pod, len(pod.Spec.InitContainers))
		}
	}
	worker := b.pod(1, 0, podMoment{})
	expect(t, "ports where it was open", []string{"=23456"}, portsOf(worker.Spec.Containers[0]))
	expect(t, "ports of the other container", []string{"pytorchjob-port=23456"}, portsOf(worker.Spec.Containers[1]))
}

func TestPytorchWaitsInWorkersForTheMaster(t *testing.T) {
	b := builderOf(t, `{plugins: {pytorch: [--master=m, --worker=w, --port=1, --wait-master-enabled=true, --wait-master-timeout=60, --wait-master-image=img]},
  tasks: [{name: m, replicas: 1, @t}, {name: w, replicas: 1, template: {spec: {initContainers: [{name: first}], containers: [{name: c}]}}}]}`)
	if got := b.pod(0, 0, podMoment{}).Spec.InitContainers; len(got) > 0 {
		t.Errorf("init containers of the master: got %v", got)
	}
	inits := b.pod(1, 0, podMoment{}).Spec.InitContainers
	if len(inits) != 2 || inits[1].Name != "wait-for-master" || inits[1].Image != "img" {
		t.Fatalf("init containers of the worker: got %v, want wait-for-master last", inits)
	}
	for _, part := range []string{"nc -z -w 2 j-m-0.j 1;", "+ 60))", "sleep 2", "exit 1"} {
		if !strings.Contains(inits[1].Command[2], part) {
			t.Errorf("the script lacks %q:\n%s", part, inits[1].Command[2])
		}
	}
}

func TestPytorchWithoutMasterDoesNothing(t *testing.T) {
	pod := builderOf(t, "{plugins: {pytorch: [--wait-master-enabled=true], svc: [--inject-hosts-env=false]}, tasks: [{name: worker, replicas: 1, @t}]}").pod(0, 0, podMoment{})
	expect(t, "env", nil, envOf(pod.Spec.Containers[0]))
	expect(t, "init containers", nil, pod.Spec.InitContainers)
}

func TestMPITellsTheMasterItsWorkers(t *testing.T) {
	b := builderOf(t, `{plugins: {mpi: [--master=m, --worker=w], svc: [--inject-hosts-env=false]}, tasks: [
  {name: m, replicas: 1, template: {spec: {initContainers: [{name: i}], containers: [{name: c}]}}}, {name: w, replicas: 2, template: {spec: {containers: [{name: c, ports: [{name: own, containerPort: 22}]}]}}}]}`)
	master, worker := b.pod(0, 0, podMoment{}).Spec, b.pod(1, 0, podMoment{}).Spec
	want := []string{"MPI_HOST=j-w-0.j,j-w-1.j"}
	expect(t, "env of the master", want, envOf(master.Containers[0]))
	expect(t, "env of its init container", want, envOf(master.InitContainers[0]))
	expect(t, "env of a worker", nil, envOf(worker.Containers[0]))
	expect(t, "port of the master", []string{"mpijob-port=22"}, portsOf(master.Containers[0]))
	expect(t, "port of a worker", []string{"own=22"}, portsOf(worker.Containers[0]))
	expect(t, "objects", []string{"ConfigMap j-svc", "NetworkPolicy j", "Secret j-ssh", "Service j"}, namesOf(b.sideObjects()))
}

func TestMPIWithoutWorkersTellsNothing(t *testing.T) {
	pod := builderOf(t, "{plugins: {mpi: [], svc: [--inject-hosts-env=false]}, tasks: [{name: master, replicas: 1, @t}]}").pod(0, 0, podMoment{})
	expect(t, "env", nil, envOf(pod.Spec.Containers[0]))
}

func TestRayStartsHeadAndWorkers(t *testing.T) {
	b := builderOf(t, `{plugins: {ray: []}, tasks: [{name: head, replicas: 1, template: {spec: {containers: [{name: side}, {name: head, ports: [{name: own, containerPort: 8265}]}]}}},
  {name: worker, replicas: 2, template: {spec: {containers: [{name: worker, command: [x]}]}}}]}`)
	head, worker := b.pod(0, 0, podMoment{}).Spec, b.pod(1, 1, podMoment{}).Spec
	expect(t, "command of the head", []string{"sh", "-c", "ray start --head --block --dashboard-host=0.0.0.0 --port=6379 --dashboard-port=8265 --ray-client-server-port=10001"}, head.Containers[1].Command)
	expect(t, "ports of the head", []string{"own=8265", "gcs=6379", "client-server=10001"}, portsOf(head.Containers[1]))
	expect(t, "command of another container", nil, head.Containers[0].Command)
	expect(t, "command of a worker", []string{"sh", "-c", "ray start --block --address=j-head-0.j:6379"}, worker.Containers[0].Command)
	expect(t, "objects", []string{"ConfigMap j-svc", "NetworkPolicy j", "Service j", "Service j-head-svc"}, namesOf(b.sideObjects()))
}

func TestRayHasAServiceOfTheHead(t *testing.T) {
	b := builderOf(t, "{plugins: {ray: [--head=h, --port=1, --dashboardPort=2, --clientPort=3]}, tasks: [{name: h, replicas: 1, @t}]}")
	service := objectNamed(t, b, "Service", "j-head-svc").(*corev1.Service)
	expect(t, "selector", map[string]string{"volcano.sh/job-name": "j", "volcano.sh/job-namespace": "ns", "volcano.sh/task-spec": "h"}, service.Spec.Selector)
	var ports []string
	for _, port := range service.Spec.Ports {
		ports = append(ports, fmt.Sprintf("%s=%d to %s", port.Name, port.Port, port.TargetPort.String()))
	}
	expect(t, "ports", []string{"gcs=1 to gcs", "dashboard=2 to dashboard", "client-server=3 to client-server"}, ports)
	if service.Spec.ClusterIP != "" {
		t.Errorf("clusterIP: got %q, want one of the cluster", service.Spec.ClusterIP)
	}
}

func TestHcclrankNumbersPods(t *testing.T) {
	const tasks = "tasks: [{name: master, replicas: 1, @t}, {name: worker, replicas: 2, @t}, {name: other, replicas: 1, @t}]}"
	tests := map[string]struct {
		spec string
		want []string
	}{
		"by their places":          {"{plugins: {hcclrank: []}, " + tasks, []string{"0", "1", "2", ""}},
		"as pytorch has told them": {"{plugins: {hcclrank: [], pytorch: []}, " + tasks, []string{"0", "1", "2", ""}},
		"with other names":         {"{plugins: {hcclrank: [--master=worker, --worker=other]}, " + tasks, []string{"", "0", "1", "2"}},
		"as their templates say":   {"{plugins: {hcclrank: []}, tasks: [{name: master, replicas: 1, template: {spec: {containers: [{name: c}, {name: d, env: [{name: RANK, value: '7'}]}]}}}]}", []string{"7"}},
		"as their annotations say": {"{plugins: {hcclrank: []}, tasks: [{name: master, replicas: 1, template: {metadata: {annotations: {hccl/rankIndex: '9'}}, spec: {containers: [{name: c}]}}}]}", []string{"9"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := builderOf(t, tc.spec)
			var got []string
			for place := range b.spec.Tasks {
				for index := range b.spec.Tasks[place].Replicas {
					got = append(got, b.pod(place, index, podMoment{}).Annotations["hccl/rankIndex"])
				}
			}
			expect(t, "ranks", tc.want, got)
		})
	}
}

func TestPluginsSayWhatTheyDoNotUnderstand(t *testing.T) {
	b := builderOf(t, "{plugins: {env: [--x], ssh: [--no-root, --ssh-port=2026], svc: []}, tasks: [{name: a, replicas: 1, @t}]}")
	expect(t, "warnings", []string{
		"Plugin env: flag provided but not defined: -x: this flag and all flags after it are ignored",
		"Plugin ssh: flag provided but not defined: -no-root: this flag and all flags after it are ignored",
	}, b.warnings())
}

func TestThereIsAPluginForEveryName(t *testing.T) {
	all := "env, svc, ssh, tensorflow, pytorch, mpi, ray, hcclrank"
	b := builderOf(t, "{plugins: {"+strings.ReplaceAll(all, ", ", ": [], ")+": []}, tasks: [{name: master, replicas: 1, @t}, {name: head, replicas: 1, @t}]}")
	if got := len(b.plugins); got != 8 {
		t.Errorf("got %d plugins, want 8", got)
	}
	want := map[string]string{}
	for name := range strings.SplitSeq(strings.TrimSuffix(all, ", hcclrank"), ", ") {
		want["plugin-"+name] = name
	}
	expect(t, "controlledResources", want, pluginResources(b.spec))
}

// namesOf are kinds and names, sorted.
func namesOf(objects []sideObject) []string {
	names := map[string]bool{}
	for _, object := range objects {
		names[object.Kind+" "+object.Name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// objectNamed is an object that the plugins need.
func objectNamed(t *testing.T, b *builder, kind, name string) any {
	t.Helper()
	for _, object := range b.sideObjects() {
		if object.Kind == kind && object.Name == name {
			if owners := object.Object.GetOwnerReferences(); len(owners) != 1 || owners[0].UID != "u" || !*owners[0].Controller {
				t.Errorf("owners of %s %s: got %v, want the Job as controller", kind, name, owners)
			}
			if object.Object.GetName() != name || object.Object.GetNamespace() != "ns" {
				t.Errorf("got %s/%s, want ns/%s", object.Object.GetNamespace(), object.Object.GetName(), name)
			}
			return object.Object
		}
	}
	t.Fatalf("there is no %s %s", kind, name)
	return nil
}
