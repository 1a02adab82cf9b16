// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/answers"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

const gpu = "nvidia.com/gpu"

// noon is when all tests ask.
var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// key is that of a gang in the namespace that all are in but for those that say another.
func key(name string) dialect.Key {
	namespace, rest, found := strings.Cut(name, "/")
	if !found {
		namespace, rest = "team", name
	}
	return dialect.Key{Namespace: namespace, Name: rest}
}

// node offers some CPU and room for ten Pods, and more as change says.
func node(name, cpu string, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourcePods: resource.MustParse("10")}
	for _, c := range change {
		c(n)
	}
	return n
}

func gpus(n string) func(*corev1.Node) {
	return func(node *corev1.Node) { node.Status.Allocatable[gpu] = resource.MustParse(n) }
}

func tainted(taint string) func(*corev1.Node) {
	return func(node *corev1.Node) {
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: taint, Effect: corev1.TaintEffectNoSchedule})
	}
}

func inRack(rack string) func(*corev1.Node) {
	return func(node *corev1.Node) { node.Labels["rack"] = rack }
}

// gangOf is a group whose minimum is all of n Pods, and these, of which each asks for a CPU.
func gangOf(name string, n int, change ...func(*corev1.Pod)) (*dialect.Group, []*corev1.Pod) {
	k := key(name)
	group := &dialect.Group{Key: k, UID: types.UID(name), Created: noon.Add(-time.Hour),
		Spec: dialect.Spec{Minimum: podgroup.Minimum{Members: int32(n)}, DisruptionMode: schedulingv1alpha1.DisruptGang}}
	var pods []*corev1.Pod
	for i := range n {
		pod := ordinary(fmt.Sprintf("%s-%d", k.Name, i), "1", change...)
		pod.Namespace, pod.Labels = k.Namespace, map[string]string{schedulingv1alpha1.LabelPodGroup: k.Name}
		pods = append(pods, pod)
	}
	return group, pods
}

// ordinary is a Pod that asks for some CPU.
func ordinary(name, cpu string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name)}}
	pod.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}
	pod.Status.Phase = corev1.PodPending
	for _, c := range change {
		c(pod)
	}
	return pod
}

func asking(name corev1.ResourceName, n string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Resources.Requests[name] = resource.MustParse(n)
	}
}

func priority(n int32) func(*corev1.Pod) { return func(pod *corev1.Pod) { pod.Spec.Priority = &n } }

func on(node string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.NodeName, pod.Status.Phase = node, corev1.PodRunning }
}

func ofDaemonSet(pod *corev1.Pod) {
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "agents", Controller: new(true)}}
}

// cluster is a Snapshot of some nodes, Pods and one gang.
func cluster(nodes []*corev1.Node, group *dialect.Group, pods ...*corev1.Pod) *Snapshot {
	return &Snapshot{Now: noon, Nodes: nodes, Groups: []*dialect.Group{group}, Pods: pods}
}

