//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
	"github.com/lockstep-k8s/lockstep/internal/testing/documents"
)

// kueue is a stand-in for Kueue, for one Framework.
type kueue struct {
	t                    *testing.T
	namespace, framework string
}

// inQueue creates a Framework in a queue, in a namespace of its own, and returns it with its queue.
func inQueue(t *testing.T, fw *frameworkv1.Framework) kueue {
	t.Helper()
	namespace := cluster.Namespace(t)
	fw.Namespace = namespace
	fw.Labels = map[string]string{frameworkv1.LabelQueue: "queue"}
	cluster.CreateFramework(t, namespace, fw)
	return kueue{t, namespace, fw.Name}
}

// workload waits until the Framework's Workload is as it is to be.
func (k kueue) workload(what string, is func(*unstructured.Unstructured) bool) *unstructured.Unstructured {
	k.t.Helper()
	var found *unstructured.Unstructured
	testbed.Eventually(k.t, "the Workload to "+what, func(ctx context.Context) (bool, string, error) {
		list, err := workloads.Namespace(k.namespace).List(ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) == 0 {
			return false, "there is none", err
		}
		found = &list.Items[0]
		return is(found), fmt.Sprint(found.Object["status"]), nil
	})
	return found
}

func (k kueue) exists() *unstructured.Unstructured {
	k.t.Helper()
	return k.workload("exist", func(*unstructured.Unstructured) bool { return true })
}

// write has the status of the Workload have conditions, and an admission or none.
func (k kueue) write(conditions map[string]string, admission any) {
	k.t.Helper()
	w := k.exists()
	status := map[string]any{"admission": admission}
	var list []any
	for kind, value := range conditions {
		list = append(list, map[string]any{"type": kind, "status": value, "reason": "Preempted", "message": "by Kueue", "lastTransitionTime": time.Now().UTC().Format(time.RFC3339)})
	}
	status["conditions"] = list
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		k.t.Fatal(err)
	}
	if _, err := workloads.Namespace(k.namespace).Patch(k.t.Context(), w.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "kueue-admission"}, "status"); err != nil {
		k.t.Fatal(err)
	}
}

// admit lets the Framework begin, with the quota of the flavor spot.
func (k kueue) admit() {
	k.t.Helper()
	k.write(map[string]string{"QuotaReserved": "True", "Admitted": "True", "Evicted": "False"}, map[string]any{"clusterQueue": "all", "podSetAssignments": []any{
		map[string]any{"name": "worker", "count": 3, "flavors": map[string]any{"cpu": "spot"}}}})
}

// evict wants the quota back.
func (k kueue) evict() {
	k.t.Helper()
	k.write(map[string]string{"QuotaReserved": "True", "Admitted": "True", "Evicted": "True"}, map[string]any{"clusterQueue": "all"})
}

func statusOf(w *unstructured.Unstructured, kind string) string {
	conditions, _, _ := unstructured.NestedSlice(w.Object, "status", "conditions")
	for _, item := range conditions {
		if c, ok := item.(map[string]any); ok && c["type"] == kind {
			return fmt.Sprint(c["status"])
		}
	}
	return ""
}

// pods are as many as the Framework has.
func (k kueue) pods(ctx context.Context) (int, error) {
	pods, err := cluster.PodsOf(ctx, k.namespace, k.framework)
	return len(pods), err
}

func (k kueue) runs() {
	k.t.Helper()
	cluster.WaitFramework(k.t, k.namespace, k.framework, "run", func(fw *frameworkv1.Framework) bool {
		return fw.Status != nil && fw.Status.Tasks != nil && fw.Status.Tasks.Running == 3
	})
}

// TestAFrameworkInAQueue waits, is admitted and placed whole, gives way, waits, and runs again,
// none of which counts as a failure.
func TestAFrameworkInAQueue(t *testing.T) {
	t.Parallel()
	k := inQueue(t, jobs.MakeFramework("queued").Gang().Role("worker", 3, jobs.RunForever().Scheduler(testbed.GangScheduler)).Obj())
	k.exists()
	testbed.Consistently(t, "it to have no Pods", 2*time.Second, func(ctx context.Context) (bool, string, error) {
		n, err := k.pods(ctx)
		return n == 0, fmt.Sprint(n), err
	})
	k.admit()
	k.runs()
	pods, err := cluster.PodsOf(t.Context(), k.namespace, k.framework)
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods {
		if pod.Spec.NodeSelector["flavour"] != "spot" {
			t.Errorf("Pod %s runs on nodes with %v", pod.Name, pod.Spec.NodeSelector)
		}
	}

	k.workload("say that it runs", func(w *unstructured.Unstructured) bool { return statusOf(w, "PodsReady") == "True" })

	k.evict()
	w := k.workload("give its quota back", func(w *unstructured.Unstructured) bool { return statusOf(w, "QuotaReserved") == "False" })
	if n, err := k.pods(t.Context()); err != nil || n > 0 {
		t.Errorf("it has given its quota back, and has %d Pods (%v)", n, err)
	}
	if statusOf(w, "Admitted") != "False" || statusOf(w, "Requeued") != "True" || statusOf(w, "PodsReady") != "False" || w.Object["status"].(map[string]any)["admission"] != nil {
		t.Errorf("the status of the Workload is %v", w.Object["status"])
	}
	fw := cluster.WaitFrameworkState(t, k.namespace, k.framework, frameworkv1.FrameworkAttemptCreationPending)
	if retries := fw.Status.RetryPolicyStatus; retries.TotalRetriedCount != 1 || retries.AccountableRetriedCount != 0 {
		t.Errorf("its retries are %+v", retries)
	}

	k.admit()
	k.runs()
	if got := k.exists().GetUID(); got != w.GetUID() {
		t.Errorf("it has another Workload, %s", got)
	}
}

