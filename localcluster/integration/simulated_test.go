// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"context"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-k8s/lockstep/localcluster/components"
	"github.com/lockstep-k8s/lockstep/localcluster/simnodes"
)

// simulatedPod is a Pod bound to the first simulated node.
func simulatedPod(name string, annotations map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations},
		Spec: corev1.PodSpec{
			NodeName:       simnodes.NodeName(0),
			RestartPolicy:  corev1.RestartPolicyNever,
			InitContainers: []corev1.Container{{Name: "init", Image: "none"}},
			Containers:     []corev1.Container{{Name: "main", Image: "none"}},
		},
	}
}

// end is how a Pod ended.
type end struct {
	Phase              corev1.PodPhase
	PodReason          string
	ExitCode           int32
	Reason, Message    string
	InitContainersDone bool
}

func TestPodsEndAsAnnotated(t *testing.T) {
	c := up(t, "--simulated-nodes=3", "--node-cpu=7", "--node-pods=500")
	tests := map[string]struct {
		annotations map[string]string
		want        end
	}{
		"a Pod with a duration succeeds": {
			annotations: map[string]string{simnodes.RunSecondsAnnotation: "0.2"},
			want:        end{Phase: corev1.PodSucceeded, Reason: "Completed", InitContainersDone: true},
		},
		"an exit code other than 0 fails the Pod": {
			annotations: map[string]string{
				simnodes.RunSecondsAnnotation: "0",
				simnodes.ExitCodeAnnotation:   "137",
				simnodes.ReasonAnnotation:     "OOMKilled",
				simnodes.MessageAnnotation:    `out of "memory"`,
			},
			want: end{Phase: corev1.PodFailed, ExitCode: 137, Reason: "OOMKilled", Message: `out of "memory"`, InitContainersDone: true},
		},
		"a Pod with a reason of its own fails": {
			annotations: map[string]string{
				simnodes.RunSecondsAnnotation: "0",
				simnodes.PodReasonAnnotation:  "Evicted",
			},
			want: end{Phase: corev1.PodFailed, PodReason: "Evicted", Reason: "Completed", InitContainersDone: true},
		},
		"the first attempt fails when one is to": {
			annotations: map[string]string{
				simnodes.RunSecondsAnnotation:   "0",
				simnodes.ExitCodeAnnotation:     "200",
				simnodes.FailAttemptsAnnotation: "1",
				"FC_FRAMEWORK_ATTEMPT_ID":       "0",
			},
			want: end{Phase: corev1.PodFailed, ExitCode: 200, Reason: "Error", InitContainersDone: true},
		},
		"the second attempt succeeds when one is to fail": {
			annotations: map[string]string{
				simnodes.RunSecondsAnnotation:   "0",
				simnodes.ExitCodeAnnotation:     "200",
				simnodes.FailAttemptsAnnotation: "1",
				"FC_FRAMEWORK_ATTEMPT_ID":       "1",
			},
			want: end{Phase: corev1.PodSucceeded, Reason: "Completed", InitContainersDone: true},
		},
		"the second attempt of a task succeeds when one is to fail": {
			annotations: map[string]string{
				simnodes.RunSecondsAnnotation:       "0",
				simnodes.ExitCodeAnnotation:         "1",
				simnodes.FailTaskAttemptsAnnotation: "1",
				"FC_TASK_ATTEMPT_ID":                "1",
			},
			want: end{Phase: corev1.PodSucceeded, Reason: "Completed", InitContainersDone: true},
		},
		"a duration that is no number fails the Pod and says so": {
			annotations: map[string]string{simnodes.RunSecondsAnnotation: "soon"},
			want: end{
				Phase: corev1.PodFailed, ExitCode: 1, Reason: "BadSimulation", InitContainersDone: true,
				Message: `annotation simulate.lockstep.dev/run-seconds is "soon", want a number of seconds such as 2 or 0.5`,
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := &local{t: t, layout: c.layout, client: c.client}
			podName := strings.ReplaceAll(name, " ", "-")
			c.create(simulatedPod(strings.ToLower(podName), tc.annotations))
			pod := c.waitPod(strings.ToLower(podName), "ends", func(p *corev1.Pod) bool {
				return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
			})
			terminated := pod.Status.ContainerStatuses[0].State.Terminated
			got := end{
				Phase: pod.Status.Phase, PodReason: pod.Status.Reason,
				ExitCode: terminated.ExitCode, Reason: terminated.Reason, Message: terminated.Message,
				InitContainersDone: pod.Status.InitContainerStatuses[0].State.Terminated != nil,
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("end of the Pod (-want,+got):\n%s", diff)
			}
		})
	}

	nodes, err := c.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(nodes.Items) != 3 {
		t.Errorf("%d nodes, want 3", len(nodes.Items))
	}
	for _, n := range nodes.Items {
		if cpu, pods := n.Status.Allocatable.Cpu().Value(), n.Status.Allocatable.Pods().Value(); cpu != 7 || pods != 500 {
			t.Errorf("node %s offers %d processors and %d Pods, want 7 and 500", n.Name, cpu, pods)
		}
	}
}

