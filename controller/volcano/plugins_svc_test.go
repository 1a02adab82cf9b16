// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const psAndTask = "tasks: [{name: ps, replicas: 1, template: {spec: {initContainers: [{name: i}], containers: [{name: c, env: [{name: A, value: b}]}]}}}, {name: my-task, replicas: 2, @t}]}"

func TestSvcTellsHosts(t *testing.T) {
	b := builderOf(t, "{plugins: {svc: []}, "+psAndTask)
	expect(t, "data", map[string]string{
		"ps.host": "j-ps-0.j", "VC_PS_HOSTS": "j-ps-0.j", "VC_PS_NUM": "1",
		"my_task.host": "j-my-task-0.j\nj-my-task-1.j", "VC_MY_TASK_HOSTS": "j-my-task-0.j,j-my-task-1.j", "VC_MY_TASK_NUM": "2",
	}, objectNamed(t, b, "ConfigMap", "j-svc").(*corev1.ConfigMap).Data)

	pod := b.pod(0, 0, podMoment{})
	if pod.Spec.Hostname != "j-ps-0" || pod.Spec.Subdomain != "j" {
		t.Errorf("got the host %s in %s, want j-ps-0 in j", pod.Spec.Hostname, pod.Spec.Subdomain)
	}
	expect(t, "volumes", []corev1.Volume{{Name: "j-svc", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: "j-svc"},
	}}}}, pod.Spec.Volumes)
	env := []string{"VC_PS_HOSTS=from j-svc/VC_PS_HOSTS", "VC_PS_NUM=from j-svc/VC_PS_NUM",
		"VC_MY_TASK_HOSTS=from j-svc/VC_MY_TASK_HOSTS", "VC_MY_TASK_NUM=from j-svc/VC_MY_TASK_NUM"}
	mounts := []string{"j-svc at /etc/volcano "}
	expect(t, "env of the init container", env, envOf(pod.Spec.InitContainers[0]))
	expect(t, "env of the container", append([]string{"A=b"}, env...), envOf(pod.Spec.Containers[0]))
	expect(t, "mounts of the init container", mounts, mountsOf(pod.Spec.InitContainers[0]))
	expect(t, "mounts of the container", mounts, mountsOf(pod.Spec.Containers[0]))
}

func TestSvcTellsHostsOfPodsWithTheirOwnNames(t *testing.T) {
	tests := map[string]struct {
		template, replicas string
		hosts, number      string
		hostname, sub      string
	}{
		"a name for all":     {"hostname: h,", "3", "h.j", "1", "h", "j"},
		"a subdomain":        {"subdomain: s,", "2", "j-a-0.s,j-a-1.s", "2", "j-a-0", "s"},
		"both":               {"hostname: h, subdomain: s,", "3", "h.s", "1", "h", "s"},
		"no Pods":            {"", "0", "", "0", "j-a-0", "j"},
		"a name for no Pods": {"hostname: h,", "0", "", "0", "h", "j"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := builderOf(t, "{plugins: {svc: []}, tasks: [{name: a, replicas: "+tc.replicas+", template: {spec: {"+tc.template+" containers: [{name: c}]}}}]}")
			expect(t, "data", map[string]string{"a.host": strings.ReplaceAll(tc.hosts, ",", "\n"), "VC_A_HOSTS": tc.hosts, "VC_A_NUM": tc.number},
				objectNamed(t, b, "ConfigMap", "j-svc").(*corev1.ConfigMap).Data)
			pod := b.pod(0, 0, podMoment{})
			expect(t, "names", []string{tc.hostname, tc.sub}, []string{pod.Spec.Hostname, pod.Spec.Subdomain})
		})
	}
}

func TestSvcHasAHeadlessServiceAndANetworkPolicy(t *testing.T) {
	b := builderOf(t, "{plugins: {svc: []}, "+psAndTask)
	members := map[string]string{"volcano.sh/job-name": "j", "volcano.sh/job-namespace": "ns"}
	expect(t, "Service", corev1.ServiceSpec{ClusterIP: "None", Selector: members}, objectNamed(t, b, "Service", "j").(*corev1.Service).Spec)
	selector := metav1.LabelSelector{MatchLabels: members}
	expect(t, "NetworkPolicy", networkingv1.NetworkPolicySpec{
		PodSelector: selector,
		Ingress:     []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &selector}}}},
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
	}, objectNamed(t, b, "NetworkPolicy", "j").(*networkingv1.NetworkPolicy).Spec)
}

