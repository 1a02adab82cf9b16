// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// schedulerConfig are the fields of a configuration of lockstep-scheduler that tests look at.
type schedulerConfig struct {
	LeaderElection struct {
		LeaderElect                     bool
		ResourceNamespace, ResourceName string
	}
	ClientConnection struct{ Kubeconfig string }
	Profiles         []struct{ SchedulerName string }
}

func schedulerConfiguration(t *testing.T, text []byte) *schedulerConfig {
	t.Helper()
	config := &schedulerConfig{}
	if err := yaml.Unmarshal(text, config); err != nil {
		t.Fatal(err)
	}
	return config
}

// TestTheStaticPodIsTheOnlyScheduler holds what keeps a cluster from having two schedulers of a name, or none: nothing
// else places Pods, the Lease is that of kube-scheduler, and the kubelet runs it without the API server's help.
func TestTheStaticPodIsTheOnlyScheduler(t *testing.T) {
	objects := objectsOf(t, root+"/static")
	if diff := cmp.Diff([]string{"lockstep-controller"}, names(of[*appsv1.Deployment](objects))); diff != "" {
		t.Errorf("Deployments (-want,+got):\n%s", diff)
	}
	text, err := os.ReadFile(root + "/static/pod.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict(text, &pod); err != nil {
		t.Fatal(err)
	}
	if !pod.Spec.HostNetwork || pod.Spec.ServiceAccountName != "" || pod.Spec.PriorityClassName != "system-node-critical" {
		t.Errorf("the kubelet can't run it before there is a network, or may evict it: %+v", pod.Spec)
	}
	for _, volume := range pod.Spec.Volumes {
		if volume.ConfigMap != nil || volume.Secret != nil {
			t.Errorf("the volume %s is of an object, which a static Pod can't have", volume.Name)
		}
	}
	text, err = os.ReadFile(root + "/static/config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	config := schedulerConfiguration(t, text)
	if l := config.LeaderElection; !l.LeaderElect || l.ResourceNamespace != "kube-system" || l.ResourceName != "kube-scheduler" {
		t.Errorf("it does not stand by for kube-scheduler's Lease: %+v", l)
	}
	mounted := slices.ContainsFunc(pod.Spec.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool {
		return m.MountPath == config.ClientConnection.Kubeconfig
	})
	if !mounted {
		t.Errorf("the kubeconfig %s is not mounted", config.ClientConnection.Kubeconfig)
	}
	var served []string
	for _, profile := range config.Profiles {
		served = append(served, profile.SchedulerName)
	}
	if diff := cmp.Diff([]string{"default-scheduler", "lockstep-scheduler"}, served); diff != "" {
		t.Errorf("schedulers that it serves (-want,+got):\n%s", diff)
	}
	bound := slices.ContainsFunc(of[*rbacv1.ClusterRoleBinding](objects), func(b *rbacv1.ClusterRoleBinding) bool {
		return b.RoleRef.Name == "lockstep-scheduler" && len(b.Subjects) == 1 && b.Subjects[0].Kind == rbacv1.UserKind && b.Subjects[0].Name == "system:kube-scheduler"
	})
	if !bound {
		t.Error("the user of kube-scheduler's kubeconfig has no right to PodGroups")
	}
}