// TestKwokDeletesOnlyWhatIsDeleted: a Pod that takes the name of a deleted one must not fall
// to a deletion that was meant for that.
func TestKwokDeletesOnlyWhatIsDeleted(t *testing.T) {
	c := up(t, "--simulated-nodes=1")
	c.create(simulatedPod("stays", nil))
	c.waitPod("stays", "runs", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
	config, err := clientcmd.BuildConfigFromFlags("", c.layout.ComponentKubeconfig(components.Kwok))
	if err != nil {
		t.Fatal(err)
	}
	kwok, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	// A dry run asks the same questions, and may come before the policy works.
	options := *metav1.NewDeleteOptions(0)
	options.DryRun = []string{metav1.DryRunAll}
	eventually(t, "KWOK is refused", func(ctx context.Context) (bool, error) {
		err := kwok.CoreV1().Pods(metav1.NamespaceDefault).Delete(ctx, "stays", options)
		return apierrors.IsInvalid(err) || apierrors.IsForbidden(err), nil
	})
	if err := c.client.CoreV1().Pods(metav1.NamespaceDefault).Delete(t.Context(), "stays", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a deleted Pod goes", func(ctx context.Context) (bool, error) {
		_, err := c.client.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, "stays", metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
}

func TestPodsGetAddressesOfTheirOwn(t *testing.T) {
	const n = 200
	c := up(t, "--simulated-nodes=2", "--node-pods=1000")
	for i := range n {
		pod := simulatedPod("", nil)
		pod.GenerateName = "p-"
		pod.Spec.NodeName = simnodes.NodeName(i % 2)
		c.create(pod)
	}
	addresses := map[string]bool{}
	eventually(t, "all Pods run", func(ctx context.Context) (bool, error) {
		pods, err := c.client.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		running := 0
		for _, p := range pods.Items {
			if p.Status.Phase == corev1.PodRunning {
				running++
				addresses[p.Status.PodIP] = true
			}
		}
		return running == n, nil
	})
	if len(addresses) != n {
		t.Errorf("%d Pods have %d addresses", n, len(addresses))
	}
}

func TestDownLeavesNothing(t *testing.T) {
	c := up(t, "--simulated-nodes=1")
	if out := c.mustRun("status", "--dir", c.layout.Dir); !strings.Contains(out, "1 of 1 nodes ready") {
		t.Errorf("status does not tell the nodes:\n%s", out)
	}
	if out := c.run("up", "--dir", c.layout.Dir, "--with=none"); !strings.Contains(out, "a cluster is running") || !strings.Contains(out, "lockstep-local down") {
		t.Errorf("a second up does not say what to do:\n%s", out)
	}
	c.mustRun("down", "--dir", c.layout.Dir)
	if left := leftovers(t, c.layout.Dir); left != "" {
		t.Errorf("after down there still is %s", left)
	}
	if !notExists(c.layout.Dir) {
		t.Errorf("after down %s still exists", c.layout.Dir)
	}
}

func TestKillingTheSupervisorEndsTheCluster(t *testing.T) {
	c := up(t)
	kill(t, c.supervisorPID())
	c.expectNothingLeft()
	// A process that dies holds its lock a moment longer than its programs live.
	eventually(t, "status tells of the kill", func(context.Context) (bool, error) {
		return strings.Contains(c.run("status", "--dir", c.layout.Dir), "was killed"), nil
	})
	c.mustRun("up", "--dir", c.layout.Dir, "--with=none")
	c.mustRun("status", "--dir", c.layout.Dir)
}

func TestKillingUpEndsTheCluster(t *testing.T) {
	c := &local{t: t}
	c.layout.Dir = shortDir(t)
	cmd := exec.Command(program, "up", "--dir", c.layout.Dir, "--with=none")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "etcd is started", func(context.Context) (bool, error) {
		return !notExists(c.layout.Log("etcd")), nil
	})
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	c.expectNothingLeft()
	c.mustRun("down", "--dir", c.layout.Dir)
}

func TestTwoClustersSideBySide(t *testing.T) {
	a, b := up(t, "--simulated-nodes=1"), up(t, "--simulated-nodes=2")
	a.mustRun("down", "--dir", a.layout.Dir)
	nodes, err := b.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(nodes.Items) != 2 {
		t.Errorf("the second cluster has %d nodes, want 2", len(nodes.Items))
	}
}

func TestAComponentThatDiesIsStartedAgain(t *testing.T) {
	c := up(t)
	pid := componentPID(t, c, "kube-controller-manager")
	kill(t, pid)
	eventually(t, "kube-controller-manager runs again", func(context.Context) (bool, error) {
		now := componentPID(t, c, "kube-controller-manager")
		return now != pid && now != 0, nil
	})
	if _, err := c.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
}