func TestWhyAGangIsNotPlacedIsOneReason(t *testing.T) {
	tests := map[string]struct {
		snapshot    func() *Snapshot
		want        answers.Reason
		wantMessage string
		wantNext    string
	}{
		"no node has a GPU": {
			snapshot: func() *Snapshot {
				group, pods := gangOf("train", 2, asking(gpu, "4"))
				return cluster([]*corev1.Node{node("a", "8"), node("b", "8")}, group, pods...)
			},
			want:        answers.ReasonNotEnoughResources,
			wantMessage: "there is room for 0 of the 2 members that are needed; they need 8 more nvidia.com/gpu, and no node that may hold them has any",
			wantNext:    "add nodes with nvidia.com/gpu",
		},
		"one of two nodes has GPUs, and they do not suffice": {
			snapshot: func() *Snapshot {
				group, pods := gangOf("train", 2, asking(gpu, "4"))
				return cluster([]*corev1.Node{node("a", "8", gpus("4")), node("b", "8")}, group, pods...)
			},
			want:        answers.ReasonNotEnoughResources,
			wantMessage: "there is room for 1 of the 2 members that are needed; they need 4 more nvidia.com/gpu, and only 1 of 2 nodes has any; if nothing else ran, there would be room for 1",
			wantNext:    "add nodes, or ask for less",
		},
		"no node is large enough": {
			snapshot: func() *Snapshot {
				group, pods := gangOf("train", 3, asking(corev1.ResourceCPU, "64"))
				return cluster([]*corev1.Node{node("a", "8"), node("b", "16"), node("c", "8")}, group, append(pods, ordinary("agent", "1", on("b"), ofDaemonSet))...)
			},
			want:        answers.ReasonNotEnoughResources,
			wantMessage: "there is room for 0 of the 3 members that are needed; no node is large enough: a member asks for 64 cpu, and a node has at most 15",
			wantNext:    "ask for less, or add nodes with at least 64 cpu",
		},
		"no node is large enough for one role": {
			snapshot: func() *Snapshot {
				group, pods := gangOf("train", 2)
				pods[1].Labels[schedulingv1alpha1.LabelRole] = "ps"
				pods[1].Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("9")
				return cluster([]*corev1.Node{node("a", "8")}, group, pods...)
			},
			want:        answers.ReasonNotEnoughResources,
			wantMessage: "there is room for 1 of the 2 members that are needed; no node is large enough: a member of role ps asks for 9 cpu, and a node has at most 8",
			wantNext:    "ask for less, or add nodes with at least 9 cpu",
		},
		"the nodes have enough of each resource, and none of all": {
			snapshot: func() *Snapshot {
				group, pods := gangOf("train", 1, asking(corev1.ResourceCPU, "8"), asking(gpu, "4"))
				return cluster([]*corev1.Node{node("a", "8", gpus("1")), node("b", "4", gpus("4"))}, group, pods...)
			},
			want:        answers.ReasonNotEnoughResources,
			wantMessage: "there is room for 0 of the 1 members that are needed; no node is large enough for a member",
			wantNext:    "ask for less, or add larger nodes",
		},
		"all nodes together are too few": {
			snapshot: func() *Snapshot {
				group, pods := gangOf("train", 3, asking(corev1.ResourceCPU, "8"))
				return cluster([]*corev1.Node{node("a", "8"), node("b", "8")}, group, append(pods, ordinary("other", "1", on("a")))...)
			},
			want:        answers.ReasonNotEnoughResources,
			wantMessage: "there is room for 1 of the 3 members that are needed; they need 16 more cpu; if nothing else ran, there would be room for 2",
			wantNext:    "add nodes, or ask for less: the nodes that may hold the gang are too few even when nothing else runs",
		},
		"there is room when other work has ended": {
			snapshot: func() *Snapshot {
				group, pods := gangOf("train", 2, asking(corev1.ResourceCPU, "8"))
				return cluster([]*corev1.Node{node("a", "8"), node("b", "8")}, group, append(pods, ordinary("other", "1", on("a")))...)
			},
			want:        answers.ReasonNotEnoughResources,
			wantMessage: "there is room for 1 of the 2 members that are needed; they need 8 more cpu",
			wantNext:    "wait until other work ends, add nodes, or ask for less",
		},
		"no node has the label of its topology": {
			snapshot: func() *Snapshot {
				group, pods := gangOf("train", 1)
				group.Spec.Topology = []schedulingv1alpha1.TopologyConstraint{{Key: "example.com/rack", Mode: schedulingv1alpha1.TopologyRequired}}
				return cluster([]*corev1.Node{node("a", "8")}, group, pods...)
			},
			want:        answers.ReasonNotEnoughResources,
			wantMessage: "there is room for 0 of the 1 members that are needed; no node that may hold them has the label example.com/rack",
			wantNext:    "label the nodes with example.com/rack, or change the topology of the gang",
		},
		"the scheduler has said that it does not serve the Pods' scheduler": {
			snapshot: func() *Snapshot {
				group, pods := gangOf("train", 1, func(pod *corev1.Pod) { pod.Spec.SchedulerName = "lockstep-sheduler" })
				group.Conditions = refused("NotEnoughTasks", "0 of at least 1 members exist; 1 more wait for the scheduler lockstep-sheduler, which is not served here")
				return cluster([]*corev1.Node{node("a", "8")}, group, pods...)
			},
			want:        answers.ReasonNotEnoughTasks,
			wantMessage: "the scheduler has said: 0 of at least 1 members exist; 1 more wait for the scheduler lockstep-sheduler, which is not served here",
			wantNext:    "is lockstep-sheduler the schedulerName that is meant?",
		},
		"a taint keeps it off all nodes": {
			snapshot: func() *Snapshot {
				group, pods := gangOf("train", 1)
				return cluster([]*corev1.Node{node("a", "8", tainted("dedicated"))}, group, pods...)
			},
			want:        answers.ReasonNotEnoughResources,
			wantMessage: "there is room for 0 of the 1 members that are needed; none of 1 node may hold them: the taint dedicated:NoSchedule is not tolerated",
			wantNext:    "change the Pods' node selector or tolerations",
		},
		"Pods are missing": {
			snapshot: func() *Snapshot {
				group, pods := gangOf("train", 3)
				return cluster([]*corev1.Node{node("a", "8")}, group, pods[:2]...)
			},
			want: answers.ReasonNotEnoughTasks, wantMessage: "2 of the 3 members that are needed exist", wantNext: "create more Pods",
		},
		"Pods have gates": {
			snapshot: func() *Snapshot {
				group, pods := gangOf("train", 3)
				pods[2].Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/admission"}}
				return cluster([]*corev1.Node{node("a", "8")}, group, pods...)
			},
			want: answers.ReasonNotEnoughTasks, wantMessage: "2 of the 3 members that are needed exist; 1 more wait for their scheduling gates",
			wantNext: "wait until the scheduling gates are removed",
		},
		"Pods are ending": {
			snapshot: func() *Snapshot {
				group, pods := gangOf("train", 2, on("a"))
				pods[1].DeletionTimestamp = &metav1.Time{Time: noon}
				return cluster([]*corev1.Node{node("a", "8")}, group, pods...)
			},
			want: answers.ReasonNotEnoughTasks, wantMessage: "0 of the 1 members that are needed exist; 1 more is ending", wantNext: "wait until these Pods have ended",
		},
		"an image can't be pulled": {
			snapshot: func() *Snapshot {
				group, pods := gangOf("train", 2, on("a"))
				pods[1].Status.Phase = corev1.PodPending
				pods[1].Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
					Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "Back-off\x1b[31m pulling"}}}}
				return cluster([]*corev1.Node{node("a", "8")}, group, pods...)
			},
			want:        answers.ReasonContainers,
			wantMessage: "all that is needed has a node, and 1 task waits: ImagePullBackOff, such as train-1: Back-off [31m pulling",
			wantNext:    "look at the name of the image",
		},
		"it runs": {
			snapshot: func() *Snapshot {
				group, pods := gangOf("train", 2, on("a"))
				return cluster([]*corev1.Node{node("a", "8")}, group, pods...)
			},
			want: answers.ReasonPlaced, wantMessage: "the gang is placed: 2 members have a node or have succeeded, and 2 are needed",
		},
		"all have ended": {
			snapshot: func() *Snapshot {
				group, pods := gangOf("train", 1, on("a"))
				pods[0].Status.Phase = corev1.PodSucceeded
				return cluster(nil, group, pods...)
			},
			want: answers.ReasonEnded, wantMessage: "all 1 members have ended",
		},
		"others may be evicted": {
			snapshot: func() *Snapshot {
				group, pods := gangOf("train", 1, priority(5))
				return cluster([]*corev1.Node{node("a", "1")}, group, append(pods, ordinary("other", "1", on("a")))...)
			},
			want:        answers.ReasonPreempting,
			wantMessage: "there is room for 0 of the 1 members that are needed; they need 1 more cpu; there is room if 1 Pod of lower priority is evicted",
		},
		"the scheduler knows what is not checked here": {
			snapshot: func() *Snapshot {
				group, pods := gangOf("train", 1, func(pod *corev1.Pod) {
					pod.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{
						PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}}}
				})
				group.Conditions = refused("NotEnoughResources", "no node has the volume")
				return cluster([]*corev1.Node{node("a", "1")}, group, pods...)
			},
			want: answers.ReasonNotEnoughResources, wantMessage: "there would be room by what is checked here, and the scheduler has said: no node has the volume",
			wantNext: "ask for less or add nodes, unless",
		},
		"resources are reserved for a gang ahead": {
			snapshot: func() *Snapshot {
				group, pods := gangOf("train", 1)
				group.Conditions = refused("NotEnoughResources", "short of 1 cpu; resources are reserved for a gang of priority 5 in another namespace, which is ahead")
				return cluster([]*corev1.Node{node("a", "1")}, group, pods...)
			},
			want:        answers.ReasonNotEnoughResources,
			wantMessage: "a gang ahead needs the room; the scheduler says: short of 1 cpu; resources are reserved for a gang of priority 5 in another namespace, which is ahead",
			wantNext:    "wait, or raise",
		},
		"all is checked here, and room has come since the scheduler looked": {
			snapshot: func() *Snapshot {
				group, pods := gangOf("train", 1)
				group.Conditions = refused("NotEnoughResources", "short of 1 cpu")
				return cluster([]*corev1.Node{node("a", "1")}, group, pods...)
			},
			want: answers.ReasonNext, wantMessage: "there is room: 1 of 1 members have room, on 1 node. The gang is about to be planned", wantNext: "if this lasts",
		},
		"there is no such group": {
			snapshot: func() *Snapshot { return &Snapshot{Now: noon} },
			want:     answers.ReasonNotFound, wantMessage: "there is no PodGroup team/train", wantNext: "look at the name",
		},
		"there is room": {
			snapshot: func() *Snapshot {
				group, pods := gangOf("train", 1)
				return cluster([]*corev1.Node{node("a", "1")}, group, pods...)
			},
			want: answers.ReasonNext, wantMessage: "there is room: 1 of 1 members have room, on 1 node. The gang is about to be planned",
			wantNext: "if this lasts",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := tc.snapshot()
			got := Why(s, key("train"))
			if got.Reason != tc.want || got.Message != tc.wantMessage {
				t.Errorf("%s: %s\nwant %s: %s", got.Reason, got.Message, tc.want, tc.wantMessage)
			}
			if !strings.HasPrefix(got.Next, tc.wantNext) || tc.wantNext == "" && got.Next != "" {
				t.Errorf("the next step is %q, want %q", got.Next, tc.wantNext)
			}
		})
	}
}

