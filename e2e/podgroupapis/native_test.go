//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroupapis

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/e2e/podgroupapis/pages"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

// TestAGangOfKubernetesRuns: it is placed when its last member comes, says so for good, and nothing
// else of it is changed.
func TestAGangOfKubernetesRuns(t *testing.T) {
	cluster := withNative.parallel(t)
	namespace := cluster.Namespace(t)
	cluster.createNativeGroup(t, namespace, "jg", nativeGang(4))
	for i := range 3 {
		cluster.CreatePod(t, namespace, testbed.MakePod(fmt.Sprintf("jg-%d", i), inNativeGroup("jg"), runsFor(3)))
	}
	cluster.waitSays(t, namespace, "jg", "PodGroupInitiallyScheduled=False Unschedulable: NotEnoughTasks: 3 of at least 4 members exist")
	cluster.isPlaced(t, namespace, 0)
	cluster.CreatePod(t, namespace, testbed.MakePod("jg-3", inNativeGroup("jg"), runsFor(3)))
	cluster.WaitPlaced(t, namespace, 4)
	cluster.waitSays(t, namespace, "jg", "PodGroupInitiallyScheduled=True Scheduled: ")
	testbed.Eventually(t, "its Pods to end", func(ctx context.Context) (bool, string, error) {
		pods, err := cluster.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Succeeded"})
		if err != nil {
			return false, "", err
		}
		return len(pods.Items) == 4, fmt.Sprint(len(pods.Items)), nil
	})
	for i := range 4 {
		cluster.DeletePod(t, namespace, fmt.Sprintf("jg-%d", i))
	}
	cluster.CreatePod(t, namespace, testbed.MakePod("jg-4", inNativeGroup("jg")))
	cluster.WaitMessage(t, namespace, "involvedObject.kind=PodGroup", "1 of at least 4 members exist")
	cluster.isPlaced(t, namespace, 0)
	group := cluster.waitSays(t, namespace, "jg", "PodGroupInitiallyScheduled=True Scheduled: ")
	if got := group.Spec.SchedulingPolicy.Gang; got == nil || got.MinCount != 4 || len(group.Labels) != 0 || len(group.Annotations) != 0 {
		t.Errorf("the group is %+v, and was changed", group)
	}
	for _, fields := range group.ManagedFields {
		if fields.Manager != "tool" && (fields.Manager != "lockstep-scheduler" || fields.Subresource != "status" || fields.Operation != metav1.ManagedFieldsOperationApply) {
			t.Errorf("%s has written the group by %s, subresource %q", fields.Manager, fields.Operation, fields.Subresource)
		}
	}
}

