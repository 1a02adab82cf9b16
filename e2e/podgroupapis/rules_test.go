//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroupapis

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

// rules turn all rules on.
const rules = "groupingRules: [Annotations, KueuePods, MinAvailable, JobSets, LeaderWorkerSets, Jobs]"

// gate is what Kueue holds Pods back by.
const gate = "kueue.x-k8s.io/admission"

// labelled has a Pod have labels, and annotated annotations.
func labelled(labels map[string]string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Labels = labels }
}

func annotated(annotations map[string]string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Annotations = annotations }
}

func gated(pod *corev1.Pod) { pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: gate}} }

// allowed returns a namespace whose owners make gangs. The namespace has the label from the beginning: the scheduler watches
// namespaces and Pods by two watches, so it might see a Pod before a label that came later, and place the Pod by itself.
func allowed(t *testing.T) string {
	t.Helper()
	return cluster.LabelledNamespace(t, map[string]string{schedulingv1alpha1.LabelGangByOwner: "true"})
}

// allow has owners of Pods in a namespace make gangs.
func allow(t *testing.T, namespace string) {
	t.Helper()
	patch := []byte(`{"metadata": {"labels": {"scheduling.lockstep.dev/gang-by-owner": "true"}}}`)
	if _, err := cluster.Kube.CoreV1().Namespaces().Patch(t.Context(), namespace, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// stays checks for a while that a number of Pods of a namespace have a node.
func stays(t *testing.T, namespace string, want int) {
	t.Helper()
	testbed.Consistently(t, fmt.Sprintf("%d Pods to be placed", want), 3*time.Second, func(ctx context.Context) (bool, string, error) {
		names, err := cluster.Placed(ctx, namespace)
		return len(names) == want, fmt.Sprint(names), err
	})
}

// ungate takes Kueue's gate from a Pod, as Kueue does.
func ungate(t *testing.T, namespace, name string) {
	t.Helper()
	if _, err := cluster.Kube.CoreV1().Pods(namespace).Patch(t.Context(), name, types.StrategicMergePatchType,
		[]byte(`{"spec": {"schedulingGates": [{"$patch": "delete", "name": "`+gate+`"}]}}`), metav1.PatchOptions{FieldManager: "kueue"}); err != nil {
		t.Fatal(err)
	}
}

// TestPodsAreAGangByWhatTheySay: none is placed before the last one has come.
func TestPodsAreAGangByWhatTheySay(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]func(*corev1.Pod){
		"annotations": annotated(map[string]string{"scheduling.lockstep.dev/group": "ring", "scheduling.lockstep.dev/min-member": "3"}),
		"the light form": labelled(map[string]string{"pod-group.scheduling.sigs.k8s.io/name": "ring",
			"pod-group.scheduling.sigs.k8s.io/min-available": "3"}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := cluster.Namespace(t)
			for i := range 2 {
				cluster.CreatePod(t, namespace, testbed.MakePod(fmt.Sprintf("ring-%d", i), says))
			}
			cluster.waitEvent(t, namespace, "ring-0", "NotEnoughTasks", "2 of at least 3 members exist")
			stays(t, namespace, 0)
			cluster.CreatePod(t, namespace, testbed.MakePod("ring-2", says))
			cluster.WaitPlaced(t, namespace, 3)
			cluster.waitEvent(t, namespace, "ring-0", "Scheduled", "members are bound")
		})
	}
}

// waitEvent waits for an event of a Pod.
func (c *testCluster) waitEvent(t *testing.T, namespace, pod, reason, message string) {
	t.Helper()
	c.WaitMessage(t, namespace, "involvedObject.kind=Pod,involvedObject.name="+pod+",reason="+reason, message)
}

