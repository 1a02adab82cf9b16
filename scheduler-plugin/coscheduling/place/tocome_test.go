// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/ptr"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
)

// terms are those of members to come.
var terms = &configv1alpha1.MembersToCome{Timeout: &metav1.Duration{Duration: time.Minute}, NamespaceMaxPercent: ptr.To[int32](100), Preemption: new(bool)}

// nodesOf is a cluster of a number of nodes, each for a number of Pods of a core.
func nodesOf(n, pods int) kube.Snapshot {
	var nodes []*corev1.Node
	for i := range n {
		nodes = append(nodes, schedulertesting.MakeNode().Name(fmt.Sprint("node-", i)).
			Capacity(map[corev1.ResourceName]string{"cpu": fmt.Sprint(pods), "pods": fmt.Sprint(pods)}).Obj())
	}
	return internalcache.NewSnapshot(nil, nodes)
}

// TestRoomIsKeptForSoManyMembers of a namespace, and of all: however much groups ask for, what each turn has
// to look at is bounded.
func TestRoomIsKeptForSoManyMembers(t *testing.T) {
	for name, tc := range map[string]struct {
		own     int
		cluster Cluster
		want    string
	}{
		"as many as may":              {1000, Cluster{ToCome: provision.Amounts{corev1.ResourcePods: 1000}, AllToCome: 7000}, ""},
		"one too many of a namespace": {1000, Cluster{ToCome: provision.Amounts{corev1.ResourcePods: 1001}, AllToCome: 1001}, "for 1000 members to come, and may be for 999 more: for 2000 at most in a namespace, for no more than half of what others leave of 10000 in all"},
		"half of what is left":        {1000, Cluster{ToCome: provision.Amounts{corev1.ResourcePods: 100}, AllToCome: 8100}, "may be for 900 more"},
		"too many of all":             {10, Cluster{AllToCome: 9995}, "for 10 members to come, and may be for 2 more"},
		"more than that already":      {1, Cluster{AllToCome: 20000}, "for 1 members to come, and may be for 0 more"},
	} {
		t.Run(name, func(t *testing.T) {
			gang := &Gang{View: gangs.View{Group: &dialect.Group{}}, Terms: terms, virtual: sets.New[types.UID]()}
			for i := range tc.own {
				virtual := &corev1.Pod{}
				virtual.UID = provision.UID("group", i)
				gang.Waiting, gang.ClassKeys = append(gang.Waiting, virtual), append(gang.ClassKeys, "class")
				gang.virtual.Insert(virtual.UID)
			}
			tc.cluster.Snapshot, tc.cluster.MaxPercent = nodesOf(100, 110), 100
			got := gang.exceeds(&tc.cluster)
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("it is told %q, want %q", got, tc.want)
			}
		})
	}
}

// TestFewNamespacesDoNotHaveAllRoomForMembersToCome: each that asks for as much as it may leaves some to the next.
func TestFewNamespacesDoNotHaveAllRoomForMembersToCome(t *testing.T) {
	cluster, namespaces := Cluster{}, 0
	for ; cluster.toComeLeft() > 0; namespaces++ {
		cluster.AllToCome += int(cluster.toComeLeft())
	}
	if namespaces < 12 {
		t.Errorf("%d namespaces have room kept for %d members, and nobody else may", namespaces, cluster.AllToCome)
	}
}

// TestWhatAMemberToComeWants of a node is what the largest member wants, but for what only one Pod can have and
// what Pods want of each other. It names its group as that does.
func TestWhatAMemberToComeWants(t *testing.T) {
	model := schedulertesting.MakePod().Name("driver").Namespace("ns").UID("driver").SchedulerName("lockstep-scheduler").Priority(7).
		Label("label", "group").Annotation("annotation", "group").
		NodeSelector(map[string]string{"pool": "a"}).Toleration("dedicated").NodeAffinityIn("zone", []string{"z"}, schedulertesting.NodeSelectorTypeMatchExpressions).
		PodAntiAffinityExists("app", "kubernetes.io/hostname", schedulertesting.PodAntiAffinityWithRequiredReq).
		SpreadConstraint(1, "zone", corev1.DoNotSchedule, nil, nil, nil, nil, nil).HostPort(80).PVC("data").
		PodResourceClaims(corev1.PodResourceClaim{Name: "gpu"}).Req(map[corev1.ResourceName]string{"cpu": "4"}).Obj()
	gang := &Gang{View: gangs.View{Group: &dialect.Group{UID: "group"}}}
	member := gang.virtualMember(model, 3, provision.Amounts{corev1.ResourceCPU: 2000})
	if member.Labels["label"] != "group" || member.Annotations["annotation"] != "group" {
		t.Errorf("it has the labels %v and the annotations %v, want those of the model", member.Labels, member.Annotations)
	}
	got := member.Spec
	if got.NodeSelector["pool"] != "a" || len(got.Tolerations) != 1 || got.Affinity == nil || got.Affinity.NodeAffinity == nil || *got.Priority != 7 || got.SchedulerName != "lockstep-scheduler" {
		t.Errorf("it wants %+v, want the nodes and the priority of the model", got)
	}
	if got.Affinity.PodAntiAffinity != nil || got.TopologySpreadConstraints != nil || got.Volumes != nil || got.ResourceClaims != nil {
		t.Errorf("it wants %+v, want nothing of other Pods, of volumes or of claims", got)
	}
	if c := got.Containers; len(c) != 1 || c[0].Ports != nil || c[0].Resources.Requests.Cpu().MilliValue() != 2000 {
		t.Errorf("its containers are %+v, want one of 2 cpu without a port", c)
	}
}

// TestALeaderWorkerSetSaysHowManyCome, on its Pods.
func TestALeaderWorkerSetSaysHowManyCome(t *testing.T) {
	leader := pod("leader", func(w *schedulertesting.PodWrapper) {
		w.Req(map[corev1.ResourceName]string{"cpu": "2"}).Annotation("leaderworkerset.sigs.k8s.io/size", "4")
	})
	gang := gangOf(leader)
	gang.Starts, gang.ToCome, gang.Terms = true, provision.Amounts{"cpu": 8000}, terms
	if starting := gang.starting(); len(starting.virtual) != 3 || len(starting.Waiting) != 4 {
		t.Errorf("it starts with %d members, of which %d are virtual; want 4 and 3", len(starting.Waiting), len(starting.virtual))
	}
}

// TestMembersAboveWhatIsAnnouncedAreNoReasonToWait: of five that wait three are announced.
func TestMembersAboveWhatIsAnnouncedAreNoReasonToWait(t *testing.T) {
	var members []*corev1.Pod
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		members = append(members, pod(name, func(w *schedulertesting.PodWrapper) { w.Req(map[corev1.ResourceName]string{"cpu": "1"}) }))
	}
	gang := gangOf(members...)
	gang.Starts, gang.ToCome, gang.Terms = true, provision.Amounts{"cpu": 3000}, terms
	gang.Group = &dialect.Group{Spec: dialect.Spec{Minimum: podgroup.Minimum{Members: 1}}}
	if starting := gang.starting(); len(starting.virtual) != 0 || len(starting.Waiting) != 3 || !starting.needsAll {
		t.Errorf("it starts with %d members, want 3 of its own", len(starting.Waiting))
	}
	gang.Group.Spec.Minimum.Members = 5
	if starting := gang.starting(); starting != gang {
		t.Error("a gang whose minimum is more than what is announced starts with other members than its own")
	}
}