func TestFlagsOfSvc(t *testing.T) {
	withoutPolicy := builderOf(t, "{plugins: {svc: [--disable-network-policy=true]}, "+psAndTask)
	expect(t, "objects without a policy", []string{"ConfigMap j-svc", "Service j"}, namesOf(withoutPolicy.sideObjects()))

	withoutEnv := builderOf(t, "{plugins: {svc: [--inject-hosts-env=false]}, "+psAndTask).pod(0, 0, podMoment{})
	expect(t, "env", []string{"A=b"}, envOf(withoutEnv.Spec.Containers[0]))
	expect(t, "mounts", []string{"j-svc at /etc/volcano "}, mountsOf(withoutEnv.Spec.Containers[0]))

	early := builderOf(t, "{plugins: {svc: [--publish-not-ready-addresses=true]}, "+psAndTask)
	if !objectNamed(t, early, "Service", "j").(*corev1.Service).Spec.PublishNotReadyAddresses {
		t.Error("addresses of Pods that are not ready are not published")
	}
}

func TestSvcWarnsOfVariablesThatMayBeTooLarge(t *testing.T) {
	long := strings.Repeat("x", 40)
	tests := map[string]struct {
		replicas, flags string
		want            bool
	}{
		"a thousand hosts":                       {replicas: "1000"},
		"three thousand hosts":                   {replicas: "3000", want: true},
		"three thousand hosts, not as variables": {replicas: "3000", flags: "--inject-hosts-env=false"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			warnings := builderOf(t, "{plugins: {svc: ["+tc.flags+"]}, tasks: [{name: "+long+", replicas: "+tc.replicas+", @t}]}").warnings()
			if got := len(warnings) == 1 && strings.Contains(warnings[0], "--inject-hosts-env=false"); got != tc.want {
				t.Errorf("warnings: got %q, want one: %v", warnings, tc.want)
			}
		})
	}
}

func TestTheConfigMapFollowsTheNumberOfPods(t *testing.T) {
	const spec = "{plugins: {svc: []}, tasks: [{name: a, replicas: 2, @t}]}"
	two, four := builderOf(t, spec), builderOf(t, strings.Replace(spec, "2", "4", 1))
	existing := two.sideObjects()
	for i := range existing {
		if made, ok := existing[i].Object.(*corev1.ConfigMap); ok {
			existing[i].Object = KeepOfConfigMap(made)
		}
	}
	for i, wanted := range four.sideObjects() {
		if got, want := wanted.differs(existing[i].Object), wanted.Kind == KindConfigMap; got != want {
			t.Errorf("%s %s differs: %v, want %v", wanted.Kind, wanted.Name, got, want)
		}
	}
	for i, wanted := range two.sideObjects() {
		if wanted.differs(existing[i].Object) {
			t.Errorf("%s %s differs from itself", wanted.Kind, wanted.Name)
		}
	}
}

func TestVolumesOfAJobWithALongName(t *testing.T) {
	job := jobOf(t, objectOf(t, strings.Repeat("x", 49)+"-"+strings.Repeat("y", 13), "{plugins: {svc: [], ssh: []}, volumes: [{mountPath: /v, volumeClaimName: v}], tasks: [{name: a, replicas: 1, @t}]}"))
	seen := map[string]bool{}
	for _, volume := range builderFor(t, job).pod(0, 0, podMoment{}).Spec.Volumes {
		if len(volume.Name) > 63 || seen[volume.Name] {
			t.Errorf("the name %s has %d characters, or is there twice", volume.Name, len(volume.Name))
		}
		seen[volume.Name] = true
	}
	if len(seen) != 3 {
		t.Errorf("got %d volumes, want 3", len(seen))
	}
}