// waitConditions waits until the conditions of a Pod contain a text, as a reason or in a message.
func (c *testCluster) waitConditions(t *testing.T, namespace, name, text string) {
	t.Helper()
	testbed.Eventually(t, fmt.Sprintf("the conditions of Pod %s to say …%s…", name, text), func(ctx context.Context) (bool, string, error) {
		pod, err := c.Kube.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		said := fmt.Sprint(pod.Status.Conditions)
		return strings.Contains(said, text), said, nil
	})
}

// TestTheMembersOfAGangSayDifferentMinima: the highest counts, and an event says so.
func TestTheMembersOfAGangSayDifferentMinima(t *testing.T) {
	t.Parallel()
	namespace := cluster.Namespace(t)
	for i, minimum := range []string{"2", "3"} {
		cluster.CreatePod(t, namespace, testbed.MakePod(fmt.Sprintf("ring-%d", i),
			annotated(map[string]string{"scheduling.lockstep.dev/group": "ring", "scheduling.lockstep.dev/min-member": minimum})))
	}
	cluster.waitEvent(t, namespace, "ring-0", "MinimaDiffer", "from 2 to 3")
	stays(t, namespace, 0)
}

// TestThePodsOfKueueArePlacedWhenAllAreAdmitted. Kueue admits the group, and takes the gates away
// one by one. What serves is placed one by one.
func TestThePodsOfKueueArePlacedWhenAllAreAdmitted(t *testing.T) {
	t.Parallel()
	queued := func(more map[string]string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "queue", "kueue.x-k8s.io/pod-group-name": "ring", "kueue.x-k8s.io/managed": "true"}
			pod.Annotations = map[string]string{"kueue.x-k8s.io/pod-group-total-count": "3", "kueue.x-k8s.io/role-hash": "a1b2c3d4"}
			maps.Copy(pod.Annotations, more)
		}
	}
	t.Run("a group", func(t *testing.T) {
		t.Parallel()
		namespace := cluster.Namespace(t)
		for i := range 3 {
			cluster.CreatePod(t, namespace, testbed.MakePod(fmt.Sprintf("ring-%d", i), queued(nil), gated))
		}
		ungate(t, namespace, "ring-0")
		ungate(t, namespace, "ring-1")
		cluster.waitEvent(t, namespace, "ring-0", "NotEnoughTasks", "2 of at least 3 members exist")
		stays(t, namespace, 0)
		ungate(t, namespace, "ring-2")
		cluster.WaitPlaced(t, namespace, 3)
	})
	t.Run("a group that serves", func(t *testing.T) {
		t.Parallel()
		namespace := cluster.Namespace(t)
		cluster.CreatePod(t, namespace, testbed.MakePod("web-0", queued(map[string]string{"kueue.x-k8s.io/pod-group-serving": "true"})))
		cluster.WaitPlaced(t, namespace, 1)
	})
}

