//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

const staticManifests = "../../manifests/static"

// TestTheOnlySchedulerIsAStaticPod does what docs/install.md says: the static Pod stands by while kube-scheduler
// holds its Lease, and places all Pods once that is gone. Here a Lease stands for kube-scheduler.
func TestTheOnlySchedulerIsAStaticPod(t *testing.T) {
	if out, err := cluster.Kubectl(t.Context(), "apply", "--server-side", "--force-conflicts", "-k", staticManifests); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	leases := cluster.Kube.CoordinationV1().Leases("kube-system")
	holder, duration, now := "kube-scheduler", int32(3600), metav1.NewMicroTime(time.Now())
	if _, err := leases.Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "kube-scheduler"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &duration, AcquireTime: &now, RenewTime: &now},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	putStaticPod(t)
	waitReady(t)
	namespace := cluster.Namespace(t)
	for _, pod := range []*corev1.Pod{
		podOf("ordinary", "default-scheduler", ""), podOf("member-0", "lockstep-scheduler", "gang"), podOf("member-1", "lockstep-scheduler", "gang"),
	} {
		if _, err := cluster.Kube.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	cluster.CreateGroup(t, namespace, "gang", 2)
	testbed.Consistently(t, "nothing to be placed while another scheduler leads", 5*time.Second, func(ctx context.Context) (bool, string, error) {
		names, err := cluster.Placed(ctx, namespace)
		return len(names) == 0, fmt.Sprint(names), err
	})
	if lease, err := leases.Get(t.Context(), "kube-scheduler", metav1.GetOptions{}); err != nil || *lease.Spec.HolderIdentity != holder {
		t.Errorf("the Lease of kube-scheduler was taken while it ran: %v (%v)", lease, err)
	}

	// kube-scheduler gives its Lease up when it ends.
	if err := leases.Delete(t.Context(), "kube-scheduler", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	cluster.WaitPlaced(t, namespace, 3)

	// Nobody has to place the scheduler: the kubelet brings it back.
	kill(t, "--config=/etc/kubernetes/lockstep-scheduler.yaml")
	testbed.EventuallyWithin(t, 2*time.Minute, "the kubelet to start the scheduler again", func(context.Context) (bool, string, error) {
		statuses := mirror(t).Status.ContainerStatuses
		return len(statuses) == 1 && statuses[0].RestartCount > 0 && statuses[0].Ready, fmt.Sprint(statuses), nil
	})
	if _, err := cluster.Kube.CoreV1().Pods(namespace).Create(t.Context(), podOf("later", "default-scheduler", ""), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	cluster.WaitPlaced(t, namespace, 4)
}

// kill ends the processes of this machine, which is the node, that have an argument.
func kill(t *testing.T, argument string) {
	t.Helper()
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	killed := 0
	for _, file := range commands {
		// A process may end meanwhile.
		command, _ := os.ReadFile(file)
		if !slices.Contains(strings.Split(string(command), "\x00"), argument) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		killed++
	}
	if killed == 0 {
		t.Fatal("no process has the argument " + argument)
	}
}

// putStaticPod puts the files of the static Pod where the node looks for them. A file of this machine stands for each
// of /etc/kubernetes.
func putStaticPod(t *testing.T) {
	t.Helper()
	etc := t.TempDir()
	kubeconfig, err := os.ReadFile(cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	// What kube-scheduler is allowed, and no more.
	user := strings.Replace(string(kubeconfig), "\n  user:\n", "\n  user:\n    as: system:kube-scheduler\n", 1)
	if user == string(kubeconfig) {
		t.Fatalf("the kubeconfig of the cluster has no user where it was looked for")
	}
	write(t, filepath.Join(etc, "scheduler.conf"), user)
	config, err := os.ReadFile(filepath.Join(staticManifests, "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(etc, "lockstep-scheduler.yaml"), string(config))
	pod, err := os.ReadFile(filepath.Join(staticManifests, "pod.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	// Where it is on the node, and not in the container.
	manifest := strings.ReplaceAll(string(pod), "path: /etc/kubernetes/", "path: "+etc+"/")
	file := filepath.Join(cluster.Dir, "node", "static-pods", "lockstep-scheduler.yaml")
	write(t, file, manifest)
	t.Cleanup(func() {
		if err := os.Remove(file); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), testbed.Patience)
		defer cancel()
		if err := localenv.Await(ctx, "the static Pod to be gone", func(ctx context.Context) (bool, string, error) {
			pods, err := cluster.Kube.CoreV1().Pods("kube-system").List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=lockstep-scheduler"})
			return err == nil && len(pods.Items) == 0, "", err
		}); err != nil {
			t.Error(err)
		}
	})
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// mirror is the Pod by which the API server knows the static one.
func mirror(t *testing.T) *corev1.Pod {
	t.Helper()
	pods, err := cluster.Kube.CoreV1().Pods("kube-system").List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=lockstep-scheduler"})
	if err != nil || len(pods.Items) != 1 {
		t.Fatalf("the API server knows %d static Pods of lockstep-scheduler, want 1 (%v)", len(pods.Items), err)
	}
	return &pods.Items[0]
}

// waitReady waits until the static Pod is ready, whether it leads or stands by.
func waitReady(t *testing.T) {
	t.Helper()
	testbed.Eventually(t, "the static Pod to be ready", func(ctx context.Context) (bool, string, error) {
		pods, err := cluster.Kube.CoreV1().Pods("kube-system").List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=lockstep-scheduler"})
		if err != nil || len(pods.Items) != 1 {
			return false, fmt.Sprintf("%d Pods", len(pods.Items)), err
		}
		for _, c := range pods.Items[0].Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && pods.Items[0].DeletionTimestamp == nil {
				return true, "", nil
			}
		}
		out, _ := cluster.Kubectl(ctx, "-n", "kube-system", "logs", "--tail=5", pods.Items[0].Name)
		return false, fmt.Sprint(pods.Items[0].Status.ContainerStatuses, out), nil
	})
}

// podOf is a Pod of a scheduler, in a gang or not. Its image runs nothing: that it has a node is enough.
func podOf(name, scheduler, group string) *corev1.Pod {
	pod := testbed.MakePod(name)
	pod.Spec.SchedulerName = scheduler
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	if group != "" {
		testbed.InGroup(group)(pod)
	}
	return pod
}