// refused are the conditions of a gang that the scheduler has refused.
func refused(reason, message string) []schedulingv1alpha1.PodGroupCondition {
	return []schedulingv1alpha1.PodGroupCondition{{Type: schedulingv1alpha1.ConditionUnschedulable, Status: metav1.ConditionTrue, Reason: reason, Message: message}}
}

// TestAGroupWhosePodsAreToComeWhenThereIsRoomLacksRoom, and no Pods.
func TestAGroupWhosePodsAreToComeWhenThereIsRoomLacksRoom(t *testing.T) {
	group, _ := gangOf("train", 2)
	group.Key.Dialect, group.Status = dialect.Volcano, &dialect.Status{Phase: dialect.PhasePending}
	group.Conditions = refused(schedulingv1alpha1.ReasonNotEnoughResources, "there is no room for what the group asks for")
	s := cluster(nil, group)
	if got := Why(s, group.Key); got.Reason != answers.ReasonNotEnoughResources || !strings.HasSuffix(got.Message, "the scheduler has said: there is no room for what the group asks for") {
		t.Errorf("%s: %s", got.Reason, got.Message)
	}
	group.Status.Phase = dialect.PhaseInqueue
	if got := Why(s, group.Key); got.Reason != answers.ReasonNotEnoughTasks {
		t.Errorf("one whose Pods may come: %s: %s", got.Reason, got.Message)
	}
}

