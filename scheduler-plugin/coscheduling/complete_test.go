// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// drawnNodes makes nodes, each written as "cpu used key=value,key=value". What is used of one, an existing Pod has.
func drawnNodes(nodes ...string) *draw {
	d := &draw{}
	for i, text := range nodes {
		var cpu, used int64
		var labels string
		if _, err := fmt.Sscan(text, &cpu, &used, &labels); err != nil {
			panic(err)
		}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i), Labels: parsed(labels)}}
		node.Labels[corev1.LabelHostname] = node.Name
		node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(cpu, resource.DecimalSI), corev1.ResourcePods: resource.MustParse("110")}
		d.nodes = append(d.nodes, node)
		if used > 0 {
			pod := drawnPod("used-"+node.Name, map[string]string{"app": "used"}, fmt.Sprint(used))
			pod.Spec.NodeName = node.Name
			d.existing = append(d.existing, pod)
		}
	}
	return d
}

// member adds a member with a label app and some CPU; change may set more.
func (d *draw) member(app, cpu string, change ...func(*corev1.Pod)) *draw {
	pod := drawnPod(fmt.Sprintf("gang-%d", len(d.members)), map[string]string{"app": app, "index": fmt.Sprint(len(d.members))}, cpu)
	pod.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}, PodAntiAffinity: &corev1.PodAntiAffinity{}}
	for _, c := range change {
		c(pod)
	}
	d.members = append(d.members, pod)
	return d
}

// members adds several.
func (d *draw) membersOf(n int, app, cpu string, change ...func(*corev1.Pod)) *draw {
	for range n {
		d.member(app, cpu, change...)
	}
	return d
}

// near and away have a member be in the same domain of a topology as Pods with a label, or in another one.
func near(key, label string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		a := pod.Spec.Affinity.PodAffinity
		a.RequiredDuringSchedulingIgnoredDuringExecution = append(a.RequiredDuringSchedulingIgnoredDuringExecution, term(key, label))
	}
}

func away(key, label string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		a := pod.Spec.Affinity.PodAntiAffinity
		a.RequiredDuringSchedulingIgnoredDuringExecution = append(a.RequiredDuringSchedulingIgnoredDuringExecution, term(key, label))
	}
}

