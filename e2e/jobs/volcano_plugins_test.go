//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

func TestPluginEnvAndSvc(t *testing.T) {
	tell(t, map[string]func(t *testing.T){
		"tell all containers the index and the hosts": func(t *testing.T) {
			j := given(t, "{plugins: {env: [], svc: []}, tasks: [{name: ps, replicas: 1, @∞}, {name: my-task, replicas: 2, @∞{initContainers: [{name: init, image: i}]}}]}").Passes(running)
			wantHosts(t, j, map[string]string{
				"ps.host": "j-ps-0.j", "VC_PS_HOSTS": "j-ps-0.j", "VC_PS_NUM": "1",
				"my_task.host": "j-my-task-0.j\nj-my-task-1.j", "VC_MY_TASK_HOSTS": "j-my-task-0.j,j-my-task-1.j", "VC_MY_TASK_NUM": "2",
			})
			spec := j.Pod("j-my-task-1").Spec
			if spec.Hostname != "j-my-task-1" || spec.Subdomain != "j" {
				t.Errorf("the Pod is %s.%s, want j-my-task-1.j", spec.Hostname, spec.Subdomain)
			}
			for _, container := range append(spec.InitContainers, spec.Containers...) {
				env := envOf(container)
				for name, want := range map[string]string{
					"VK_TASK_INDEX": "1", "VC_TASK_INDEX": "1", "VC_PS_HOSTS": "j-svc/VC_PS_HOSTS", "VC_PS_NUM": "j-svc/VC_PS_NUM",
					"VC_MY_TASK_HOSTS": "j-svc/VC_MY_TASK_HOSTS", "VC_MY_TASK_NUM": "j-svc/VC_MY_TASK_NUM",
				} {
					if env[name] != want {
						t.Errorf("container %s has %s=%q, want %q", container.Name, name, env[name], want)
					}
				}
				if !slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == "/etc/volcano" }) {
					t.Errorf("container %s mounts %v", container.Name, container.VolumeMounts)
				}
			}
			service := serviceOf(t, j, "j")
			if service.Spec.ClusterIP != corev1.ClusterIPNone || service.Spec.PublishNotReadyAddresses || service.Spec.Selector[batchv1alpha1.KeyJobName] != "j" {
				t.Errorf("the Service is %+v", service.Spec)
			}
			own := metav1.LabelSelector{MatchLabels: map[string]string{batchv1alpha1.KeyJobName: "j", batchv1alpha1.KeyJobNamespace: j.Namespace}}
			want := networkingv1.NetworkPolicySpec{
				PodSelector: own, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
				Ingress: []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &own}}}},
			}
			if policy := networkPolicyOf(t, j); policy == nil || !equality.Semantic.DeepEqual(policy.Spec, want) {
				t.Errorf("the NetworkPolicy is %+v, want %+v", policy, want)
			}
			for _, plugin := range []string{"env", "svc"} {
				if resources := j.Status().ControlledResources; resources["plugin-"+plugin] != plugin {
					t.Errorf("controlledResources are %v, want plugin %s in it", resources, plugin)
				}
			}
		},
		"leave the network open, if asked to": func(t *testing.T) {
			j := given(t, "{plugins: {svc: [--disable-network-policy=true]}, tasks: [{name: a, replicas: 1, @∞}]}").Passes(running)
			if policy := networkPolicyOf(t, j); policy != nil {
				t.Errorf("there is the NetworkPolicy %+v", policy)
			}
		},
		"leave variables out, if asked to": func(t *testing.T) {
			j := given(t, "{plugins: {svc: [--inject-hosts-env=false]}, tasks: [{name: a, replicas: 1, @∞}]}").Passes(running)
			container := j.Pod("j-a-0").Spec.Containers[0]
			if env := envOf(container); env["VC_A_HOSTS"] != "" || len(container.VolumeMounts) == 0 {
				t.Errorf("the container has the variables %v and the mounts %v", env, container.VolumeMounts)
			}
		},
		"publish addresses that are not ready, if asked to": func(t *testing.T) {
			j := given(t, "{plugins: {svc: [--publish-not-ready-addresses=true]}, tasks: [{name: a, replicas: 1, @∞}]}").Passes(running)
			if !serviceOf(t, j, "j").Spec.PublishNotReadyAddresses {
				t.Error("the Service does not publish them")
			}
		},
		"know one host of a task whose template names it": func(t *testing.T) {
			j := given(t, "{plugins: {svc: []}, tasks: [{name: a, replicas: 3, @∞{hostname: h}}]}").Passes(running)
			wantHosts(t, j, map[string]string{"a.host": "h.j", "VC_A_HOSTS": "h.j", "VC_A_NUM": "1"})
		},
		"go when the Job is over, and come back when it is resumed": func(t *testing.T) {
			j := given(t, "{plugins: {svc: [], ssh: []}, tasks: [{name: a, replicas: 1, @∞}]}").Passes(running)
			j.Do(abort).Passes(aborted)
			testbed.Eventually(t, "the objects of the plugins to be gone", func(ctx context.Context) (bool, string, error) {
				_, err := cluster.Kube.CoreV1().Services(j.Namespace).Get(ctx, "j", metav1.GetOptions{})
				_, err2 := cluster.Kube.CoreV1().Secrets(j.Namespace).Get(ctx, "j-ssh", metav1.GetOptions{})
				return apierrors.IsNotFound(err) && apierrors.IsNotFound(err2), fmt.Sprint(err, err2), nil
			})
			j.Is("have no objects of plugins", func(s *batchv1alpha1.JobStatus) bool { return s.ControlledResources["plugin-svc"] == "" })
			j.Do(resume).Passes(restarting, running)
			serviceOf(t, j, "j")
			secretOf(t, j)
		},
	})
}

