//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package real

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// queue is a queue, with quota of its own, of a namespace of its own.
type queue struct {
	t               *testing.T
	name, namespace string
}

// givenQueue makes a queue with quota for a number of processors.
func givenQueue(t *testing.T, cpu int) queue {
	t.Helper()
	return givenQueueNamed(t, "queue", cpu)
}

func givenQueueNamed(t *testing.T, name string, cpu int) queue {
	t.Helper()
	namespace := cluster.Namespace(t)
	manifest := fmt.Sprintf(`
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: %[1]s}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: spot, resources: [{name: cpu, nominalQuota: %[2]d}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: %[3]s, namespace: %[1]s}
spec: {clusterQueue: %[1]s}
`, namespace, cpu, name)
	if out, err := cluster.KubectlApply(t.Context(), namespace, manifest); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := cluster.Kubectl(context.WithoutCancel(t.Context()), "delete", "clusterqueue", namespace, "--wait=false"); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	return queue{t, name, namespace}
}

// stop has the queue take its quota back from all, and resume lets it hand it out again.
func (q queue) stop()   { q.setPolicy("HoldAndDrain") }
func (q queue) resume() { q.setPolicy("None") }

func (q queue) setPolicy(policy string) {
	q.t.Helper()
	patch := fmt.Sprintf(`{"spec": {"stopPolicy": %q}}`, policy)
	queues := client.Resource(schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "localqueues"}).Namespace(q.namespace)
	if _, err := queues.Patch(q.t.Context(), q.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		q.t.Fatal(err)
	}
}

// submit creates a gang of three Pods of a processor each.
func (q queue) submit(name string, task *jobs.TaskBuilder) {
	q.t.Helper()
	q.create(jobs.MakeFramework(name).Gang().Role("worker", 3, task.CPU("1").Scheduler(testbed.GangScheduler)).Obj())
}

// create creates a Framework in the queue.
func (q queue) create(fw *frameworkv1.Framework) {
	q.t.Helper()
	fw.Labels = map[string]string{frameworkv1.LabelQueue: q.name}
	if _, err := cluster.Lockstep.FrameworkcontrollerV1().Frameworks(q.namespace).Create(q.t.Context(), fw, metav1.CreateOptions{}); err != nil {
		q.t.Fatal(err)
	}
}

// runs waits until all Pods of a Framework run.
func (q queue) runs(name string) *frameworkv1.Framework {
	q.t.Helper()
	return cluster.WaitFramework(q.t, q.namespace, name, "run", func(fw *frameworkv1.Framework) bool {
		return fw.Status != nil && fw.Status.Tasks != nil && fw.Status.Tasks.Running == 3
	})
}

// hasNoPods waits until a Framework has none, and looks for a while whether that stays so.
func (q queue) hasNoPods(name string) {
	q.t.Helper()
	none := func(ctx context.Context) (bool, string, error) {
		pods, err := cluster.PodsOf(ctx, q.namespace, name)
		return err == nil && len(pods) == 0, fmt.Sprintf("%d Pods", len(pods)), err
	}
	testbed.Eventually(q.t, name+" to have no Pods", none)
	testbed.Consistently(q.t, name+" to have no Pods", 2*time.Second, none)
}

// workloads are the Workloads of the queue and what became of them, such as "framework-a Admitted".
func (q queue) workloads(ctx context.Context) (string, error) {
	return cluster.Kubectl(ctx, "get", "workloads", "-n", q.namespace, "-o", `jsonpath={range .items[*]}{.metadata.name}{range .status.conditions[?(@.status=="True")]} {.type}{end}{"\n"}{end}`)
}

func (q queue) eventuallyWorkload(name, is string) {
	q.t.Helper()
	testbed.Eventually(q.t, "the Workload of "+name+" to be "+is, func(ctx context.Context) (bool, string, error) {
		out, err := q.workloads(ctx)
		for line := range strings.Lines(out) {
			if fields := strings.Fields(line); len(fields) > 1 && strings.Contains(fields[0], name) && strings.Contains(line, " "+is) {
				return true, out, nil
			}
		}
		return false, out, err
	})
}