// simulate asks about the gang "train".
func simulate(t *testing.T, s *Snapshot) answers.Simulation {
	t.Helper()
	before, err := json.Marshal(s.Pods)
	if err != nil {
		t.Fatal(err)
	}
	answer, ok := Simulate(s, key("train"))
	if !ok {
		t.Fatal("the gang is not there")
	}
	if after, _ := json.Marshal(s.Pods); string(before) != string(after) {
		t.Error("a question has changed the Pods")
	}
	return answer
}

func TestAddedNodesMakeAGangFit(t *testing.T) {
	group, pods := gangOf("train", 3, asking(gpu, "4"))
	s := cluster([]*corev1.Node{node("a", "8", gpus("4"), tainted(corev1.TaintNodeNotReady)), node("b", "8", gpus("4"))}, group, pods...)
	if simulate(t, s).Fits {
		t.Fatal("the gang fits on the node that is there")
	}
	more, err := s.WithNodes([]Added{{Like: "a", Count: 2}})
	if err != nil {
		t.Fatal(err)
	}
	got := simulate(t, more)
	want := []answers.Placement{{Node: "b", Count: 1}, {Node: "new-a-1", Count: 1}, {Node: "new-a-2", Count: 1}}
	if diff := cmp.Diff(want, got.Placements); !got.Fits || diff != "" {
		t.Errorf("fits %t, placements (-want, +got):\n%s", got.Fits, diff)
	}
	if len(s.Nodes) != 2 {
		t.Error("the nodes were added for others, too")
	}
	for name, bad := range map[string][]Added{
		"no such node": {{Like: "x", Count: 1}}, "none": {{Like: "a"}}, "too many": {{Like: "a", Count: MaxAddedNodes}, {Like: "b", Count: 1}},
		"so many that the sum is no number": {{Like: "a", Count: 1}, {Like: "a", Count: int(^uint(0) >> 1)}},
	} {
		if _, err := s.WithNodes(bad); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestWithoutAGangItsRoomIsFree(t *testing.T) {
	group, pods := gangOf("train", 2)
	other, members := gangOf("other", 2, on("a"))
	s := cluster([]*corev1.Node{node("a", "2")}, group, append(pods, members...)...)
	s.Groups = append(s.Groups, other)
	if got := simulate(t, s); got.Fits || got.FitsAfterPreemption {
		t.Fatalf("it fits beside the other: %+v", got)
	}
	less, err := s.Without(other.Key)
	if err != nil {
		t.Fatal(err)
	}
	if got := simulate(t, less); !got.Fits {
		t.Errorf("it does not fit when the other is gone: %s", got.Message)
	}
	if _, err := s.Without(key("unknown")); err == nil {
		t.Error("a gang that is not there was taken away")
	}
}

func TestAGangThatIsNotThereCanBeSimulated(t *testing.T) {
	other, _ := gangOf("other", 1)
	group, pods := gangOf("train", 2)
	group.Created = time.Time{}
	s, err := cluster([]*corev1.Node{node("a", "2")}, other).WithGang(group, pods)
	if err != nil {
		t.Fatal(err)
	}
	if got := simulate(t, s); !got.Fits {
		t.Error(got.Message)
	}
	if _, err := s.WithGang(group, pods); err == nil {
		t.Error("it was added twice")
	}
}

func TestVictimsAreWholeGangsAndWhatCanBeSpared(t *testing.T) {
	lower := func(minimum int32) (*Snapshot, []string) {
		group, pods := gangOf("train", 1, priority(5))
		low, members := gangOf("low", 3, on("a"))
		low.Spec.Minimum.Members = minimum
		s := cluster([]*corev1.Node{node("a", "3")}, group, append(pods, members...)...)
		s.Groups = append(s.Groups, low)
		var names []string
		for _, victim := range simulate(t, s).Victims {
			names = append(names, victim.Pod)
		}
		return s, names
	}
	if _, got := lower(3); len(got) != 3 {
		t.Errorf("of a gang that needs all its members %v are evicted", got)
	}
	if _, got := lower(2); len(got) != 1 {
		t.Errorf("of a gang that can spare a member %v are evicted", got)
	}
}

func TestAGangThatMayNotPreemptHasNoVictims(t *testing.T) {
	group, pods := gangOf("train", 1, priority(5), func(pod *corev1.Pod) { pod.Spec.PreemptionPolicy = new(corev1.PreemptNever) })
	s := cluster([]*corev1.Node{node("a", "1")}, group, append(pods, ordinary("other", "1", on("a")))...)
	if got := simulate(t, s); got.Fits || got.FitsAfterPreemption || len(got.Victims) > 0 {
		t.Errorf("%+v", got)
	}
}

// TestAGroupThatMayNotPreemptHasNoVictims, though its Pods might have some.
func TestAGroupThatMayNotPreemptHasNoVictims(t *testing.T) {
	for _, preemptsNobody := range []bool{false, true} {
		group, pods := gangOf("train", 1, priority(5))
		group.Spec.PreemptsNobody = preemptsNobody
		s := cluster([]*corev1.Node{node("a", "1")}, group, append(pods, ordinary("other", "1", on("a")))...)
		if got := simulate(t, s); got.Fits || got.FitsAfterPreemption == preemptsNobody {
			t.Errorf("of a group that preempts nobody (%t): %+v", preemptsNobody, got)
		}
	}
}

func TestAllMembersGoToOneRack(t *testing.T) {
	group, pods := gangOf("train", 3)
	group.Spec.Topology = []schedulingv1alpha1.TopologyConstraint{{Key: "rack", Mode: schedulingv1alpha1.TopologyRequired}}
	small, large := node("a", "2", inRack("small")), node("b", "3", inRack("large"))
	got := simulate(t, cluster([]*corev1.Node{small, large}, group, pods...))
	if diff := cmp.Diff([]answers.Placement{{Node: "b", Count: 3}}, got.Placements); diff != "" {
		t.Error(diff)
	}
	got = simulate(t, cluster([]*corev1.Node{small, node("b", "2", inRack("large"))}, group, pods...))
	if got.Fits || got.Obstacle.Domain == "" {
		t.Errorf("it fits in no rack, and the answer is %s", got.Message)
	}
}

func TestMembersThatRepelEachOtherHaveNodesOfTheirOwn(t *testing.T) {
	apart := func(pod *corev1.Pod) {
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{schedulingv1alpha1.LabelPodGroup: "train"}}}}}}
	}
	samePort := func(pod *corev1.Pod) { pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}} }
	for name, change := range map[string]func(*corev1.Pod){"by anti-affinity": apart, "by a host port": samePort} {
		group, pods := gangOf("train", 2, change)
		if simulate(t, cluster([]*corev1.Node{node("a", "8")}, group, pods...)).Fits {
			t.Errorf("%s: two share a node", name)
		}
		if !simulate(t, cluster([]*corev1.Node{node("a", "8"), node("b", "8")}, group, pods...)).Fits {
			t.Errorf("%s: they do not fit on two nodes", name)
		}
	}
	group, pods := gangOf("train", 1, samePort)
	got := simulate(t, cluster([]*corev1.Node{node("a", "8")}, group, append(pods, ordinary("other", "1", on("a"), samePort))...))
	if got.Fits || got.Obstacle.Reasons[0].Reason != "a host port is taken" {
		t.Errorf("the port of another Pod: %s", got.Message)
	}
}