func TestPluginSSH(t *testing.T) {
	tell(t, map[string]func(t *testing.T){
		"gives all containers one pair of keys and the hosts": func(t *testing.T) {
			j := given(t, "{plugins: {ssh: [], svc: []}, tasks: [{name: a, replicas: 2, @∞{initContainers: [{name: init, image: i}]}}]}").Passes(running)
			keys := secretOf(t, j)
			if want := []string{"authorized_keys", "config", "id_rsa", "id_rsa.pub"}; !slices.Equal(sorted(keys), want) {
				t.Errorf("the keys of the Secret are %v, want %v", sorted(keys), want)
			}
			private, err := ssh.ParsePrivateKey(keys["id_rsa"])
			if err != nil {
				t.Fatal(err)
			}
			public, _, _, _, err := ssh.ParseAuthorizedKey(keys["authorized_keys"])
			if err != nil || !bytes.Equal(public.Marshal(), private.PublicKey().Marshal()) || !bytes.Equal(keys["id_rsa.pub"], keys["authorized_keys"]) {
				t.Errorf("the keys are no pair (%v)", err)
			}
			const want = "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n" +
				"Host j-a-0\n  HostName j-a-0.j\n  Port 22\nHost j-a-1\n  HostName j-a-1.j\n  Port 22\n"
			if diff := cmp.Diff(want, string(keys["config"])); diff != "" {
				t.Errorf("config (-want,+got):\n%s", diff)
			}
			wantKeysAt(t, j, "/root/.ssh", 0o600)
		},
		"at another path and port": func(t *testing.T) {
			j := given(t, "{plugins: {ssh: [--ssh-key-file-path=/home/me/.ssh, --ssh-port=2026]}, tasks: [{name: a, replicas: 1, @∞}]}").Passes(running)
			wantKeysAt(t, j, "/home/me/.ssh", 0o644)
			if config := string(secretOf(t, j)["config"]); !strings.Contains(config, "  Port 2026\n") {
				t.Errorf("the config is %q", config)
			}
		},
		"at port 22 for one that does not exist": func(t *testing.T) {
			j := given(t, "{plugins: {ssh: [--ssh-port=70000]}, tasks: [{name: a, replicas: 1, @∞}]}").Passes(running)
			if config := string(secretOf(t, j)["config"]); !strings.Contains(config, "  Port 22\n") {
				t.Errorf("the config is %q", config)
			}
		},
		"with the keys that are given": func(t *testing.T) {
			j := given(t, "{plugins: {ssh: [--ssh-private-key=K, --ssh-public-key=P]}, tasks: [{name: a, replicas: 1, @∞}]}").Passes(running)
			got := map[string]string{}
			for name, value := range secretOf(t, j) {
				got[name] = string(value)
			}
			delete(got, "config")
			if want := map[string]string{"id_rsa": "K", "id_rsa.pub": "P", "authorized_keys": "P"}; !maps.Equal(got, want) {
				t.Errorf("the Secret holds %v, want %v", got, want)
			}
		},
		"without the flags after one that is unknown, which is told": func(t *testing.T) {
			j := given(t, "{plugins: {ssh: [--no-root, --ssh-port=2026]}, tasks: [{name: a, replicas: 1, @∞}]}").Passes(running)
			j.Tells(corev1.EventTypeWarning, "PluginError", "no-root")
			if config := string(secretOf(t, j)["config"]); !strings.Contains(config, "  Port 22\n") {
				t.Errorf("the config is %q", config)
			}
		},
		"which stays over a restart": func(t *testing.T) {
			j := given(t, "{plugins: {ssh: []}, tasks: [{name: a, replicas: 1, @∞}]}").Passes(running)
			before := secretOf(t, j)
			j.Do(restart).Passes(restarting, running)
			if after := secretOf(t, j); !bytes.Equal(before["id_rsa"], after["id_rsa"]) {
				t.Error("a restart has made other keys")
			}
		},
	})
}