// TestFrameworksTakeTurns in a queue that has quota for one of them.
func TestFrameworksTakeTurns(t *testing.T) {
	t.Parallel()
	q := givenQueue(t, 3)
	q.submit("first", jobs.RunForever())
	q.runs("first")
	pods, err := cluster.PodsOf(t.Context(), q.namespace, "first")
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods {
		if pod.Spec.NodeSelector["flavour"] != "spot" {
			t.Errorf("Pod %s runs on nodes with %v, which are not those of its quota", pod.Name, pod.Spec.NodeSelector)
		}
	}
	q.submit("second", jobs.RunFor(time.Second, 0))
	q.hasNoPods("second")
	cluster.WaitFrameworkState(t, q.namespace, "second", frameworkv1.FrameworkAttemptCreationPending)

	if err := cluster.Lockstep.FrameworkcontrollerV1().Frameworks(q.namespace).Delete(t.Context(), "first", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	cluster.WaitFrameworkState(t, q.namespace, "second", frameworkv1.FrameworkCompleted)
	q.eventuallyWorkload("second", "Finished")
}

// TestAFrameworkGivesWay when its queue drains, and runs again when it may, which is no failure.
func TestAFrameworkGivesWay(t *testing.T) {
	t.Parallel()
	q := givenQueue(t, 3)
	q.submit("train", jobs.RunForever())
	q.runs("train")
	q.stop()
	q.hasNoPods("train")
	q.resume()
	fw := q.runs("train")
	if retries := fw.Status.RetryPolicyStatus; retries.TotalRetriedCount != 1 || retries.AccountableRetriedCount != 0 {
		t.Errorf("its retries are %+v", retries)
	}
}

// TestAGangThatRunsIsNotEvicted, though Kueue evicts what has not started in time, and makes Workloads of single Pods in a
// namespace with a queue named default. The Workload of the gang remains the only one.
func TestAGangThatRunsIsNotEvicted(t *testing.T) {
	t.Parallel()
	q := givenQueueNamed(t, "default", 3)
	q.submit("train", jobs.RunForever())
	q.runs("train")
	q.eventuallyWorkload("train", "PodsReady")
	testbed.Consistently(t, "it to run in its first attempt, with one Workload", timeout+5*time.Second, func(ctx context.Context) (bool, string, error) {
		fw, err := cluster.Lockstep.FrameworkcontrollerV1().Frameworks(q.namespace).Get(ctx, "train", metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		workloads, err := q.workloads(ctx)
		return fw.Status.Tasks.Running == 3 && fw.Status.AttemptStatus.ID == 0 && strings.Count(workloads, "\n") == 1, fmt.Sprintf("%+v\n%s", fw.Status.Tasks, workloads), err
	})
}

// TestAGangThatDoesNotStartGivesItsQuotaBack after Kueue's time-out, and is tried again.
func TestAGangThatDoesNotStartGivesItsQuotaBack(t *testing.T) {
	t.Parallel()
	q := givenQueue(t, 3)
	q.submit("train", jobs.RunForever().Node("none"))
	fw := cluster.WaitFramework(t, q.namespace, "train", "give way", func(fw *frameworkv1.Framework) bool {
		return fw.Status != nil && len(fw.Status.History) > 0
	})
	if end := fw.Status.History[0].CompletionStatus; end.Code != frameworkv1.CodeAdmissionWithdrawn {
		t.Errorf("its attempt ended with %+v", end)
	}
	cluster.WaitFramework(t, q.namespace, "train", "be admitted again", func(fw *frameworkv1.Framework) bool {
		return fw.Status.AttemptStatus.ID == 1 && fw.Status.State == frameworkv1.FrameworkAttemptPreparing
	})
}

// TestAGangThatAnotherPreemptsGivesItsQuotaBack: it waits in the queue, not for its place with the quota in hand, and runs when
// it has both.
func TestAGangThatAnotherPreemptsGivesItsQuotaBack(t *testing.T) {
	t.Parallel()
	q := givenQueue(t, 8)
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: q.namespace}, Value: 1000}
	if _, err := cluster.Kube.SchedulingV1().PriorityClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	gang := func(name, class string) *frameworkv1.Framework {
		fw := jobs.MakeFramework(name).Retry(true, 0).Gang().Role("worker", 2, jobs.RunForever().CPU("4").Scheduler(testbed.GangScheduler)).Obj()
		fw.Spec.Gang.PriorityClassName = class
		var pod corev1.PodTemplateSpec
		if err := json.Unmarshal(fw.Spec.TaskRoles[0].Task.Pod.Raw, &pod); err != nil {
			t.Fatal(err)
		}
		pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: apart}
		pod.Spec.Tolerations = []corev1.Toleration{{Key: "apart", Operator: corev1.TolerationOpExists}}
		var err error
		if fw.Spec.TaskRoles[0].Task.Pod.Raw, err = json.Marshal(pod); err != nil {
			t.Fatal(err)
		}
		return fw
	}
	q.create(gang("low", ""))
	running := func(name string) {
		cluster.WaitFramework(t, q.namespace, name, "run", func(fw *frameworkv1.Framework) bool {
			return fw.Status != nil && fw.Status.Tasks != nil && fw.Status.Tasks.Running == 2
		})
	}
	running("low")
	q.setPolicy("Hold") // Who runs runs on, and nobody is admitted.
	if _, err := cluster.Lockstep.FrameworkcontrollerV1().Frameworks(q.namespace).Create(t.Context(), gang("high", class.Name), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	running("high")
	testbed.Eventually(t, "nothing of the quota to be in use", func(ctx context.Context) (bool, string, error) {
		out, err := cluster.Kubectl(ctx, "get", "clusterqueue", q.namespace, "-o", "jsonpath={.status.flavorsUsage[0].resources[0].total}")
		return out == "0", out, err
	})
	q.eventuallyWorkload("low", "Requeued")
	fw := cluster.WaitFrameworkState(t, q.namespace, "low", frameworkv1.FrameworkAttemptCreationPending)
	if end := fw.Status.History[0].CompletionStatus; end.Disruption != frameworkv1.DisruptionPreempted {
		t.Errorf("its attempt ended with %+v", end)
	}
	if err := cluster.Lockstep.FrameworkcontrollerV1().Frameworks(q.namespace).Delete(t.Context(), "high", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	q.resume()
	running("low")
}

// TestATrainingJobInAQueue is held by Kueue's webhook, begins when it is admitted, is suspended when the
// queue drains, and begins anew.
func TestATrainingJobInAQueue(t *testing.T) {
	t.Parallel()
	q := givenQueue(t, 3)
	manifest := `
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: train, labels: {kueue.x-k8s.io/queue-name: queue}}
spec:
  runPolicy: {schedulingPolicy: {}}
  tfReplicaSpecs:
    Worker:
      replicas: 3
      template: {spec: {containers: [{name: tensorflow, image: none, resources: {requests: {cpu: 1}}}]}}
`
	if out, err := cluster.KubectlApply(t.Context(), q.namespace, manifest); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	isNumber := func(want int) func(ctx context.Context) (bool, string, error) {
		return func(ctx context.Context) (bool, string, error) {
			pods, err := cluster.Kube.CoreV1().Pods(q.namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return false, "", err
			}
			running := 0
			for _, pod := range pods.Items {
				if pod.Status.Phase == corev1.PodRunning && pod.Spec.NodeSelector["flavour"] == "spot" {
					running++
				}
			}
			return running == want && len(pods.Items) == want, fmt.Sprintf("%d Pods, %d run on nodes of the quota", len(pods.Items), running), nil
		}
	}
	testbed.Eventually(t, "its Pods to run", isNumber(3))
	q.stop()
	testbed.Eventually(t, "its Pods to go", isNumber(0))
	testbed.Consistently(t, "no Pods", 2*time.Second, isNumber(0))
	q.resume()
	testbed.Eventually(t, "its Pods to run again", isNumber(3))
	q.eventuallyWorkload("train", "Admitted")
}
