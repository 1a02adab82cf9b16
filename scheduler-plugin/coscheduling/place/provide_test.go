// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
)

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
		"as many as may":              {1000, Cluster{Provided: provision.Amounts{corev1.ResourcePods: 1000}, ToCome: 7000}, ""},
		"one too many of a namespace": {1000, Cluster{Provided: provision.Amounts{corev1.ResourcePods: 1001}, ToCome: 1001}, "for 1000 members to come, and may be for 999 more: for 2000 at most in a namespace, for no more than half of what others leave of 10000 in all"},
		"half of what is left":        {1000, Cluster{Provided: provision.Amounts{corev1.ResourcePods: 100}, ToCome: 8100}, "may be for 900 more"},
		"too many of all":             {10, Cluster{ToCome: 9995}, "for 10 members to come, and may be for 2 more"},
		"more than that already":      {1, Cluster{ToCome: 20000}, "for 1 members to come, and may be for 0 more"},
	} {
		t.Run(name, func(t *testing.T) {
			gang := &Gang{View: gangs.View{Provision: &provision.Due{Terms: provision.Terms{Mode: provision.Strict, Longest: time.Minute, Percent: 100}}},
				virtual: sets.New[types.UID]()}
			for i := range tc.own {
				virtual := &corev1.Pod{}
				virtual.UID = provision.UID("group", i)
				gang.Waiting, gang.ClassKeys = append(gang.Waiting, virtual), append(gang.ClassKeys, "class")
				gang.virtual.Insert(virtual.UID)
			}
			tc.cluster.Snapshot = nodesOf(100, 110)
			got := gang.exceeds(&tc.cluster)
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("it is told %q, want %q", got, tc.want)
			}
			gang.keepWithin(&tc.cluster)
			if want := min(int64(tc.own), tc.cluster.toComeLeft()); int64(len(gang.Waiting)) != want {
				t.Errorf("room is sought for %d, want for %d", len(gang.Waiting), want)
			}
		})
	}
}

// TestFewNamespacesDoNotHaveAllRoomForMembersToCome: each that asks for as much as it may leaves some to the next.
func TestFewNamespacesDoNotHaveAllRoomForMembersToCome(t *testing.T) {
	cluster, namespaces := Cluster{}, 0
	for ; cluster.toComeLeft() > 0; namespaces++ {
		cluster.ToCome += int(cluster.toComeLeft())
	}
	if namespaces < 12 {
		t.Errorf("%d namespaces have room kept for %d members, and nobody else may", namespaces, cluster.ToCome)
	}
}

// TestANamespaceHasRoomKeptForSoManyGroups: one more waits if it is strict, and starts with nothing kept if
// it is not.
func TestANamespaceHasRoomKeptForSoManyGroups(t *testing.T) {
	due := &provision.Due{Terms: provision.Terms{Mode: provision.Strict, Longest: time.Minute, Percent: 100}}
	virtual := &corev1.Pod{}
	virtual.UID = provision.UID("group", 0)
	gang := &Gang{View: gangs.View{Provision: due, Waiting: []*corev1.Pod{virtual}, ClassKeys: []string{"class"}}, virtual: sets.New[types.UID](virtual.UID)}
	full := &Cluster{Providing: maxProviding}
	if got, want := gang.exceeds(full), "room is kept for members to come of 100 groups of its namespace, which are as many as may have that"; got != want {
		t.Errorf("it is told %q, want %q", got, want)
	}
	gang.keepWithin(full)
	if len(gang.Waiting) > 0 || len(gang.ClassKeys) > 0 {
		t.Error("room is sought for it all the same")
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
	gang := &Gang{View: gangs.View{Provision: &provision.Due{Model: model}, Group: &dialect.Group{UID: "group"}}}
	member := gang.virtualMember(3, provision.Amounts{corev1.ResourceCPU: 2000})
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