// TestGangsThatFitArePlaced, although the first packing that comes to mind fails: the members have
// several sizes, or are drawn to members that would rather be elsewhere, or kept away from them.
func TestGangsThatFitArePlaced(t *testing.T) {
	idle, used := "32 0 rack=a", "32 2 rack=b"
	tests := map[string]*draw{
		"workers in the rack of a leader that likes another rack better": drawnNodes(idle, used, used, used, used).
			member("lead", "1").membersOf(4, "work", "28", near("rack", "app=lead")),
		"the same with the leader last": drawnNodes(idle, used, used, used, used).
			membersOf(4, "work", "28", near("rack", "app=lead")).member("lead", "1"),
		"three racks, of which one has room": drawnNodes(idle, used, used, "32 0 rack=c", "32 0 rack=c", "32 0 rack=c").
			member("lead", "1").membersOf(3, "work", "30", near("rack", "app=lead")),
		"a chain from rack to zone": drawnNodes("8 0 rack=a,zone=x", "8 1 rack=b,zone=y", "8 1 rack=b,zone=y", "8 1 rack=b,zone=y", "8 1 rack=b,zone=y", "8 0 rack=c,zone=y").
			member("store", "1").membersOf(2, "cache", "6", near("zone", "app=store")).membersOf(2, "work", "6", near("rack", "app=cache")),
		"pairs on a node each": drawnNodes("8 0 rack=a", "6 0 rack=a", "6 0 rack=a").
			member("lead0", "1").member("lead1", "1").member("lead2", "1").
			member("work0", "5", near(corev1.LabelHostname, "app=lead0")).member("work1", "5", near(corev1.LabelHostname, "app=lead1")).member("work2", "5", near(corev1.LabelHostname, "app=lead2")),
		"three sizes on two nodes": drawnNodes("12 0 set=p", "12 0 set=p").
			membersOf(2, "chief", "5").membersOf(2, "ps", "4").membersOf(2, "worker", "3"),
		"four sizes on three nodes": drawnNodes("20 0 set=p", "20 0 set=p", "20 0 set=p").
			membersOf(3, "a", "8").membersOf(3, "b", "6").membersOf(3, "c", "4").membersOf(3, "d", "2"),
		"sizes that fill nodes by pairs": drawnNodes("12 0 set=p", "12 0 set=p", "12 0 set=p").
			membersOf(2, "a", "6").member("b", "7").member("c", "5").membersOf(3, "d", "4"),
		"nobody beside the first": drawnNodes("8 0 rack=a", "8 0 rack=a", "8 0 rack=a").
			membersOf(8, "work", "1", away(corev1.LabelHostname, "index=0")),
		"nobody in the rack of the last": drawnNodes("8 0 rack=a", "8 0 rack=b").
			membersOf(8, "work", "1", away("rack", "index=8")).member("lead", "1"),
		"a member that others keep off": drawnNodes("8 0 rack=a", "8 0 rack=b").
			membersOf(6, "work", "1").member("lead", "1", away("rack", "app=work")),
		"a member that runs into a Pod that is there": func() *draw {
			d := drawnNodes("8 1 rack=a", "8 7 rack=b", "8 7 rack=b").membersOf(3, "work", "1")
			d.existing[0].Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}}
			away(corev1.LabelHostname, "index=0")(d.existing[0])
			return d
		}(),
	}
	w := newWorld(t)
	w.verbosity, w.args = 0, `{"cycleTimeout":"1m"}`
	w.start()()
	for name, d := range tests {
		t.Run(name, func(t *testing.T) {
			if where, why := (&oracle{world: w, draw: d}).gang(); len(where) != len(d.members) {
				t.Errorf("%d of %d members are placed: %s", len(where), len(d.members), why)
			}
		})
	}
}

// TestAGangIsPlacedBehindManyRacks: the gang has to be in one rack, and each rack has room for one of its members but the last,
// which has room for both. Devices are counted before a plan is made. How many volumes a node has, no plan
// knows: the search goes on in later cycles.
func TestAGangIsPlacedBehindManyRacks(t *testing.T) {
	const racks = 3*32 + 1 // more than are tried in three cycles
	var nodes []apiruntime.Object
	for i := range racks {
		node := makeNodes("node", 1, 8, fmt.Sprintf("rack=%03d", i))[0].(*corev1.Node)
		node.Name = fmt.Sprintf("node-%d", i)
		node.UID, node.Labels[corev1.LabelHostname] = "", node.Name
		nodes = append(nodes, node)
	}
	last := fmt.Sprintf("node-%d", racks-1)
	tests := map[string]struct {
		objects []apiruntime.Object
		has     func(node string) []apiruntime.Object
		more    apiruntime.Object // on the last node
		option  podOption
		inOne   bool // cycle
	}{
		"devices": {objects: all(deviceClass(), deviceClaims(memberNames("gang", 2)...)),
			has:  func(node string) []apiruntime.Object { return all(devices(node, 1)) },
			more: devices(last, 2), option: withDeviceClaim, inOne: true},
		"volumes": {objects: all(localClass(), volumeClaims("gang", 2)),
			has: func(node string) []apiruntime.Object { return all(localVolume(node)) },
			more: func() apiruntime.Object {
				more := localVolume(last).(*corev1.PersistentVolume)
				more.Name = "another"
				return more
			}(), option: withVolumeClaim},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				objects := all(nodes, tc.objects, makeMembers("gang", 2, tc.option), makeGroup("gang", 2, func(s *schedulingv1alpha1.PodGroupSpec) {
					s.Topology = []schedulingv1alpha1.TopologyConstraint{{Key: "rack", Mode: schedulingv1alpha1.TopologyRequired}}
				}))
				for i := range racks - 1 {
					objects = append(objects, tc.has(fmt.Sprintf("node-%d", i))...)
				}
				if objects = append(objects, tc.more); !tc.inOne {
					objects = append(objects, tc.has(last)...)
				}
				w := newWorld(t, objects...)
				w.completeVolumes()
				w.start()
				began := time.Now()
				w.eventually("the gang is placed", func() bool { return w.placed("gang") == 2 })
				if took := time.Since(began); tc.inOne != (took < 50*time.Millisecond) { // its first back-off
					t.Errorf("the gang was placed after %s", took)
				}
				for pod, node := range w.nodeOf() {
					if node != last {
						t.Errorf("%s is on %s", pod, node)
					}
				}
			})
		})
	}
}