// TestAGangOfKubernetesWaitsForRoomOfAll, and for fewer when its minimum is lowered.
func TestAGangOfKubernetesWaitsForRoomOfAll(t *testing.T) {
	cluster := withNative.parallel(t)
	room := cluster.Room(t, 3)
	namespace := cluster.Namespace(t)
	cluster.createNativeGroup(t, namespace, "large", nativeGang(4))
	for i := range 4 {
		cluster.CreatePod(t, namespace, testbed.MakePod(fmt.Sprintf("large-%d", i), inNativeGroup("large"), room.Confine))
	}
	cluster.waitSays(t, namespace, "large", "PodGroupInitiallyScheduled=False Unschedulable: NotEnoughResources: ")
	cluster.isPlaced(t, namespace, 0)
	patch := []byte(`{"spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}}`)
	if _, err := cluster.Kube.SchedulingV1beta1().PodGroups(namespace).Patch(t.Context(), "large", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	cluster.WaitPlaced(t, namespace, 3)
	cluster.waitSays(t, namespace, "large", "PodGroupInitiallyScheduled=True Scheduled: ")
}

// TestAnOrdinaryGroupOfKubernetes: its Pods wait for the group, and then not for each other.
func TestAnOrdinaryGroupOfKubernetes(t *testing.T) {
	cluster := withNative.parallel(t)
	namespace := cluster.Namespace(t)
	cluster.CreatePod(t, namespace, testbed.MakePod("early", inNativeGroup("loose")))
	cluster.waitConditions(t, namespace, "early", "PodGroupNotFound")
	cluster.createNativeGroup(t, namespace, "loose", nativeBasic())
	cluster.CreatePod(t, namespace, testbed.MakePod("large", testbed.WithCores(9), inNativeGroup("loose")))
	cluster.CreatePod(t, namespace, testbed.MakePod("late", inNativeGroup("loose")))
	cluster.WaitPlaced(t, namespace, 2)
	cluster.waitSays(t, namespace, "loose", "PodGroupInitiallyScheduled=True Scheduled: ")
}

// TestAGangOfKubernetesInOneDomain, though there is room for its Pods on other nodes.
func TestAGangOfKubernetesInOneDomain(t *testing.T) {
	cluster := withNative.parallel(t)
	room := cluster.Room(t)
	for _, node := range []struct {
		cores int
		rack  string
	}{{3, "a"}, {2, "b"}, {2, "b"}} {
		room.AddNode(node.cores, map[string]string{"tests.lockstep.dev/rack": node.rack})
	}
	namespace := cluster.Namespace(t)
	for name, policy := range map[string]schedulingv1beta1.PodGroupSpec{"gang": nativeGang(4), "basic": nativeBasic()} {
		policy.SchedulingConstraints = &schedulingv1beta1.PodGroupSchedulingConstraints{
			Topology: []schedulingv1beta1.TopologyConstraint{{Key: "tests.lockstep.dev/rack"}}}
		cluster.createNativeGroup(t, namespace, name, policy)
	}
	for i := range 4 {
		cluster.CreatePod(t, namespace, testbed.MakePod(fmt.Sprintf("gang-%d", i), inNativeGroup("gang"), room.Confine))
	}
	cluster.WaitPlaced(t, namespace, 4)
	for i := range 4 {
		cluster.CreatePod(t, namespace, testbed.MakePod(fmt.Sprintf("basic-%d", i), inNativeGroup("basic"), room.Confine))
	}
	cluster.WaitPlaced(t, namespace, 7)
	pods, err := cluster.Kube.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	racks := make(map[string]map[string]int)
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Spec.NodeName == "" {
			continue
		}
		node, err := cluster.Kube.CoreV1().Nodes().Get(t.Context(), pod.Spec.NodeName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		group := *pod.Spec.SchedulingGroup.PodGroupName
		if racks[group] == nil {
			racks[group] = make(map[string]int)
		}
		racks[group][node.Labels["tests.lockstep.dev/rack"]]++
	}
	if racks["gang"]["b"] != 4 || racks["basic"]["a"] != 3 {
		t.Errorf("the Pods are in the racks %v, want 4 of the gang in b, and 3 of the others in a", racks)
	}
}

// TestAGangOfKubernetesIsPreemptedAsAWhole, if its group has the disruption mode All. The scheduler reports the
// preemption in the group's status.
func TestAGangOfKubernetesIsPreemptedAsAWhole(t *testing.T) {
	cluster := withNative.parallel(t)
	const class = "native-high"
	cluster.CreateClass(t, class, 100)
	room := cluster.Room(t, 2)
	namespace := cluster.Namespace(t)
	low := nativeGang(2)
	low.DisruptionMode = &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}}
	cluster.createNativeGroup(t, namespace, "low", low)
	for i := range 2 {
		cluster.CreatePod(t, namespace, testbed.MakePod(fmt.Sprintf("low-%d", i), inNativeGroup("low"), room.Confine))
	}
	cluster.waitSays(t, namespace, "low", "PodGroupInitiallyScheduled=True")
	high := nativeGang(1)
	high.PriorityClassName = class
	cluster.createNativeGroup(t, namespace, "high", high)
	cluster.CreatePod(t, namespace, testbed.MakePod("high-0", inNativeGroup("high"), room.Confine, func(pod *corev1.Pod) { pod.Spec.PriorityClassName = class }))
	cluster.waitSays(t, namespace, "high", "PodGroupInitiallyScheduled=True")
	group := cluster.waitSays(t, namespace, "low", "DisruptionTarget=True PreemptionByScheduler: ")
	if said := sayings(group); !strings.HasPrefix(said[0], "PodGroupInitiallyScheduled=True") {
		t.Errorf("it says %q, and it was placed once", said)
	}
	cluster.WaitPlaced(t, namespace, 1)
}

// TestAGroupOfKubernetesThatIsDeletedStartsNothing, and goes when its Pods have gone: the API server
// keeps it until then.
func TestAGroupOfKubernetesThatIsDeletedStartsNothing(t *testing.T) {
	cluster := withNative.parallel(t)
	namespace := cluster.Namespace(t)
	groups := cluster.Kube.SchedulingV1beta1().PodGroups(namespace)
	cluster.createNativeGroup(t, namespace, "going", nativeGang(2))
	for i := range 2 {
		cluster.CreatePod(t, namespace, testbed.MakePod(fmt.Sprintf("going-%d", i), inNativeGroup("going")))
	}
	cluster.WaitPlaced(t, namespace, 2)
	if err := groups.Delete(t.Context(), "going", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// going-2 fits on no node, so it waits even if the scheduler sees it before it sees the deletion. Once its condition
	// names the deletion, the scheduler has seen that, and going-3 must wait, which fits.
	cluster.CreatePod(t, namespace, testbed.MakePod("going-2", inNativeGroup("going"), func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("100k")
	}))
	cluster.waitConditions(t, namespace, "going-2", "the PodGroup is being deleted")
	cluster.CreatePod(t, namespace, testbed.MakePod("going-3", inNativeGroup("going")))
	cluster.waitConditions(t, namespace, "going-3", "the PodGroup is being deleted")
	group, err := groups.Get(t.Context(), "going", metav1.GetOptions{})
	if err != nil || group.DeletionTimestamp == nil {
		t.Fatalf("the group is %+v (%v), want it to wait for its Pods", group, err)
	}
	cluster.isPlaced(t, namespace, 2)
	for i := range 4 {
		cluster.DeletePod(t, namespace, fmt.Sprintf("going-%d", i))
	}
	testbed.Eventually(t, "the group to be gone", func(ctx context.Context) (bool, string, error) {
		_, err := groups.Get(ctx, "going", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, "", nil
		}
		return false, "it is there", err
	})
}

