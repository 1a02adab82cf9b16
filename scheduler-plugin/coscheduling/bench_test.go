// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/line"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/place"
)

// BenchmarkPlace plans and verifies a gang on empty nodes in racks of a hundred,
// and undoes that: the part of a gang cycle that keeps others from being
// scheduled, but for the commit.
func BenchmarkPlace(b *testing.B) {
	required := func(s *schedulingv1alpha1.PodGroupSpec) {
		s.Topology = []schedulingv1alpha1.TopologyConstraint{{Key: "rack", Mode: schedulingv1alpha1.TopologyRequired}}
	}
	for name, bc := range map[string]struct {
		nodes, members int
		change         []func(*schedulingv1alpha1.PodGroupSpec)
		alike          bool // it is like the gang before it
	}{
		"1000 on 5000 nodes":          {nodes: 5000, members: 1000},
		"4000 on 5000 nodes":          {nodes: 5000, members: 4000},
		"256 on 5000 nodes":           {nodes: 5000, members: 256},
		"256 in a rack of 5000 nodes": {nodes: 5000, members: 256, change: []func(*schedulingv1alpha1.PodGroupSpec){required}},
		"8 on 1000 nodes":             {nodes: 1000, members: 8},
		"8 more on 1000 nodes":        {nodes: 1000, members: 8, alike: true},
	} {
		b.Run(name, func(b *testing.B) {
			w := newWorld(b)
			stop := w.start()
			stop()
			for i, object := range makeNodes("node", bc.nodes, 8) {
				node := object.(*corev1.Node)
				node.Labels["rack"] = fmt.Sprint(i / 100)
				w.sched.Cache.AddNode(klog.Background(), node)
			}
			view := viewOf(makeGroup("gang", int32(bc.members), bc.change...), makeMembers("gang", bc.members))
			engine := w.engine()
			ctx := klog.NewContext(b.Context(), klog.Background())
			for b.Loop() {
				if !bc.alike {
					engine.passes = place.Passes{}
				}
				out, err := engine.plan(ctx, &view, nil, false)
				if err != nil || out.Shortfall != nil {
					b.Fatal(out.Shortfall, err)
				}
				engine.release(ctx, out.Placements, 0)
			}
		})
	}
}

// viewOf is a gang of which no member is placed.
func viewOf(group *schedulingv1alpha1.PodGroup, members []runtime.Object) gangView {
	view := gangView{Gang: place.Gang{View: gangs.View{Key: gangName, Group: dialect.FromOwn(group)}}}
	for _, object := range members {
		pod := object.(*corev1.Pod)
		view.Waiting = append(view.Waiting, pod)
		view.ClassKeys = append(view.ClassKeys, place.ClassKey(pod, podgroup.RoleOf(pod)))
	}
	return view
}

// BenchmarkFindVictims is the search of a gang of 500 for room on 1000 full nodes,
// of which 500 hold one Pod each that the gang outranks.
func BenchmarkFindVictims(b *testing.B) {
	const size = 500
	w := newWorld(b)
	stop := w.start()
	stop()
	for i, object := range makeNodes("node", 2*size, 1) {
		w.sched.Cache.AddNode(klog.Background(), object.(*corev1.Node))
		pod := makePod(fmt.Sprintf("pod-%d", i), onNode(fmt.Sprintf("node-%d", i)), ofPriority(int32(i/size*100)))
		if err := w.sched.Cache.AddPod(klog.Background(), pod); err != nil {
			b.Fatal(err)
		}
	}
	view := viewOf(makeGroup("gang", size), makeMembers("gang", size, ofPriority(10)))
	view.Rank, view.MayPreempt = line.Rank{Priority: 10}, true
	engine := w.engine()
	ctx := klog.NewContext(b.Context(), klog.Background())
	for b.Loop() {
		out, err := engine.plan(ctx, &view, nil, false)
		if err != nil || len(out.Victims) != size {
			b.Fatal(out, err)
		}
	}
}
