// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/line"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/place"
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

// TestAnOutcomeIsNothingButWords: a gang of two is planned on two nodes of a core each, and
// nothing is different after that.
func TestAnOutcomeIsNothingButWords(t *testing.T) {
	tests := map[string]struct {
		runs   []*corev1.Pod
		change func(*place.Gang)
		// ahead is a gang for which a node is kept.
		ahead bool
		want  func(place.Outcome) bool
	}{
		"it has its place": {
			want: func(out place.Outcome) bool {
				return len(out.Placements) == 2 && out.Shortfall == nil && out.Claim == nil
			},
		},
		"others are to be evicted": {
			runs:   []*corev1.Pod{makePod("low-0", onNode("node-0")), makePod("low-1", onNode("node-1"))},
			change: func(g *place.Gang) { g.Rank.Priority, g.MayPreempt = 10, true },
			want: func(out place.Outcome) bool {
				_, reserved := out.Claim.(*room.Reservation)
				return len(out.Victims) == 2 && reserved && out.Again.Equal(out.Claim.End())
			},
		},
		"room is to be held back": {
			runs:   []*corev1.Pod{makePod("job-0", onNode("node-0")), makePod("job-1", onNode("node-1"))},
			change: func(g *place.Gang) { g.Starving, g.StarvationAfter = true, time.Minute },
			want: func(out place.Outcome) bool {
				_, barred := out.Claim.(*room.Barrier)
				return len(out.Victims) == 0 && barred && out.Helpless == 0
			},
		},
		"no room can be held back": {
			runs:   []*corev1.Pod{makePod("service-0", onNode("node-0"), ofService)},
			change: func(g *place.Gang) { g.Starving, g.StarvationAfter = true, time.Minute },
			want:   func(out place.Outcome) bool { return out.Claim == nil && out.Helpless == time.Minute },
		},
		"room is kept for another one": {
			ahead: true,
			want: func(out place.Outcome) bool {
				return len(out.Placements) == 0 && strings.Contains(out.Shortfall.Message, "room is held back for PodGroup "+testNamespace+"/ahead")
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
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
				ahead := room.Gang{Rank: line.Rank{Key: gangNamed("ahead"), Priority: 20}}
				engine.room.Keep(room.NewVacancy(ahead, []*framework.PodInfo{member}, nil, time.Now().Add(time.Hour)))
			}
			if err := engine.sched.UpdateSnapshot(klog.Background()); err != nil {
				t.Fatal(err)
			}
			view := viewOf(makeGroup("gang", 2), makeMembers("gang", 2))
			if tc.change != nil {
				tc.change(&view.Gang)
			}
			before, writes, claims := w.picture(), w.writes(), engine.room.InOrder()
			out, err := engine.plan(t.Context(), &view, nil)
			if err != nil || !tc.want(out) {
				t.Errorf("the outcome is %+v, %v", out, err)
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
	}
}