// reserves is a plugin that counts how often a member was looked at, and for how many something was to be set aside.
type reserves struct{ looks, times int }

func (*reserves) Name() string { return "Reserves" }

func (r *reserves) PreFilter(context.Context, fwk.CycleState, *corev1.Pod, []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	r.looks++
	return nil, nil
}

func (*reserves) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

func (r *reserves) Reserve(context.Context, fwk.CycleState, *corev1.Pod, string) *fwk.Status {
	r.times++
	return nil
}

func (*reserves) Unreserve(context.Context, fwk.CycleState, *corev1.Pod, string) {}

// TestMembersThatWereTriedOneByOneInVainAreTriedAgainIfThatMayHelp, and only then: three sizes fit on no two nodes of six cores,
// and members that want to be beside each other have no node for all of them.
func TestMembersThatWereTriedOneByOneInVainAreTriedAgainIfThatMayHelp(t *testing.T) {
	sizes := func(nodes ...string) *draw {
		return drawnNodes(nodes...).member("a", "5").member("b", "4").member("c", "3")
	}
	beside := func(nodes ...string) *draw {
		return drawnNodes(nodes...).member("a", "1").membersOf(2, "b", "1", near(corev1.LabelHostname, "app=a"))
	}
	tests := map[string]struct {
		draw *draw
		// cpu is what the existing Pod takes then, empty for as much as before, and placed are the labels of another Pod
		// that has come, on the last node.
		cpu, placed string
		want        bool
	}{
		"nothing has changed":                              {draw: sizes("6 0 rack=a", "6 0 rack=b", "9 9 rack=c")},
		"a Pod has ended on a node that is too full still": {draw: sizes("6 0 rack=a", "6 0 rack=b", "9 9 rack=c"), cpu: "7"},
		"a Pod has ended where a member had room":          {draw: sizes("7 2 rack=a", "6 0 rack=b", "1 0 rack=c"), cpu: "1", want: true},
		"nothing has changed, and it matters who is where": {draw: beside("2 0 rack=a", "2 0 rack=b", "2 1 rack=c")},
		"a Pod is placed where it matters":                 {draw: beside("2 0 rack=a", "2 0 rack=b", "2 1 rack=c"), placed: "app=a", want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w, counts := newWorld(t), &reserves{}
			w.verbosity, w.args, w.others = 0, `{"cycleTimeout":"1m"}`, []fwk.Plugin{counts}
			w.start()()
			o := &oracle{world: w, draw: tc.draw}
			var members []apiruntime.Object
			for _, pod := range tc.draw.members {
				members = append(members, pod)
			}
			view := viewOf(makeGroup(gangName.Name, int32(len(members))), members)
			o.with(func(ctx context.Context) {
				try := func() int {
					counts.times = 0
					out, err := w.engine().plan(ctx, &view, false)
					if o.must(err); len(out.Placements) > 0 {
						t.Fatalf("members are placed: %v", out.Placements)
					}
					return counts.times
				}
				first := try()
				if tc.cpu != "" {
					before := tc.draw.existing[0]
					after := before.DeepCopy()
					after.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(tc.cpu)
					o.must(w.sched.Cache.UpdatePod(klog.Background(), before, after))
					tc.draw.existing[0] = after
				}
				if tc.placed != "" {
					pod := drawnPod("another", parsed(tc.placed), "1")
					pod.Spec.NodeName = tc.draw.nodes[len(tc.draw.nodes)-1].Name
					o.must(w.sched.Cache.AddPod(klog.Background(), pod))
					tc.draw.existing = append(tc.draw.existing, pod)
				}
				if again := try(); (again >= first) != tc.want {
					t.Errorf("members were tried on %d nodes, and on %d when tried again", first, again)
				}
			})
		})
	}
}

