// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/place"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
)

// picture is what is on the nodes as plugins see them.
func (w *world) picture() map[string]string {
	w.t.Helper()
	nodes, err := w.engine().snapshot.List()
	if err != nil {
		w.t.Fatal(err)
	}
	picture := make(map[string]string)
	for _, node := range nodes {
		var pods []string
		for _, pod := range node.GetPods() {
			pods = append(pods, pod.GetPod().Name)
		}
		slices.Sort(pods)
		picture[node.Node().Name] = fmt.Sprintf("%s of %d millicores", strings.Join(pods, ", "), node.GetRequested().GetMilliCPU())
	}
	return picture
}

// writes is how many requests that change something the API server has had.
func (w *world) writes() int {
	n := 0
	for _, action := range w.kube.Actions() {
		if verb := action.GetVerb(); verb != "get" && verb != "list" && verb != "watch" {
			n++
		}
	}
	return n
}

// ledger is a plugin that sets something aside for each Pod that has a node, as those of
// volumes and devices do.
type ledger struct {
	// refuses is what it says to the last member; nil for nothing.
	refuses *fwk.Status
	// thinks is how long it takes for each Pod.
	thinks time.Duration
	// has are the Pods for which something is set aside.
	has map[string]bool
}

func (*ledger) Name() string { return "Ledger" }

func (l *ledger) Reserve(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) *fwk.Status {
	time.Sleep(l.thinks)
	if l.refuses != nil && pod.Name == "gang-1" {
		return l.refuses
	}
	l.has[pod.Name] = true
	return nil
}

func (l *ledger) Unreserve(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) {
	delete(l.has, pod.Name)
}