func TestPluginsOfLaunchers(t *testing.T) {
	tell(t, map[string]func(t *testing.T){
		"tensorflow tells each Pod the cluster, brings svc along, and leaves the spec alone": func(t *testing.T) {
			j := given(t, "{plugins: {tensorflow: []}, tasks: [{name: ps, replicas: 1, @∞}, {name: worker, replicas: 2, @∞}]}").Passes(running)
			for pod, task := range map[string]string{"j-ps-0": `"type":"ps","index":0`, "j-worker-0": `"type":"worker","index":0`, "j-worker-1": `"type":"worker","index":1`} {
				want := `{"cluster":{"ps":["j-ps-0.j:2222"],"worker":["j-worker-0.j:2222","j-worker-1.j:2222"]},"task":{` + task + "}}"
				if got := envOf(j.Pod(pod).Spec.Containers[0])["TF_CONFIG"]; got != want {
					t.Errorf("TF_CONFIG of %s is %s, want %s", pod, got, want)
				}
			}
			serviceOf(t, j, "j")
			if spec := specOf(t, j); strings.Contains(spec, `"svc"`) {
				t.Errorf("the spec has become %s", spec)
			}
		},
		"tensorflow tells nothing to a Pod that is alone": func(t *testing.T) {
			j := given(t, "{plugins: {tensorflow: []}, tasks: [{name: worker, replicas: 1, @∞}]}").Passes(running)
			if got, there := envOf(j.Pod("j-worker-0").Spec.Containers[0])["TF_CONFIG"]; there {
				t.Errorf("TF_CONFIG is %s", got)
			}
		},
		"pytorch tells ranks, and workers wait for the master": func(t *testing.T) {
			j := given(t, "{plugins: {pytorch: [--wait-master-enabled=true]}, tasks: [{name: master, replicas: 1, @∞}, {name: worker, replicas: 2, @∞}, {name: logger, replicas: 1, @∞}]}").Passes(running)
			for pod, rank := range map[string]string{"j-master-0": "0", "j-worker-0": "1", "j-worker-1": "2", "j-logger-0": ""} {
				spec := j.Pod(pod).Spec
				env := envOf(spec.Containers[0])
				got := []string{env["RANK"], env["WORLD_SIZE"], env["MASTER_ADDR"], env["MASTER_PORT"]}
				if want := []string{rank, "3", "j-master-0.j", "23456"}; !slices.Equal(got, want) {
					t.Errorf("RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT of %s are %q, want %q", pod, got, want)
				}
				if ports := portsOf(spec.Containers[0]); !slices.Equal(ports, []string{"pytorchjob-port=23456"}) {
					t.Errorf("the ports of %s are %v", pod, ports)
				}
				inits := len(spec.InitContainers)
				if waits := inits > 0 && spec.InitContainers[inits-1].Name == "wait-for-master"; waits != strings.Contains(pod, "worker") {
					t.Errorf("init containers of %s: %v", pod, spec.InitContainers)
				}
			}
		},
		"mpi tells the master its hosts, and the end of the master ends the Job": func(t *testing.T) {
			j := given(t, "{plugins: {mpi: [--master=m, --worker=w]}, tasks: [{name: m, replicas: 1, policies: [{event: TaskCompleted, action: CompleteJob}], @3→0}, {name: w, replicas: 2, @∞}]}").Passes(pending, running)
			for pod, want := range map[string]string{"j-m-0": "j-w-0.j,j-w-1.j", "j-w-0": ""} {
				container := j.Pod(pod).Spec.Containers[0]
				if got := envOf(container)["MPI_HOST"]; got != want {
					t.Errorf("MPI_HOST of %s is %q, want %q", pod, got, want)
				}
				if ports := portsOf(container); !slices.Equal(ports, []string{"mpijob-port=22"}) {
					t.Errorf("the ports of %s are %v", pod, ports)
				}
			}
			serviceOf(t, j, "j")
			if keys := secretOf(t, j); len(keys["id_rsa"]) == 0 {
				t.Errorf("the Secret holds %v", sorted(keys))
			}
			j.Passes(completing, completed).HasPods("j-m-0").Counts(tally{Succeeded: 1})
		},
		"ray starts head and workers": func(t *testing.T) {
			j := given(t, "{plugins: {ray: []}, tasks: [{name: head, replicas: 1, @∞{ containers: [{name: head, image: i}]}}, {name: worker, replicas: 2, @∞{ containers: [{name: worker, image: i}]}}]}").Passes(running)
			for pod, want := range map[string]string{
				"j-head-0":   "ray start --head --block --dashboard-host=0.0.0.0 --port=6379 --dashboard-port=8265 --ray-client-server-port=10001",
				"j-worker-1": "ray start --block --address=j-head-0.j:6379",
			} {
				if got := j.Pod(pod).Spec.Containers[0].Command; !slices.Equal(got, []string{"sh", "-c", want}) {
					t.Errorf("the command of %s is %q, want %q", pod, got, want)
				}
			}
			if ports := portsOf(j.Pod("j-head-0").Spec.Containers[0]); !slices.Equal(ports, []string{"gcs=6379", "dashboard=8265", "client-server=10001"}) {
				t.Errorf("the ports of the head are %v", ports)
			}
			service := serviceOf(t, j, "j-head-svc").Spec
			if want := map[string]string{batchv1alpha1.KeyJobName: "j", batchv1alpha1.KeyJobNamespace: j.Namespace, batchv1alpha1.KeyTaskName: "head"}; !maps.Equal(service.Selector, want) {
				t.Errorf("the Service of the head selects %v, want %v", service.Selector, want)
			}
			var ports []string
			for _, port := range service.Ports {
				ports = append(ports, fmt.Sprintf("%s=%d→%s", port.Name, port.Port, port.TargetPort.String()))
			}
			if want := []string{"gcs=6379→gcs", "dashboard=8265→dashboard", "client-server=10001→client-server"}; !slices.Equal(ports, want) {
				t.Errorf("the ports of the Service of the head are %v, want %v", ports, want)
			}
		},
		"hcclrank numbers Pods": func(t *testing.T) {
			for _, plugins := range []string{"{hcclrank: []}", "{hcclrank: [], pytorch: []}"} {
				j := given(t, "{plugins: "+plugins+", tasks: [{name: master, replicas: 1, @∞}, {name: worker, replicas: 2, @∞}]}").Passes(running)
				for pod, want := range map[string]string{"j-master-0": "0", "j-worker-0": "1", "j-worker-1": "2"} {
					if got := j.Pod(pod).Annotations["hccl/rankIndex"]; got != want {
						t.Errorf("with plugins %s %s has the rank %q, want %s", plugins, pod, got, want)
					}
				}
			}
		},
	})
}