// TestTheFrameworkOfThePageTakesItsTurn: that of docs/kueue.md waits in the queue that it names, runs when it is
// admitted, gives way, and runs again.
func TestTheFrameworkOfThePageTakesItsTurn(t *testing.T) {
	t.Parallel()
	manifest, err := documents.YAML("../../docs/kueue.md", "kind: Framework")
	if err != nil {
		t.Fatal(err)
	}
	k := kueue{t, cluster.Namespace(t), "train"}
	if out, err := cluster.KubectlApply(t.Context(), k.namespace, manifest); err != nil {
		t.Fatal(err, out)
	}
	if queue, _, _ := unstructured.NestedString(k.exists().Object, "spec", "queueName"); queue != "team-a" {
		t.Errorf("it waits in the queue %q, want team-a", queue)
	}
	if n, err := k.pods(t.Context()); err != nil || n > 0 {
		t.Errorf("it has %d Pods before it is admitted (%v)", n, err)
	}
	k.admit()
	k.runs()
	k.evict()
	k.workload("give its quota back", func(w *unstructured.Unstructured) bool { return statusOf(w, "QuotaReserved") == "False" })
	k.admit()
	k.runs()
}

// TestAFrameworkThatHasEndedNeedsNoQuota, and its Workload says so.
func TestAFrameworkThatHasEndedNeedsNoQuota(t *testing.T) {
	t.Parallel()
	k := inQueue(t, jobs.MakeFramework("short").Role("worker", 3, jobs.RunFor(time.Second, 0)).Obj())
	k.admit()
	cluster.WaitFrameworkState(t, k.namespace, k.framework, frameworkv1.FrameworkCompleted)
	k.workload("have finished", func(w *unstructured.Unstructured) bool { return statusOf(w, "Finished") == "True" })
}

// TestAFrameworkLeavesItsQueue: it begins without having been admitted.
func TestAFrameworkLeavesItsQueue(t *testing.T) {
	t.Parallel()
	k := inQueue(t, jobs.MakeFramework("impatient").Role("worker", 3, jobs.RunForever()).Obj())
	k.exists()
	if _, err := cluster.Lockstep.FrameworkcontrollerV1().Frameworks(k.namespace).Patch(t.Context(), k.framework, types.MergePatchType,
		[]byte(`{"metadata": {"labels": {"kueue.x-k8s.io/queue-name": null}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	k.runs()
	testbed.Eventually(t, "its Workload to be gone", func(ctx context.Context) (bool, string, error) {
		list, err := workloads.Namespace(k.namespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == 0, "", err
	})
}

// TestPodsThatKueueGatesArePlaced where it gates all that have no owner which it knows. They go, too, though it holds them by a
// finalizer.
func TestPodsThatKueueGatesArePlaced(t *testing.T) {
	t.Parallel()
	fw := jobs.MakeFramework("gated").Gang().Role("worker", 3, jobs.RunForever().Scheduler(testbed.GangScheduler)).Obj()
	k := inQueue(t, fw)
	if out, err := cluster.KubectlApply(t.Context(), k.namespace, strings.ReplaceAll(gatesPods, "NAMESPACE", k.namespace)); err != nil {
		t.Fatal(err, out)
	}
	t.Cleanup(func() {
		if out, err := cluster.Kubectl(context.WithoutCancel(t.Context()), "delete", "mutatingadmissionpolicy,mutatingadmissionpolicybinding", k.namespace); err != nil {
			t.Error(err, out)
		}
	})
	testbed.Eventually(t, "Pods to be gated", func(ctx context.Context) (bool, string, error) {
		out, err := cluster.Kubectl(ctx, "run", "trial", "--image=none", "-n", k.namespace, "--dry-run=server", "-o", "yaml")
		return strings.Contains(out, "kueue.x-k8s.io/admission"), out, err
	})
	k.admit()
	k.runs()
	k.evict()
	k.workload("give its quota back", func(w *unstructured.Unstructured) bool { return statusOf(w, "QuotaReserved") == "False" })
	if n, err := k.pods(t.Context()); err != nil || n > 0 {
		t.Errorf("it has given its quota back, and has %d Pods (%v)", n, err)
	}
}

// gatesPods does to Pods of a namespace what the webhook of Kueue does.
const gatesPods = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: NAMESPACE}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAMESPACE}}
  reinvocationPolicy: Never
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: >-
        Object{
          metadata: Object.metadata{finalizers: ["kueue.x-k8s.io/managed"]},
          spec: Object.spec{schedulingGates: [
            Object.spec.schedulingGates{name: "kueue.x-k8s.io/admission"}, Object.spec.schedulingGates{name: "kueue.x-k8s.io/topology"}]}
        }
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: NAMESPACE}
spec: {policyName: NAMESPACE}
`