// TestAGangWithAPodGroupUnderKueue: nothing is placed and no room is kept while members are gated,
// and none is kept when Kueue has deleted them.
func TestAGangWithAPodGroupUnderKueue(t *testing.T) {
	t.Parallel()
	room := cluster.Room(t, 8, 8, 8)
	namespace := cluster.Namespace(t)
	cluster.createGroupOfPlugins(t, namespace, "job", "TFJob", map[string]any{"minMember": int64(3)})
	for i := range 3 {
		cluster.CreatePod(t, namespace, testbed.MakePod(fmt.Sprintf("job-%d", i), testbed.WithCores(7), named(label, "job"), gated, room.Confine))
	}
	ungate(t, namespace, "job-0")
	ungate(t, namespace, "job-1")
	stays(t, namespace, 0)
	ungate(t, namespace, "job-2")
	cluster.WaitPlaced(t, namespace, 3)
	for i := range 3 {
		if err := cluster.Kube.CoreV1().Pods(namespace).Delete(t.Context(), fmt.Sprintf("job-%d", i), metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		cluster.CreatePod(t, namespace, testbed.MakePod(fmt.Sprintf("ordinary-%d", i), testbed.WithCores(7), room.Confine))
	}
	cluster.WaitPlaced(t, namespace, 3)
}

// TestAJobIsAGangWhereItsNamespaceSaysSo, and nowhere else. It is more than there is room for.
func TestAJobIsAGangWhereItsNamespaceSaysSo(t *testing.T) {
	t.Parallel()
	room := cluster.Room(t, 8, 8, 8)
	job := func() *batchv1.Job {
		template := testbed.MakePod("job", testbed.WithCores(7), room.Confine)
		template.Spec.RestartPolicy = corev1.RestartPolicyNever
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job"}, Spec: batchv1.JobSpec{
			Parallelism: ptr.To[int32](4), Completions: ptr.To[int32](4),
			Template: corev1.PodTemplateSpec{Spec: template.Spec},
		}}
	}
	with, without := allowed(t), cluster.Namespace(t)
	if _, err := cluster.Kube.BatchV1().Jobs(with).Create(t.Context(), job(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	cluster.WaitMessage(t, with, "reason=NotEnoughResources", "there is room for 3 of the 4 members that are needed")
	stays(t, with, 0)
	if _, err := cluster.Kube.BatchV1().Jobs(without).Create(t.Context(), job(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	cluster.WaitPlaced(t, without, 3)
	if err := cluster.Kube.BatchV1().Jobs(without).Delete(t.Context(), "job", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)}); err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Kube.BatchV1().Jobs(with).Patch(t.Context(), "job", types.MergePatchType, []byte(`{"spec": {"parallelism": 3}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	cluster.WaitPlaced(t, with, 3)
}

// TestTheLabelOfANamespaceMayComeLater: a Job whose Pods wait is a gang from then on.
func TestTheLabelOfANamespaceMayComeLater(t *testing.T) {
	t.Parallel()
	namespace := cluster.Namespace(t)
	pod := testbed.MakePod("job", testbed.WithCores(9))
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job"}, Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](2), Template: corev1.PodTemplateSpec{Spec: pod.Spec}}}
	if _, err := cluster.Kube.BatchV1().Jobs(namespace).Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	cluster.WaitMessage(t, namespace, "", " nodes are available: ")
	allow(t, namespace)
	cluster.WaitMessage(t, namespace, "", "of the 2 members that are needed")
}

// TestAPodWaitsForThePodGroupOfAnOwnerThatIsNotThere, and says so.
func TestAPodWaitsForThePodGroupOfAnOwnerThatIsNotThere(t *testing.T) {
	t.Parallel()
	namespace := allowed(t)
	cluster.CreatePod(t, namespace, testbed.MakePod("lost", labelled(map[string]string{"batch.kubernetes.io/controller-uid": "none"})))
	cluster.waitConditions(t, namespace, "lost", "PodGroupNotFound")
	stays(t, namespace, 0)
}

// ownerKind is a kind of owners that make gangs by a rule.
type ownerKind struct{ group, version, kind string }

var (
	jobSets          = ownerKind{"jobset.x-k8s.io", "v1alpha2", "JobSet"}
	leaderWorkerSets = ownerKind{"leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet"}
)

func (k ownerKind) plural() string { return strings.ToLower(k.kind) + "s" }

// install installs the kind, with any fields.
func (k ownerKind) install(ctx context.Context) error {
	return cluster.installKind(ctx, fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[1]s.%[2]s
  annotations: {api-approved.kubernetes.io: "unapproved, of a test"}
spec:
  group: %[2]s
  names: {plural: %[1]s, singular: %[4]s, kind: %[5]s}
  scope: Namespaced
  versions:
  - name: %[3]s
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, k.plural(), k.group, k.version, strings.ToLower(k.kind), k.kind), k.plural()+"."+k.group)
}

// create creates an object of the kind, and returns its UID.
func (k ownerKind) create(t *testing.T, namespace, name string, spec map[string]any) types.UID {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": k.group + "/" + k.version, "kind": k.kind, "spec": spec}}
	object.SetName(name)
	client := cluster.objects.Resource(schema.GroupVersionResource{Group: k.group, Version: k.version, Resource: k.plural()})
	made, err := client.Namespace(namespace).Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made.GetUID()
}

// TestAJobSetIsAGang, whose kind is installed when the programs run already.
func TestAJobSetIsAGang(t *testing.T) {
	t.Parallel()
	jobsOf := func(more map[string]any) map[string]any {
		worker := map[string]any{"name": "worker", "replicas": int64(2), "template": map[string]any{"spec": map[string]any{"parallelism": int64(1), "completions": int64(1)}}}
		maps.Copy(worker, more)
		return map[string]any{"replicatedJobs": []any{
			map[string]any{"name": "driver", "replicas": int64(1), "template": map[string]any{"spec": map[string]any{"parallelism": int64(1)}}}, worker}}
	}
	member := func(namespace, name string, uid types.UID, role, key string) {
		t.Helper()
		cluster.CreatePod(t, namespace, testbed.MakePod(name, labelled(map[string]string{"jobset.sigs.k8s.io/jobset-name": "set", "jobset.sigs.k8s.io/jobset-uid": string(uid),
			"jobset.sigs.k8s.io/restart-attempt": "0", "jobset.sigs.k8s.io/replicatedjob-name": role, "jobset.sigs.k8s.io/job-key": key, "batch.kubernetes.io/controller-uid": "of-" + key})))
	}
	t.Run("as a whole", func(t *testing.T) {
		t.Parallel()
		namespace := allowed(t)
		uid := jobSets.create(t, namespace, "set", jobsOf(nil))
		member(namespace, "set-driver-0", uid, "driver", "d")
		member(namespace, "set-worker-0", uid, "worker", "w0")
		stays(t, namespace, 0)
		member(namespace, "set-worker-1", uid, "worker", "w1")
		cluster.WaitPlaced(t, namespace, 3)
	})
	t.Run("job by job, if one waits for another", func(t *testing.T) {
		t.Parallel()
		namespace := allowed(t)
		uid := jobSets.create(t, namespace, "set", jobsOf(map[string]any{"dependsOn": []any{map[string]any{"name": "driver", "status": "Ready"}}}))
		member(namespace, "set-driver-0", uid, "driver", "d")
		cluster.WaitPlaced(t, namespace, 1)
	})
}

// TestAReplicaOfALeaderWorkerSetIsAGang, unless its workers wait for the leader.
func TestAReplicaOfALeaderWorkerSetIsAGang(t *testing.T) {
	t.Parallel()
	member := func(namespace string, index int) {
		t.Helper()
		cluster.CreatePod(t, namespace, testbed.MakePod(fmt.Sprintf("serve-0-%d", index), labelled(map[string]string{"leaderworkerset.sigs.k8s.io/name": "serve",
			"leaderworkerset.sigs.k8s.io/group-key": "abc", "leaderworkerset.sigs.k8s.io/group-index": "0", "leaderworkerset.sigs.k8s.io/worker-index": fmt.Sprint(index),
			"leaderworkerset.sigs.k8s.io/template-revision-hash": "r1"}), annotated(map[string]string{"leaderworkerset.sigs.k8s.io/size": "2"})))
	}
	t.Run("whose Pods come together", func(t *testing.T) {
		t.Parallel()
		namespace := allowed(t)
		leaderWorkerSets.create(t, namespace, "serve", map[string]any{"startupPolicy": "LeaderCreated"})
		member(namespace, 0)
		stays(t, namespace, 0)
		member(namespace, 1)
		cluster.WaitPlaced(t, namespace, 2)
	})
	t.Run("whose workers wait for the leader", func(t *testing.T) {
		t.Parallel()
		namespace := allowed(t)
		leaderWorkerSets.create(t, namespace, "serve", map[string]any{"startupPolicy": "LeaderReady"})
		member(namespace, 0)
		cluster.WaitPlaced(t, namespace, 1)
	})
}