// TestMembersAreSpreadOverTheDomainsThatCount, each at the first try: it depends on the constraint's policies and its minDomains which ones
// these are, and what counts as the emptiest.
func TestMembersAreSpreadOverTheDomainsThatCount(t *testing.T) {
	const zones, perZone = 3, 20
	honor, ignore := corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore
	for name, tc := range map[string]struct {
		constraint corev1.TopologySpreadConstraint
		members    int
		// taints and labels are those of the last zone.
		taint bool
		pool  string
	}{
		"a zone with a taint does not count, as the constraint says":      {members: 2 * perZone, taint: true, constraint: corev1.TopologySpreadConstraint{MaxSkew: 1, NodeTaintsPolicy: &honor}},
		"a zone that members don't select does not count":                 {members: 2 * perZone, pool: "other", constraint: corev1.TopologySpreadConstraint{MaxSkew: 1}},
		"a zone that members don't select counts, as the constraint says": {members: 2 * 4, pool: "other", constraint: corev1.TopologySpreadConstraint{MaxSkew: 4, NodeAffinityPolicy: &ignore}},
		"a zone with a taint counts":                                      {members: 2 * 4, taint: true, constraint: corev1.TopologySpreadConstraint{MaxSkew: 4}},
		"there are fewer zones than minDomains":                           {members: 3 * 4, constraint: corev1.TopologySpreadConstraint{MaxSkew: 4, MinDomains: ptr.To(int32(4))}},
	} {
		t.Run(name, func(t *testing.T) {
			w, look := newWorld(t), &reserves{}
			w.verbosity, w.args, w.others = 0, `{"cycleTimeout":"1m"}`, []fwk.Plugin{look}
			w.start()()
			d := &draw{}
			for zone := range zones {
				for _, object := range makeNodes(fmt.Sprint("node-", zone), perZone, 1, fmt.Sprint("zone=", zone)) {
					node := object.(*corev1.Node)
					node.Labels["pool"] = "mine"
					if zone == zones-1 && tc.pool != "" {
						node.Labels["pool"] = tc.pool
					}
					if zone == zones-1 && tc.taint {
						node.Spec.Taints = []corev1.Taint{{Key: "mine", Effect: corev1.TaintEffectNoSchedule}}
					}
					d.nodes = append(d.nodes, node)
				}
			}
			constraint := tc.constraint
			constraint.TopologyKey, constraint.WhenUnsatisfiable = "zone", corev1.DoNotSchedule
			constraint.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}
			d.membersOf(tc.members, "a", "1", func(pod *corev1.Pod) {
				pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{constraint}
				if tc.pool != "" {
					pod.Spec.NodeSelector = map[string]string{"pool": "mine"}
				}
			})
			if where, why := (&oracle{world: w, draw: d}).gang(); len(where) != tc.members {
				t.Fatalf("%d of %d members are placed: %s", len(where), tc.members, why)
			}
			// The first member before the plan, for Filter and Score, and each one once.
			if most := tc.members + 2; look.looks > most {
				t.Errorf("members were looked at %d times, want %d at most", look.looks, most)
			}
		})
	}
}
