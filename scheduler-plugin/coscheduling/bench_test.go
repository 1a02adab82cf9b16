// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/cputime"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/place"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
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
		option         func(i int) podOption
		devices        int // of each node; a member has a claim for one
	}{
		"1000 on 5000 nodes":          {nodes: 5000, members: 1000},
		"4000 on 5000 nodes":          {nodes: 5000, members: 4000},
		"256 on 5000 nodes":           {nodes: 5000, members: 256},
		"256 in a rack of 5000 nodes": {nodes: 5000, members: 256, change: []func(*schedulingv1alpha1.PodGroupSpec){required}},
		"1000 spread over 5000 nodes": {nodes: 5000, members: 1000, option: spreadOverHosts},
		"512 on 5000 nodes":           {nodes: 5000, members: 512},
		"512 on 512 of 5000 nodes, by name": {nodes: 5000, members: 512, option: func(i int) podOption {
			return func(w *schedulertesting.PodWrapper) {
				w.NodeSelector(map[string]string{corev1.LabelHostname: fmt.Sprintf("node-%d", 9*i)})
			}
		}},
		"1000 with a claim each on 1000 nodes of 1 device":  {nodes: 1000, members: 1000, devices: 1, option: withClaim},
		"1000 with a claim each on 1000 nodes of 8 devices": {nodes: 1000, members: 1000, devices: 8, option: withClaim},
		"8 on 1000 nodes":      {nodes: 1000, members: 8},
		"8 more on 1000 nodes": {nodes: 1000, members: 8, alike: true},
	} {
		b.Run(name, func(b *testing.B) {
			w := newWorld(b, withDevices(bc.nodes, bc.devices, "gang", bc.members)...)
			w.args, w.verbosity = `{"cycleTimeout":"1m"}`, 0
			stop := w.start()
			stop()
			for i, object := range makeNodes("node", bc.nodes, 8) {
				node := object.(*corev1.Node)
				node.Labels["rack"] = fmt.Sprint(i / 100)
				w.sched.Cache.AddNode(klog.Background(), node)
			}
			var members []runtime.Object
			for i := range bc.members {
				options := []podOption{inGroup("gang")}
				if bc.option != nil {
					options = append(options, bc.option(i))
				}
				members = append(members, makePod(fmt.Sprintf("gang-%d", i), options...))
			}
			view := viewOf(makeGroup("gang", int32(bc.members), bc.change...), members)
			engine := w.engine()
			ctx := klog.NewContext(b.Context(), klog.Background())
			report := cputime.Start(b)
			for b.Loop() {
				if !bc.alike {
					engine.passes = place.Passes{}
				}
				out, err := engine.plan(ctx, &view, false)
				if err != nil || out.Shortfall != nil {
					b.Fatal(out.Shortfall, err)
				}
				engine.release(ctx, out.Placements, 0)
			}
			report(b.N)
		})
	}
}

// spreadOverHosts has members be on a node each, as long as there are nodes without one.
func spreadOverHosts(int) podOption {
	return func(w *schedulertesting.PodWrapper) {
		w.Label("app", "ring").SpreadConstraint(1, corev1.LabelHostname, corev1.DoNotSchedule, &metav1.LabelSelector{MatchLabels: map[string]string{"app": "ring"}}, nil, nil, nil, nil)
	}
}

// withClaim has a member have a claim for a device.
func withClaim(int) podOption { return withDeviceClaim }

// withDevices are devices of nodes, and a claim for each of some Pods; none if nodes have no devices.
func withDevices(nodes, each int, prefix string, pods int) []runtime.Object {
	if each == 0 {
		return nil
	}
	objects := []runtime.Object{deviceClass()}
	for i := range nodes {
		objects = append(objects, devices(fmt.Sprintf("node-%d", i), each))
	}
	for i := range pods {
		objects = append(objects, deviceClaims(fmt.Sprintf("%s-%d", prefix, i))...)
	}
	return objects
}