// TestAGroupOfKubernetesThatSharesClaimsIsTold: the status says that lockstep-scheduler does not support shared claims.
func TestAGroupOfKubernetesThatSharesClaimsIsTold(t *testing.T) {
	cluster := withNative.parallel(t)
	namespace := cluster.Namespace(t)
	claim := "shared"
	spec := nativeGang(1)
	spec.ResourceClaims = []schedulingv1beta1.PodGroupResourceClaim{{Name: "shared", ResourceClaimName: &claim}}
	cluster.createNativeGroup(t, namespace, "claims", spec)
	cluster.CreatePod(t, namespace, testbed.MakePod("claims-0", inNativeGroup("claims")))
	cluster.waitSays(t, namespace, "claims", "PodGroupInitiallyScheduled=False SchedulerError: lockstep-scheduler does not support spec.resourceClaims")
	cluster.isPlaced(t, namespace, 0)
}

// TestAJobOfKubernetesIsAGang, or not, as its spec has it: kube-controller-manager makes the groups.
func TestAJobOfKubernetesIsAGang(t *testing.T) {
	cluster := withNative.parallel(t)
	for name, tc := range map[string]struct {
		scheduling string
		want       int
	}{
		"gang":               {"scheduling: {schedulingPolicy: {gang: {minCount: 4}}}", 0},
		"basic":              {"scheduling: {schedulingPolicy: {basic: {}}}", 3},
		"nothing said of it": {"", 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			room := cluster.Room(t, 3)
			namespace := cluster.Namespace(t)
			template := testbed.MakePod("", room.Confine)
			out, err := cluster.KubectlApply(t.Context(), namespace, fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: job}
spec:
  parallelism: 4
  completions: 4
  completionMode: Indexed
  %s
  template:
    spec:
      schedulerName: %s
      restartPolicy: Never
      nodeSelector: {%s}
      tolerations: [{operator: Exists}]
      containers: [{name: main, image: lockstep.dev/simulated:any, resources: {requests: {cpu: 1}}}]
`, tc.scheduling, testbed.GangScheduler, flow(template.Spec.NodeSelector)))
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			says := "PodGroupInitiallyScheduled=True"
			if tc.want == 0 {
				says = "PodGroupInitiallyScheduled=False Unschedulable: NotEnoughResources: "
			}
			testbed.Eventually(t, "a group of the Job to say "+says, func(ctx context.Context) (bool, string, error) {
				groups, err := cluster.Kube.SchedulingV1beta1().PodGroups(namespace).List(ctx, metav1.ListOptions{})
				if err != nil || len(groups.Items) != 1 {
					return false, "no group", err
				}
				said := strings.Join(sayings(&groups.Items[0]), "; ")
				return strings.HasPrefix(said, says), said, nil
			})
			cluster.WaitPlaced(t, namespace, tc.want)
			room.AddNode(1, nil)
			cluster.WaitPlaced(t, namespace, 4)
		})
	}
}

// TestWhatThePageOfKubernetesShowsIsSo makes the objects of its examples.
func TestWhatThePageOfKubernetesShowsIsSo(t *testing.T) {
	cluster := withNative.parallel(t)
	for name, example := range pages.Of(t, "../../docs/tools/kubernetes.md") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			example.Check(t, cluster.Cluster, cluster.Namespace(t))
		})
	}
}

// flow is a map in YAML's flow style.
func flow(m map[string]string) string {
	var entries []string
	for key, value := range m {
		entries = append(entries, key+": "+value)
	}
	return strings.Join(entries, ", ")
}

// TestWithoutPodGroupsThePodsAreOrdinary: an API server that does not serve PodGroups of Kubernetes drops what Pods say
// of such groups.
func TestWithoutPodGroupsThePodsAreOrdinary(t *testing.T) {
	t.Parallel()
	cluster.waitLog(t, "the API server does not serve it: its feature gate GenericWorkload")
	namespace := cluster.Namespace(t)
	cluster.CreatePod(t, namespace, testbed.MakePod("ordinary", inNativeGroup("dropped")))
	testbed.Eventually(t, "the Pod to be placed", func(ctx context.Context) (bool, string, error) {
		pod, err := cluster.Kube.CoreV1().Pods(namespace).Get(ctx, "ordinary", metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		if pod.Spec.SchedulingGroup != nil {
			t.Fatalf("the Pod names the group %s", *pod.Spec.SchedulingGroup.PodGroupName)
		}
		return pod.Spec.NodeName != "", "", nil
	})
}