// TestAPlacementGivesMembersWhatTheyWantOfEachOther, or the answer is that there is none.
func TestAPlacementGivesMembersWhatTheyWantOfEachOther(t *testing.T) {
	leaders := &metav1.LabelSelector{MatchLabels: map[string]string{"role": "leader"}}
	train := &metav1.LabelSelector{MatchLabels: map[string]string{schedulingv1alpha1.LabelPodGroup: "train"}}
	beside := func(pod *corev1.Pod) {
		pod.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: "rack", LabelSelector: leaders}}}}
	}
	apart := func(pod *corev1.Pod) {
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: "rack", LabelSelector: train}}}}
	}
	nodes := []*corev1.Node{node("a", "2", inRack("a")), node("b", "2", inRack("b")), node("c", "2", inRack("b")), node("d", "1", inRack("b"))}
	tests := map[string]struct {
		members int
		wants   func(*corev1.Pod)
		racks   int // of the placement, 0 for none
	}{
		"workers beside their leader":          {members: 5, wants: beside, racks: 1},
		"more than there is room for in one":   {members: 6, wants: beside},
		"each in a rack of its own":            {members: 2, wants: apart, racks: 2},
		"each in a rack, of which are too few": {members: 3, wants: apart},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			group, pods := gangOf("train", tc.members)
			for i, pod := range pods {
				if pod.Labels["role"] = "worker"; i == 0 {
					pod.Labels["role"] = "leader"
				}
				if i > 0 || tc.racks == 2 || tc.members == 3 {
					tc.wants(pod)
				}
			}
			got := simulate(t, cluster(nodes, group, pods...))
			racks := make(map[string]bool)
			for _, p := range got.Placements {
				for _, n := range nodes {
					if n.Name == p.Node {
						racks[n.Labels["rack"]] = true
					}
				}
			}
			if got.Fits != (tc.racks > 0) || len(racks) != tc.racks {
				t.Errorf("it fits: %t, in %d racks, and not in %d: %s", got.Fits, len(racks), tc.racks, got.Message)
			}
		})
	}
}

