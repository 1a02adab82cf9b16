//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
	"github.com/lockstep-k8s/lockstep/internal/testing/documents"
)

const (
	repository = "../.."
	overlay    = repository + "/manifests/overlays/several-namespaces"
	// The overlay names two namespaces. Lockstep serves no namespace but these two.
	teamA, teamB, elsewhere = "team-a", "team-b", "elsewhere"
)

// grantOverlay makes the namespaces, and has the programs have the rights of the overlay and no others.
func grantOverlay(ctx context.Context, cluster *testbed.Cluster) error {
	for _, namespace := range []string{teamA, teamB, elsewhere} {
		if _, err := cluster.CreateNamespace(ctx, metav1.ObjectMeta{Name: namespace}); err != nil {
			return err
		}
	}
	// A local cluster is made with rights everywhere. The documents say how to take these away.
	section, err := documents.Section(repository+"/docs/install.md", "Several namespaces")
	if err != nil {
		return err
	}
	for _, command := range documents.Commands(section) {
		if out, err := cluster.Shell(ctx, repository, command); err != nil {
			return fmt.Errorf("%s: %w: %s", command, err, out)
		}
	}
	rendered, err := cluster.Kubectl(ctx, "kustomize", overlay)
	if err != nil {
		return fmt.Errorf("%w: %s", err, rendered)
	}
	var rights []string
	for document := range strings.SplitSeq(rendered, "\n---\n") {
		if strings.Contains(document, "apiVersion: rbac.authorization.k8s.io/v1\n") {
			rights = append(rights, document)
		}
	}
	path := filepath.Join(cluster.Dir, "rights.yaml")
	if err := os.WriteFile(path, []byte(strings.Join(rights, "\n---\n")), 0o600); err != nil {
		return err
	}
	if out, err := cluster.Kubectl(ctx, "apply", "--server-side", "--force-conflicts", "-f", path); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// startForSome starts lockstep-scheduler for the namespaces of the overlay, as one that is elected.
func startForSome(ctx context.Context, cluster *testbed.Cluster) error {
	scheduler, err := cluster.StartSchedulerWith(ctx, localenv.SchedulerOptions{Elected: true, Flags: []string{"--namespaces=" + teamA + "," + teamB}})
	if err != nil {
		return err
	}
	if err := scheduler.WaitLog(ctx, `"What is served"`); err != nil {
		return fmt.Errorf("%w\n%s", err, scheduler.LogTail(4000))
	}
	return nil
}

// TestOtherNamespacesAreLeftAlone runs gangs in the namespaces that are served, beside a Framework and
// a gang in one that is not. Whatever takes room on a node is reckoned with, wherever it is. In the
// end the audit log tells what was asked for.
func TestOtherNamespacesAreLeftAlone(t *testing.T) {
	t.Parallel()
	cluster := testbed.Up(t, localenv.Options{SimulatedNodes: 1, NodeCPU: "10", NodePods: 100, With: "none", Audit: true})
	if err := grantOverlay(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	// Not the context of the test: the cleanup of the test may need the programs.
	programs := context.WithoutCancel(t.Context())
	if err := startForSome(programs, cluster); err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile(filepath.Join(overlay, "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := cluster.RunController(programs, localenv.ControllerOptions{Config: string(config)}); err != nil {
		t.Fatal(err)
	}
	// It takes 4 of the 10 cores, and outranks nobody.
	there := testbed.MakePod("there", testbed.WithCores(4), func(pod *corev1.Pod) {
		pod.Spec.NodeName, pod.Spec.SchedulerName = onlyNode(t, cluster), "by-hand"
	})
	cluster.CreatePod(t, elsewhere, there)
	cluster.CreateFramework(t, elsewhere, jobs.MakeFramework("ignored").Gang().Role("worker", 2, jobs.RunFor(time.Second, 0)).Obj())
	cluster.CreateGroup(t, elsewhere, "waits", 1)
	cluster.CreatePod(t, elsewhere, testbed.MakePod("waits", testbed.InGroup("waits")))
	cluster.CreatePod(t, elsewhere, testbed.MakePod("alone"))

	for _, namespace := range []string{teamA, teamB} {
		cluster.CreateFramework(t, namespace, jobs.MakeFramework("runs").Gang().Role("worker", 2, jobs.RunFor(time.Second, 0).CPU("1")).Obj())
	}
	for _, namespace := range []string{teamA, teamB} {
		cluster.WaitFrameworkState(t, namespace, "runs", frameworkv1.FrameworkCompleted)
	}

	// Six cores are free. A gang of seven waits however much it outranks the Pod there.
	cluster.CreateClass(t, "high", 1000)
	cluster.CreateGroup(t, teamA, "large", 7)
	for i := range 7 {
		cluster.CreatePod(t, teamA, testbed.MakePod(fmt.Sprint("large-", i), testbed.InGroup("large"), func(pod *corev1.Pod) { pod.Spec.PriorityClassName = "high" }))
	}
	cluster.WaitGroupTold(t, teamA, "large", "")
	cluster.CreatePod(t, teamB, testbed.MakePod("eager", testbed.WithCores(7), func(pod *corev1.Pod) { pod.Spec.PriorityClassName = "high" }))
	testbed.Eventually(t, "the Pod that outranks others to be told that it waits", func(ctx context.Context) (bool, string, error) {
		pod, err := cluster.Kube.CoreV1().Pods(teamB).Get(ctx, "eager", metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				return true, "", nil
			}
		}
		return false, fmt.Sprint(pod.Status.Conditions), nil
	})
	if pod, err := cluster.Kube.CoreV1().Pods(elsewhere).Get(t.Context(), "there", metav1.GetOptions{}); err != nil || pod.DeletionTimestamp != nil {
		t.Errorf("the Pod of another namespace was preempted (%v)", err)
	}
	if err := cluster.Kube.CoreV1().Pods(teamB).Delete(t.Context(), "eager", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// Its room is taken as soon as it is free.
	if err := cluster.Kube.CoreV1().Pods(elsewhere).Delete(t.Context(), "there", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
		t.Fatal(err)
	}
	cluster.WaitMembersPlaced(t, teamA, "large", 7)

	if fw, err := cluster.Lockstep.FrameworkcontrollerV1().Frameworks(elsewhere).Get(t.Context(), "ignored", metav1.GetOptions{}); err != nil || fw.Status != nil {
		t.Errorf("the Framework of another namespace has the status %v (%v)", fw.Status, err)
	}
	for _, name := range []string{"waits", "alone"} {
		if pod, err := cluster.Kube.CoreV1().Pods(elsewhere).Get(t.Context(), name, metav1.GetOptions{}); err != nil || pod.Spec.NodeName != "" || len(pod.Status.Conditions) > 0 {
			t.Errorf("the Pod %s of another namespace is on %q, with the conditions %v (%v)", name, pod.Spec.NodeName, pod.Status.Conditions, err)
		}
	}
	asked := 0
	for _, r := range cluster.AuditedAll(t) {
		if !strings.HasPrefix(r.User, "system:serviceaccount:lockstep-system:") {
			continue
		}
		asked++
		if r.Denied && !mayBeDeniedElsewhere(r) {
			t.Errorf("%s may not %s %s in %q, and has asked for it", r.User, r.Verb, r.Resource, r.Namespace)
		}
		if r.Namespace == elsewhere {
			t.Errorf("%s has asked to %s %s %s in a namespace that is not served", r.User, r.Verb, r.Resource, r.Name)
		}
		if r.Namespace == "" && !r.IsRead() && r.Resource != "tokenreviews" && r.Resource != "subjectaccessreviews" {
			t.Errorf("%s has asked to %s %s in the whole cluster", r.User, r.Verb, r.Resource)
		}
	}
	if asked < 100 {
		t.Errorf("%d requests were written down, which can't be all", asked)
	}
}

// mayBeDeniedElsewhere says whether a right may be missing that was asked for: to read PodGroups of other
// projects, which are served if it is there, and Leases of other schedulers, see docs/other-podgroups.md.
func mayBeDeniedElsewhere(r testbed.Request) bool {
	return r.Resource == "podgroups" && r.Group != "scheduling.lockstep.dev" && r.Namespace != "" || r.Resource == "leases" && r.Verb == "get"
}

func onlyNode(t *testing.T, cluster *testbed.Cluster) string {
	t.Helper()
	nodes, err := cluster.Kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 1 {
		t.Fatalf("%d nodes (%v), want one", len(nodes.Items), err)
	}
	return nodes.Items[0].Name
}