// envOf are the variables of a container, the last of equal names. One from a ConfigMap is
// {name}/{key}.
func envOf(container corev1.Container) map[string]string {
	env := map[string]string{}
	for _, variable := range container.Env {
		env[variable.Name] = variable.Value
		if from := variable.ValueFrom; from != nil && from.ConfigMapKeyRef != nil {
			env[variable.Name] = from.ConfigMapKeyRef.Name + "/" + from.ConfigMapKeyRef.Key
		}
	}
	return env
}

func portsOf(container corev1.Container) []string {
	var ports []string
	for _, port := range container.Ports {
		ports = append(ports, fmt.Sprintf("%s=%d", port.Name, port.ContainerPort))
	}
	return ports
}

// serviceOf is a Service that the Job controls.
func serviceOf(t *testing.T, j *testbed.VolcanoJob, name string) *corev1.Service {
	t.Helper()
	service, err := cluster.Kube.CoreV1().Services(j.Namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantOwned(t, j, service)
	return service
}

// secretOf is what the Secret of plugin ssh holds.
func secretOf(t *testing.T, j *testbed.VolcanoJob) map[string][]byte {
	t.Helper()
	secret, err := cluster.Kube.CoreV1().Secrets(j.Namespace).Get(t.Context(), j.Name+"-ssh", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantOwned(t, j, secret)
	return secret.Data
}

// wantKeysAt wants all containers of all Pods to have the keys in a folder.
func wantKeysAt(t *testing.T, j *testbed.VolcanoJob, path string, mode int32) {
	t.Helper()
	for name, pod := range j.Pods() {
		for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
			i := slices.IndexFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == path && m.SubPath == ".ssh" })
			if i < 0 {
				t.Errorf("container %s of %s mounts %v", container.Name, name, container.VolumeMounts)
				continue
			}
			for _, volume := range pod.Spec.Volumes {
				if volume.Name == container.VolumeMounts[i].Name && (volume.Secret == nil || *volume.Secret.DefaultMode != mode) {
					t.Errorf("the volume of the keys of %s is %+v, want mode %o", name, volume, mode)
				}
			}
		}
	}
}

// networkPolicyOf is the NetworkPolicy that the Job controls. Nil if there is none.
func networkPolicyOf(t *testing.T, j *testbed.VolcanoJob) *networkingv1.NetworkPolicy {
	t.Helper()
	policy, err := cluster.Kube.NetworkingV1().NetworkPolicies(j.Namespace).Get(t.Context(), j.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	wantOwned(t, j, policy)
	return policy
}

// wantOwned wants the Job to control an object.
func wantOwned(t *testing.T, j *testbed.VolcanoJob, object metav1.Object) {
	t.Helper()
	if owner := metav1.GetControllerOf(object); owner == nil || owner.UID != j.UID {
		t.Errorf("the controller of %s is %v, want the Job", object.GetName(), owner)
	}
}