// TestMembersThatFitJustSoAreFoundToFit: one of 5, one of 4 and one of 3 fill a node of 12.
func TestMembersThatFitJustSoAreFoundToFit(t *testing.T) {
	group, pods := gangOf("train", 6)
	for i, pod := range pods {
		asking(corev1.ResourceCPU, fmt.Sprint(5-i/2))(pod)
	}
	if got := simulate(t, cluster([]*corev1.Node{node("a", "12"), node("b", "12")}, group, pods...)); !got.Fits {
		t.Errorf("they do not fit: %s", got.Message)
	}
}

// TestMembersAreToldApartByLabelsThatMatter: none may be beside the first, and all others may share a node.
func TestMembersAreToldApartByLabelsThatMatter(t *testing.T) {
	group, pods := gangOf("train", 8, func(pod *corev1.Pod) {
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"index": "0"}}}}}}
	})
	for i, pod := range pods {
		pod.Labels["index"] = fmt.Sprint(i)
	}
	answer, _ := Simulate(cluster([]*corev1.Node{node("a", "8"), node("b", "8")}, group, pods...), key("train"))
	if answer.Room != 8 {
		t.Errorf("room for %d of 8 members: %s", answer.Room, answer.Message)
	}
}

func TestAnAnswerSaysWhatItDoesNotKnow(t *testing.T) {
	group, pods := gangOf("train", 1, func(pod *corev1.Pod) {
		pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{}}
	})
	s := cluster([]*corev1.Node{node("a", "8")}, group, pods...)
	s.Lacks = []string{"Pods of other namespaces may not be listed"}
	want := []string{"topologySpreadConstraints are not checked", "Pods of other namespaces may not be listed"}
	want = append(want, reservationsUnknown)
	if diff := cmp.Diff(want, simulate(t, s).Unknown); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, Why(s, key("train")).Unknown); diff != "" {
		t.Error(diff)
	}
}