// BenchmarkWithoutAGroup is kube-scheduler with as many Pods, one by one: what BenchmarkPlace is measured against.
func BenchmarkWithoutAGroup(b *testing.B) {
	for name, bc := range map[string]struct {
		nodes, devices int
		option         func(i int) podOption
	}{
		"1000 spread over 5000 nodes":                       {nodes: 5000, option: spreadOverHosts},
		"1000 with a claim each on 1000 nodes of 1 device":  {nodes: 1000, devices: 1, option: withClaim},
		"1000 with a claim each on 1000 nodes of 8 devices": {nodes: 1000, devices: 8, option: withClaim},
	} {
		b.Run(name, func(b *testing.B) {
			w := newWorld(b, withDevices(bc.nodes, bc.devices, "pod", 1000)...)
			w.verbosity = 0
			w.start()()
			for _, object := range makeNodes("node", bc.nodes, 8) {
				w.sched.Cache.AddNode(klog.Background(), object.(*corev1.Node))
			}
			var pods []*corev1.Pod
			for i := range 1000 {
				pods = append(pods, makePod(fmt.Sprintf("pod-%d", i), bc.option(i)))
			}
			o := &oracle{world: w}
			ctx := klog.NewContext(b.Context(), klog.Background())
			report := cputime.Start(b)
			for b.Loop() {
				if _, ok := o.oneByOne(ctx, pods); !ok {
					b.Fatal("a Pod found no place")
				}
			}
			report(b.N)
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

// BenchmarkFindVictims is the search of a gang for room on full nodes, all or some of whose
// Pods it outranks.
func BenchmarkFindVictims(b *testing.B) {
	for name, bc := range map[string]struct {
		// On each of the nodes are as many Pods as it has CPUs, all of which the gang outranks on as many nodes as
		// outranked says.
		nodes, pods, outranked int
		// members of the gang ask for so many CPUs, and more by their number if they are of several classes.
		members, cpu, classes int
		victims               int // 0: it is not known how few
	}{
		"500 over 500 on 1000 nodes":               {nodes: 1000, pods: 1, outranked: 500, members: 500, cpu: 1, classes: 1, victims: 500},
		"1000 on 5000 nodes of 30 Pods":            {nodes: 5000, pods: 30, outranked: 5000, members: 1000, cpu: 1, classes: 1, victims: 1000},
		"1000 of 4 sizes on 5000 nodes of 30 Pods": {nodes: 5000, pods: 30, outranked: 5000, members: 1000, cpu: 1, classes: 4},
		"9750 over 39000 on 10000 nodes":           {nodes: 10000, pods: 4, outranked: 10000, members: 9750, cpu: 4, classes: 1, victims: 39000},
	} {
		b.Run(name, func(b *testing.B) {
			w := newWorld(b)
			w.args = `{"cycleTimeout":"60s"}` // the machine may be busy
			stop := w.start()
			stop()
			for i, object := range makeNodes("node", bc.nodes, bc.pods) {
				w.sched.Cache.AddNode(klog.Background(), object.(*corev1.Node))
				for p := range bc.pods {
					priority := int32(0)
					if i >= bc.outranked {
						priority = 100
					}
					pod := makePod(fmt.Sprintf("pod-%d-%d", i, p), onNode(fmt.Sprintf("node-%d", i)), ofPriority(priority))
					if err := w.sched.Cache.AddPod(klog.Background(), pod); err != nil {
						b.Fatal(err)
					}
				}
			}
			var members []runtime.Object
			for i := range bc.members {
				cpu := fmt.Sprint(bc.cpu + i%bc.classes)
				members = append(members, makePod(fmt.Sprintf("gang-%d", i), inGroup("gang"), ofPriority(10), func(w *schedulertesting.PodWrapper) {
					w.Spec.Containers = nil
					w.Req(map[corev1.ResourceName]string{corev1.ResourceCPU: cpu})
				}))
			}
			view := viewOf(makeGroup("gang", int32(bc.members)), members)
			view.Rank, view.MayPreempt = queue.Rank{Priority: 10}, true
			engine := w.engine()
			ctx := klog.NewContext(b.Context(), klog.Background())
			for b.Loop() {
				out, err := engine.plan(ctx, &view, false)
				if err != nil || len(out.Victims) == 0 || bc.victims > 0 && len(out.Victims) != bc.victims {
					b.Fatalf("%d victims: %v, %v", len(out.Victims), out.Shortfall, err)
				}
				b.ReportMetric(float64(len(out.Victims)), "victims")
			}
		})
	}
}

// BenchmarkInTime reserves room for one gang of 64 whole nodes, among 100,000 Pods on 20,000 nodes. The Pods of a node end together, or
// each when it likes. Then the gang renews the reservation as often, and is refused as often without the right to one.
func BenchmarkInTime(b *testing.B) {
	for name, apart := range map[string]int{"nodes of one job each": 0, "nodes of five jobs": 104729} {
		b.Run(name, func(b *testing.B) {
			w := newWorld(b)
			w.args = `{"cycleTimeout":"60s"}` // the machine may be busy
			stop := w.start()
			stop()
			for i, object := range makeNodes("node", 20_000, 5) {
				w.sched.Cache.AddNode(klog.Background(), object.(*corev1.Node))
				for p := range 5 {
					pod := makePod(fmt.Sprintf("pod-%d-%d", i, p), onNode(fmt.Sprintf("node-%d", i)), func(w *schedulertesting.PodWrapper) {
						w.Annotation(schedulingv1alpha1.AnnotationExpectedRuntime, fmt.Sprint(60+(i*7919+p*apart)%86400))
					})
					if err := w.sched.Cache.AddPod(klog.Background(), pod); err != nil {
						b.Fatal(err)
					}
				}
			}
			view := viewOf(makeGroup("gang", 64), makeMembers("gang", 64, plusCores("4")))
			view.First = true
			engine := w.engine()
			ctx := klog.NewContext(b.Context(), klog.Background())
			reserve := func(own *room.Reservation) (*room.Reservation, time.Duration) {
				view.own = own
				began := time.Now()
				out, err := engine.plan(ctx, &view, false)
				if err != nil || out.Reservation == nil || out.Reservation.From.IsZero() {
					b.Fatalf("%+v, %v, %v", out.Reservation, out.Shortfall, err)
				}
				return out.Reservation, time.Since(began)
			}
			var own *room.Reservation
			var searched, renewed time.Duration
			report := cputime.Start(b)
			for b.Loop() {
				var took time.Duration
				own, took = reserve(nil)
				searched += took
			}
			report(b.N)
			for range b.N {
				_, took := reserve(own)
				renewed += took
			}
			view.own, view.First, view.MayPreempt = nil, false, true // all Pods have its priority
			began := time.Now()
			for range b.N {
				if out, err := engine.plan(ctx, &view, false); err != nil || out.Reservation != nil {
					b.Fatalf("%+v, %v", out.Reservation, err)
				}
			}
			refused := time.Since(began)
			b.ReportMetric((searched-refused).Seconds()*1000/float64(b.N), "search-ms/op")
			b.ReportMetric((renewed-refused).Seconds()*1000/float64(b.N), "renew-ms/op")
			b.ReportMetric(refused.Seconds()*1000/float64(b.N), "refused-ms/op")
		})
	}
}

// BenchmarkBehindAReservation plans a gang of eight on 5000 nodes of eight cores. Room for another gang is reserved on so many
// of them, and so many others are idle.
func BenchmarkBehindAReservation(b *testing.B) {
	for name, bc := range map[string]struct{ reserved, idle int }{
		"of no node, and is placed":     {reserved: 0, idle: 100},
		"of 2000 nodes, and is placed":  {reserved: 2000, idle: 100},
		"of 2000 nodes, and is refused": {reserved: 2000},
	} {
		b.Run(name, func(b *testing.B) {
			w := newWorld(b)
			w.args = `{"cycleTimeout":"60s"}` // the machine may be busy
			w.verbosity = 0
			w.start()()
			var members []*framework.PodInfo
			for i, object := range makeNodes("node", 5000, 8) {
				w.sched.Cache.AddNode(klog.Background(), object.(*corev1.Node))
				pod := makePod(fmt.Sprintf("pod-%d", i), onNode(fmt.Sprintf("node-%d", i)), plusCores("7"))
				switch {
				case i < bc.reserved:
					members = append(members, podsOn(b, pod)...)
				case i >= bc.reserved+bc.idle:
					if err := w.sched.Cache.AddPod(klog.Background(), pod); err != nil {
						b.Fatal(err)
					}
				}
			}
			engine := w.engine()
			if len(members) > 0 {
				engine.room.Keep(room.New(gangAhead(), room.InTime, members, nil, time.Now().Add(time.Hour)))
			}
			view := viewOf(makeGroup("gang", 8), makeMembers("gang", 8, plusCores("7")))
			ctx := klog.NewContext(b.Context(), klog.Background())
			report := cputime.Start(b)
			for b.Loop() {
				out, err := engine.plan(ctx, &view, false)
				if err != nil || len(out.Placements) > 0 != (bc.idle > 0) {
					b.Fatalf("%d are placed: %v, %v", len(out.Placements), out.Shortfall, err)
				}
				for _, p := range out.Placements {
					kube.UndoReserve(ctx, p.Profile, p.State, p.Assumed.Pod, p.Node)
				}
			}
			report(b.N)
		})
	}
}