// TestAnOutcomeIsNothingButWords: a gang of two is planned on two nodes of a core each, and
// nothing is different after that, but for what is set aside for the places that it is given.
func TestAnOutcomeIsNothingButWords(t *testing.T) {
	preempts := func(g *place.Gang) { g.Rank.Priority, g.MayPreempt = 10, true }
	low := []*corev1.Pod{makePod("low-0", onNode("node-0")), makePod("low-1", onNode("node-1"))}
	refuses := &ledger{refuses: fwk.NewStatus(fwk.Unschedulable, "no device is left")}
	fails := &ledger{refuses: fwk.NewStatus(fwk.Error, "the list of devices is broken")}
	const cycleTimeout = 100 * time.Millisecond // the least that is allowed
	slow := &ledger{thinks: 2 * cycleTimeout}
	isRefused := func(why string) func(place.Outcome) bool {
		return func(out place.Outcome) bool {
			return out.Shortfall != nil && strings.Contains(out.Shortfall.Message, why) && !out.Shortfall.Overdue && len(out.Victims) == 0
		}
	}
	isOverdue := func(out place.Outcome) bool {
		return out.Shortfall != nil && out.Shortfall.Overdue && len(out.Victims) == 0
	}
	tests := map[string]struct {
		runs   []*corev1.Pod
		change func(*place.Gang)
		// ahead is a gang for which a node is kept.
		ahead bool
		// beside is a plugin; without one it is one that refuses nothing.
		beside *ledger
		want   func(place.Outcome) bool
		// wantError is a part of the error; empty for none.
		wantError string
	}{
		"it has its place": {
			want: func(out place.Outcome) bool {
				return len(out.Placements) == 2 && out.Shortfall == nil && out.Reservation == nil
			},
		},
		"others are to be evicted": {
			runs: low, change: preempts,
			want: func(out place.Outcome) bool {
				reserved := out.Reservation != nil && out.Reservation.Evicted
				return len(out.Victims) == 2 && reserved && out.Again.Equal(out.Reservation.End)
			},
		},
		"resources are to be reserved": {
			runs:   []*corev1.Pod{makePod("job-0", onNode("node-0")), makePod("job-1", onNode("node-1"))},
			change: func(g *place.Gang) { g.First = true },
			want: func(out place.Outcome) bool {
				barred := out.Reservation != nil && out.Reservation.Reason == room.InTime
				return len(out.Victims) == 0 && barred && out.Helpless == 0
			},
		},
		"nothing can be reserved": {
			runs:   []*corev1.Pod{makePod("service-0", onNode("node-0"), ofService)},
			change: func(g *place.Gang) { g.First = true },
			want:   func(out place.Outcome) bool { return out.Reservation == nil && out.Helpless > 0 },
		},
		"room is kept for another one": {
			ahead: true,
			want: func(out place.Outcome) bool {
				return len(out.Placements) == 0 && strings.Contains(out.Shortfall.Message, "resources are reserved for PodGroup "+testNamespace+"/ahead")
			},
		},
		"a Reserve plugin refuses a member":                             {beside: refuses, want: isRefused("no device is left")},
		"a Reserve plugin refuses a member while the eviction is tried": {runs: low, change: preempts, beside: refuses, want: isRefused("short of 2 cpu")},
		"a plugin fails for a member":                                   {beside: fails, wantError: "the list of devices is broken"},
		"a plugin fails for a member while the eviction is tried":       {runs: low, change: preempts, beside: fails, wantError: "the list of devices is broken"},
		"it takes too long":                                             {beside: slow, want: isOverdue},
		"it takes too long while the eviction is tried":                 {runs: low, change: preempts, beside: slow, want: isOverdue},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t)
				beside := ledger{has: make(map[string]bool)}
				if tc.beside != nil {
					beside.refuses, beside.thinks = tc.beside.refuses, tc.beside.thinks
				}
				w.others = []fwk.Plugin{&beside}
				w.args = fmt.Sprintf(`{"cycleTimeout":%q}`, time.Minute)
				if beside.thinks > 0 {
					w.args = fmt.Sprintf(`{"cycleTimeout":%q}`, cycleTimeout)
				}
				w.start()()
				for _, node := range makeNodes("node", 2, 1) {
					w.sched.Cache.AddNode(klog.Background(), node.(*corev1.Node))
				}
				for _, pod := range tc.runs {
					if err := w.sched.Cache.AddPod(klog.Background(), pod); err != nil {
						t.Fatal(err)
					}
				}
				engine := w.engine()
				if tc.ahead {
					member, err := framework.NewPodInfo(makePod("ahead-0", inGroup("ahead"), onNode("node-0")))
					if err != nil {
						t.Fatal(err)
					}
					ahead := room.Gang{Rank: queue.Rank{Key: gangNamed("ahead"), Priority: 20}}
					engine.room.Keep(room.New(ahead, room.Preemption, []*framework.PodInfo{member}, nil, time.Now().Add(time.Hour)))
				}
				if err := engine.sched.UpdateSnapshot(klog.Background()); err != nil {
					t.Fatal(err)
				}
				view := viewOf(makeGroup("gang", 2), makeMembers("gang", 2))
				if tc.change != nil {
					tc.change(&view.Gang)
				}
				before, writes, claims := w.picture(), w.writes(), engine.room.InOrder()
				out, err := engine.plan(t.Context(), &view, false)
				switch {
				case tc.wantError != "":
					if err == nil || !strings.Contains(err.Error(), tc.wantError) || len(out.Placements) > 0 || out.Shortfall != nil {
						t.Errorf("the outcome is %+v, %v; want the error %s", out, err, tc.wantError)
					}
				case err != nil || !tc.want(out):
					t.Errorf("the outcome is %+v with the shortfall %+v, %v", out, out.Shortfall, err)
				}
				placed := make(map[string]bool)
				for _, p := range out.Placements {
					placed[p.Pod.Name] = true
				}
				if diff := cmp.Diff(placed, beside.has); diff != "" {
					t.Errorf("the plugin has set something aside for others (-placed, +set aside):\n%s", diff)
				}
				if diff := cmp.Diff(before, w.picture()); diff != "" {
					t.Errorf("the nodes are others for the plugins (-before, +after):\n%s", diff)
				}
				if n := w.writes() - writes; n != 0 {
					t.Errorf("the API server has had %d writes", n)
				}
				if !slices.Equal(claims, engine.room.InOrder()) {
					t.Errorf("room is kept that was not, or not any more")
				}
				for _, pod := range tc.runs {
					if engine.evictions.IsLeaving(pod, time.Now()) {
						t.Errorf("%s is taken to be leaving", pod.Name)
					}
				}
			})
		})
	}
}