// TestGangsOfOtherSchedulersAreNotInLine, where it is known which names are served, and are told what they wait for.
func TestGangsOfOtherSchedulersAreNotInLine(t *testing.T) {
	s := &Snapshot{Now: noon, Nodes: []*corev1.Node{node("node", "8")}}
	for _, name := range []string{"theirs", "ours"} {
		group, pods := gangOf(name, 1, func(pod *corev1.Pod) { pod.Spec.SchedulerName = name })
		s.Groups, s.Pods = append(s.Groups, group), append(s.Pods, pods...)
	}
	everywhere := func(dialect.Key) bool { return true }
	if all := Order(s, everywhere).Gangs; len(all) != 2 {
		t.Errorf("it is not known which are served, and the queue is %+v", all)
	}
	s.Serves = func(name string) bool { return name == "ours" }
	if all := Order(s, everywhere).Gangs; len(all) != 1 || all[0].Name != "ours" {
		t.Errorf("the queue is %+v", all)
	}
	theirs := Why(s, key("theirs"))
	if theirs.Reason != answers.ReasonNotEnoughTasks || !strings.Contains(theirs.Message, "1 more wait for another scheduler") || !strings.Contains(theirs.Next, "theirs is theirs") {
		t.Errorf("theirs: %+v", theirs)
	}
}

func TestTheLineIsByPriorityThenAgeAndOthersAreCounted(t *testing.T) {
	s := &Snapshot{Now: noon}
	for _, g := range []struct {
		name     string
		age      time.Duration
		priority int32
	}{{"young", time.Minute, 0}, {"old", time.Hour, 0}, {"secret/other", 2 * time.Hour, 0}, {"urgent", time.Second, 9}} {
		group, pods := gangOf(g.name, 1, priority(g.priority))
		group.Created = noon.Add(-g.age)
		if g.name == "old" {
			group.Conditions = refused("NotEnoughResources", "no room")
		}
		s.Groups, s.Pods = append(s.Groups, group), append(s.Pods, pods...)
	}
	capped, pods := gangOf("capped", 1, priority(100))
	capped.Spec.PriorityClassName, s.Classes = "low", map[string]PriorityClass{"low": {Value: -1}}
	s.Groups, s.Pods = append(s.Groups, capped), append(s.Pods, pods...)
	got := Order(s, func(key dialect.Key) bool { return key.Namespace == "team" })
	var names []string
	for _, g := range got.Gangs {
		names = append(names, fmt.Sprintf("%d %s %s", g.Rank, g.Name, g.Reason))
	}
	if diff := cmp.Diff([]string{"1 urgent ", "3 old no room", "4 young ", "5 capped "}, names); diff != "" {
		t.Error(diff)
	}
	if got.Others != 1 {
		t.Errorf("%d others, want 1", got.Others)
	}
	if text, _ := json.Marshal(got); strings.Contains(string(text), "secret") {
		t.Errorf("the queue names a gang of another namespace: %s", text)
	}
}

func TestWhoMayNotReadNodesIsToldWhatTheConditionSays(t *testing.T) {
	group, pods := gangOf("train", 1)
	s := cluster(nil, group, pods...)
	s.NoNodes = true
	if got := Why(s, key("train")); got.Reason != answers.ReasonUnknown || got.Place.Fits || strings.Contains(got.Message, "no nodes") {
		t.Errorf("%+v", got)
	}
	group.Conditions = refused("NotEnoughResources", "short of 1 cpu")
	if got := Why(s, key("train")); got.Reason != answers.ReasonNotEnoughResources || got.Message != "the scheduler has said: short of 1 cpu" {
		t.Errorf("%+v", got)
	}
}

// TestAGangInStagesNeedsThoseMembersThatThereAre: the others only come after these have run.
func TestAGangInStagesNeedsThoseMembersThatThereAre(t *testing.T) {
	for name, stage := range map[string]func(*dialect.Group, []*corev1.Pod){
		"by its group": func(group *dialect.Group, _ []*corev1.Pod) { group.Spec.Staged = true },
		"by a Pod": func(_ *dialect.Group, pods []*corev1.Pod) {
			pods[0].Annotations = map[string]string{schedulingv1alpha1.AnnotationStaged: "true"}
		},
	} {
		group, pods := gangOf("train", 5)
		stage(group, pods)
		s := cluster([]*corev1.Node{node("a", "8")}, group, pods[:1]...)
		if got := Why(s, key("train")); got.Reason != answers.ReasonNext || !simulate(t, s).Fits {
			t.Errorf("staged %s: %s: %s", name, got.Reason, got.Message)
		}
		if group.Spec.Minimum.Members != 5 {
			t.Error("the question has changed the group")
		}
	}
	group, _ := gangOf("train", 5)
	group.Spec.Staged = true
	s := cluster(nil, group)
	if got := Why(s, key("train")); got.Reason != answers.ReasonNotEnoughTasks {
		t.Errorf("a stage without members: %s: %s", got.Reason, got.Message)
	}
}

// TestPodsThatAreEndingAreCountedOnAsLongAsTheSchedulerDoes, which is for their grace period and a little more, by who may
// evict and who may not.
func TestPodsThatAreEndingAreCountedOnAsLongAsTheSchedulerDoes(t *testing.T) {
	for name, change := range map[string]func(*corev1.Pod){
		"may evict":        priority(5),
		"may evict nobody": func(pod *corev1.Pod) { pod.Spec.PreemptionPolicy = new(corev1.PreemptNever) },
	} {
		for ago, want := range map[time.Duration]bool{-time.Minute: true, 20 * time.Second: true, time.Hour: false} {
			group, pods := gangOf("train", 1, change)
			ending := ordinary("other", "1", on("a"), priority(9))
			ending.DeletionTimestamp = &metav1.Time{Time: noon.Add(-ago)}
			got := simulate(t, cluster([]*corev1.Node{node("a", "1")}, group, append(pods, ending)...))
			if got.FitsAfterPreemption != want || len(got.Victims) > 0 || want && got.Message != "there is room as soon as Pods have ended that are ending now" {
				t.Errorf("one that %s, and a Pod was to end %s ago: %t, %s", name, ago, got.FitsAfterPreemption, got.Message)
			}
		}
	}
}

// TestThatAGangFitsIsNoGuess: beside the Pods that somebody may read there may be others.
func TestThatAGangFitsIsNoGuess(t *testing.T) {
	for name, busy := range map[string]int{"there seems to be room": 0, "there seems to be somebody to evict": 1} {
		group, pods := gangOf("train", 1, priority(5))
		for range busy {
			pods = append(pods, ordinary("other", "1", on("a")))
		}
		s := cluster([]*corev1.Node{node("a", "1")}, group, pods...)
		if got := simulate(t, s); !got.Fits && !got.FitsAfterPreemption {
			t.Errorf("%s: %s", name, got.Message)
		}
		s.SomePods = true
		if got := simulate(t, s); got.Fits || got.FitsAfterPreemption || !strings.HasPrefix(got.Message, "whether there is room is not known") {
			t.Errorf("%s, and not all Pods are known: %s", name, got.Message)
		}
		if got := Why(s, key("train")); got.Place == nil || got.Place.Fits || got.Place.FitsAfterPreemption {
			t.Errorf("%s, and not all Pods are known: why says %+v", name, got.Place)
		}
	}
}

// TestMembersOfManyKindsAreRefused: how long an answer takes is bounded, however the members differ.
func TestMembersOfManyKindsAreRefused(t *testing.T) {
	group, pods := gangOf("train", maxClasses+1)
	for i, pod := range pods {
		asking(corev1.ResourceMemory, fmt.Sprint(i+1))(pod)
	}
	if got := simulate(t, cluster([]*corev1.Node{node("a", "100")}, group, pods...)); got.Fits || !strings.Contains(got.Message, "too many") {
		t.Error(got.Message)
	}
}
