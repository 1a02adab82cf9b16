// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package victims

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
)

// one is a unit of one Pod.
func one(name string, pod int, priority int32, lost time.Duration) Unit {
	return Unit{Name: name, Priority: priority, Lost: lost, Pods: []int{pod}}
}

// onNodes are Pods of one core on the given nodes.
func onNodes(nodes ...int) []Pod {
	pods := make([]Pod, len(nodes))
	for i, n := range nodes {
		pods[i] = Pod{Node: n, Request: []int64{1}}
	}
	return pods
}

// emptied is a cluster of nodes with a number of cores each, before Pods take any.
func emptied(cores ...int64) *planner.World {
	world := &planner.World{Resources: []string{"cpu"}}
	for i, n := range cores {
		world.Nodes = append(world.Nodes, planner.Node{Name: fmt.Sprint(i), Free: []int64{n}})
	}
	return world
}

// gangOf is a gang of n members with a number of cores.
func gangOf(n int, cores int64) *planner.Gang {
	return &planner.Gang{Min: n, Classes: []planner.Class{{Count: n, Request: []int64{cores}}}}
}

// best are the units that the first choice takes as a whole, if there is one.
func best(units []Unit, choices []Choice) ([]int, bool) {
	if len(choices) == 0 {
		return nil, false
	}
	return unitsOf(units, choices[0]), true
}

// unitsOf are the units of which a choice takes all Pods, and that are not part of
// another such unit.
func unitsOf(units []Unit, choice Choice) []int {
	var all []int
	for u := range units {
		within := func(pods []int) bool {
			return !slices.ContainsFunc(units[u].Pods, func(p int) bool { return !slices.Contains(pods, p) })
		}
		part := slices.ContainsFunc(units, func(other Unit) bool {
			return len(other.Pods) > len(units[u].Pods) && within(other.Pods) &&
				!slices.ContainsFunc(other.Pods, func(p int) bool { return !slices.Contains(choice.Pods, p) })
		})
		if within(choice.Pods) && !part {
			all = append(all, u)
		}
	}
	return all
}

// racked gives each node its rack, which the gang must not leave.
func racked(world *planner.World, gang *planner.Gang, racks ...string) (*planner.World, *planner.Gang) {
	for n, rack := range racks {
		world.Nodes[n].Domains = []string{rack}
	}
	gang.Levels = []planner.Level{{Key: "rack", Required: true}}
	return world, gang
}

// TestSearchInDomains: a gang of two cores is to have them in one rack.
func TestSearchInDomains(t *testing.T) {
	tests := map[string]struct {
		pods  []Pod
		units []Unit
		want  [][]string // the choices
	}{
		"the rack where the least work is lost, though the work is older": {
			// Rack a would lose two Pods of 40 minutes, rack b one of an hour.
			pods:  append(onNodes(0, 1), Pod{Node: 2, Request: []int64{1}}),
			units: []Unit{one("a0", 0, 0, 40*time.Minute), one("a1", 1, 0, 40*time.Minute), one("b0", 2, 0, time.Hour)},
			want:  [][]string{{"b0"}, {"a0", "a1"}},
		},
		"the rack whose work has the lower priority, however much it is": {
			pods:  onNodes(0, 1, 2),
			units: []Unit{one("a0", 0, 0, time.Hour), one("a1", 1, 0, time.Hour), one("b0", 2, 1, time.Minute)},
			want:  [][]string{{"a0", "a1"}, {"b0"}},
		},
		"a gang in both racks counts with all its work": {
			pods:  onNodes(0, 1, 2),
			units: []Unit{{Name: "both", Lost: 3 * time.Hour, Pods: []int{1, 2}}, one("a0", 0, 0, time.Hour)},
			want:  [][]string{{"both"}, {"both", "a0"}},
		},
		"a rack that can't be made to fit is no choice": {
			pods:  onNodes(0, 1, 2),
			units: []Unit{one("a0", 0, 0, 0), one("b0", 2, 0, time.Hour)},
			want:  [][]string{{"b0"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			// Two nodes of one core in rack a, one of two cores in rack b.
			world, gang := racked(emptied(1, 1, 2), gangOf(2, 1), "a", "a", "b")
			taken := make([]bool, len(tc.pods))
			for _, u := range tc.units {
				for _, p := range u.Pods {
					taken[p] = true
				}
			}
			for _, u := range tc.units {
				for _, p := range u.Pods {
					tc.pods[p].Lost = u.Lost / time.Duration(len(u.Pods))
				}
			}
			for p := range tc.pods { // what no unit has stays
				if !taken[p] {
					world.Nodes[tc.pods[p].Node].Free[0]--
					tc.pods[p].Request = []int64{0}
				}
			}
			var got [][]string
			for _, choice := range Search(world, gang, tc.pods, tc.units, nil) {
				var names []string
				for _, u := range unitsOf(tc.units, choice) {
					names = append(names, tc.units[u].Name)
				}
				got = append(got, names)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("choices (-want, +got):\n%s", diff)
			}
		})
	}
}

// TestSearchSparesMembers: of a gang of four, two on each of two nodes, the one
// member that can be spared is the one that is in the way, though it has run the
// longest.
func TestSearchSparesMembers(t *testing.T) {
	pods := onNodes(0, 0, 1, 1)
	pods[0].Lost = time.Hour
	gang := gangOf(1, 1)
	gang.Classes[0].Eligible = []bool{true, false}
	tests := map[string]struct {
		spare int
		want  []int
	}{
		"one member can be spared":  {spare: 1, want: []int{1}},
		"no member can be spared":   {spare: 0, want: []int{0, 1, 2, 3}},
		"all members can be spared": {spare: 4, want: []int{1}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			whole := Unit{Name: "gang", Lost: time.Hour, Pods: []int{3, 2, 1, 0}, Spares: func(pods []int) bool { return len(pods) <= tc.spare }}
			units := []Unit{whole}
			if tc.spare == 1 {
				units = append(units, one("the youngest", 3, 0, 0))
			}
			choices := Search(emptied(2, 2), gang, pods, units, nil)
			if len(choices) != 1 {
				t.Fatalf("%d choices, want one", len(choices))
			}
			if diff := cmp.Diff(tc.want, choices[0].Pods); diff != "" {
				t.Errorf("taken (-want, +got):\n%s", diff)
			}
		})
	}
}

func TestSearch(t *testing.T) {
	tests := map[string]struct {
		world *planner.World
		gang  *planner.Gang
		pods  []Pod
		units []Unit
		want  []string
		never bool
	}{
		"nothing is taken from anybody if the gang fits": {
			world: emptied(3), gang: gangOf(1, 1), pods: onNodes(0, 0),
			units: []Unit{one("a", 0, 0, 0), one("b", 1, 0, 0)},
		},
		"nothing is taken in vain": {
			world: emptied(2), gang: gangOf(3, 1), pods: onNodes(0, 0),
			units: []Unit{one("a", 0, 0, 0), one("b", 1, 0, 0)},
			never: true,
		},
		"the lowest priority goes first": {
			world: emptied(3), gang: gangOf(1, 1), pods: onNodes(0, 0, 0),
			units: []Unit{one("mid", 0, 5, 0), one("low", 1, 1, time.Hour), one("high", 2, 9, 0)},
			want:  []string{"low"},
		},
		"of equal priority the one that has run the shortest": {
			world: emptied(3), gang: gangOf(1, 1), pods: onNodes(0, 0, 0),
			units: []Unit{one("old", 0, 0, 2*time.Hour), one("new", 1, 0, time.Minute), one("older", 2, 0, 3*time.Hour)},
			want:  []string{"new"},
		},
		"one that a budget protects goes last": {
			world: emptied(2), gang: gangOf(1, 1), pods: onNodes(0, 0),
			units: []Unit{{Name: "protected", Violations: 1, Pods: []int{0}}, one("dearer", 1, 5, time.Hour)},
			want:  []string{"dearer"},
		},
		"a protected one goes if nothing else helps": {
			world: emptied(2, 1), gang: gangOf(1, 2), pods: onNodes(0, 1),
			units: []Unit{{Name: "protected", Violations: 1, Pods: []int{0}}, one("useless", 1, 0, 0)},
			want:  []string{"protected"},
		},
		"cheap units that don't help are spared": {
			world: emptied(2, 4), gang: gangOf(1, 3), pods: append(onNodes(0, 0), Pod{Node: 1, Request: []int64{3}}),
			units: []Unit{one("cheap-0", 0, 0, 0), one("cheap-1", 1, 0, 0), one("dear", 2, 5, 0)},
			want:  []string{"dear"},
		},
		"the surplus of a gang before the gang": {
			world: emptied(4), gang: gangOf(1, 1), pods: onNodes(0, 0, 0, 0),
			units: []Unit{{Name: "gang", Pods: []int{0, 1, 2, 3}}, one("surplus", 3, 0, 0)},
			want:  []string{"surplus"},
		},
		"the gang if its surplus does not do": {
			world: emptied(4), gang: gangOf(2, 1), pods: onNodes(0, 0, 0, 0),
			units: []Unit{{Name: "gang", Pods: []int{0, 1, 2, 3}}, one("surplus", 3, 0, 0)},
			want:  []string{"gang"},
		},
		"a small gang rather than a large one": {
			world: emptied(6), gang: gangOf(2, 1), pods: onNodes(0, 0, 0, 0, 0, 0),
			units: []Unit{
				{Name: "large", Lost: 4 * time.Hour, Pods: []int{0, 1, 2, 3}},
				{Name: "small", Lost: 2 * time.Hour, Pods: []int{4, 5}},
			},
			want: []string{"small"},
		},
		"whole nodes, where members need them": {
			world: emptied(2, 2, 2), gang: gangOf(1, 2), pods: onNodes(0, 0, 1, 1, 2, 2),
			units: []Unit{
				one("a0", 0, 0, 6), one("a1", 1, 0, 1), one("b0", 2, 0, 5), one("b1", 3, 0, 2), one("c0", 4, 0, 4), one("c1", 5, 0, 3),
			},
			want: []string{"c0", "c1"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			chosen, ok := best(tc.units, Search(tc.world, tc.gang, tc.pods, tc.units, nil))
			if ok == tc.never {
				t.Fatalf("ok is %v", ok)
			}
			var got []string
			for _, i := range chosen {
				got = append(got, tc.units[i].Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("taken (-want, +got):\n%s", diff)
			}
		})
	}
}

// TestChooseHoldsItsPromises checks random worlds against all subsets of units.
func TestChooseHoldsItsPromises(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	least, more := 0, 0
	for range 3000 {
		world := emptied(1+r.Int64N(4), 1+r.Int64N(4), 1+r.Int64N(4))
		var pods []Pod
		var units []Unit
		for p := range r.IntN(9) {
			pods = append(pods, Pod{Node: r.IntN(3), Request: []int64{1 + r.Int64N(2)}})
			units = append(units, one(fmt.Sprint(p), p, r.Int32N(3), time.Duration(r.IntN(4))))
		}
		gang := gangOf(1+r.IntN(4), 1+r.Int64N(2))
		fits := func(subset int) bool {
			left := emptied(world.Nodes[0].Free[0], world.Nodes[1].Free[0], world.Nodes[2].Free[0])
			for p := range pods {
				if subset&(1<<p) == 0 {
					left.Nodes[pods[p].Node].Free[0] -= pods[p].Request[0]
				}
			}
			return slices.ContainsFunc(planner.Candidates(left, gang), func(nodes []int) bool {
				return planner.FitsOn(left, gang, nodes)
			})
		}
		highest, fewest := int32(99), 99
		for subset := range 1 << len(units) {
			if fits(subset) {
				top, n := int32(-1), 0
				for u := range units {
					if subset&(1<<u) != 0 {
						top, n = max(top, units[u].Priority), n+1
					}
				}
				highest, fewest = min(highest, top), min(fewest, n)
			}
		}
		chosen, ok := best(units, Search(world, gang, pods, units, nil))
		if ok != (fewest < 99) {
			t.Fatalf("found %v, want %v: %v %v %v", ok, fewest < 99, world, gang, units)
		}
		if !ok {
			continue
		}
		subset, top := 0, int32(-1)
		for _, u := range chosen {
			subset |= 1 << u
			top = max(top, units[u].Priority)
		}
		if !fits(subset) {
			t.Fatalf("taken %v in vain", chosen)
		}
		if top > highest {
			t.Fatalf("taken %v of priority %d, but %d is enough", chosen, top, highest)
		}
		for _, u := range chosen {
			if fits(subset &^ (1 << u)) {
				t.Fatalf("unit %d of %v is taken in vain", u, chosen)
			}
		}
		least, more = least+fewest, more+len(chosen)-fewest
	}
	t.Logf("%d units taken beyond the %d that the smallest choices of any priority take", more, least)
}

// TestSearchOutOfTime searches with no time to make the choice minimal: the gang fits with it, and nothing dearer is
// taken than with time, but nothing that its places do not need.
func TestSearchOutOfTime(t *testing.T) {
	world := emptied(3, 3, 3, 3)
	var pods []Pod
	var units []Unit
	for p := range 12 {
		pods = append(pods, Pod{Node: p % 4, Request: []int64{1}})
		units = append(units, one(fmt.Sprint(p), p, int32(p/8), time.Duration(p)))
	}
	gang := &planner.Gang{Min: 3, Classes: []planner.Class{{Count: 2, Request: []int64{1}}, {Count: 1, Request: []int64{2}}}}
	for name, isOver := range map[string]func() bool{"with time": nil, "without": func() bool { return true }} {
		t.Run(name, func(t *testing.T) {
			choices := Search(world, gang, pods, units, isOver)
			if len(choices) != 1 || len(choices[0].Pods) != 4 || choices[0].highest != 0 {
				t.Fatalf("choices %+v, want one of 4 Pods of priority 0", choices)
			}
		})
	}
}

// TestSearchScales has the largest search be a matter of a moment: 39,000 victims of 40,000 Pods, and 1000 members
// of four sizes among 150,000 Pods.
func TestSearchScales(t *testing.T) {
	tests := map[string]struct {
		nodes, perNode int
		gang           *planner.Gang
		want           int
	}{
		"one class":    {10000, 4, gangOf(9750, 4), 39000},
		"four classes": {5000, 30, &planner.Gang{Min: 1000}, 2500},
	}
	for i := range int64(4) {
		tests["four classes"].gang.Classes = append(tests["four classes"].gang.Classes, planner.Class{Count: 250, Request: []int64{1 + i}})
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			world := &planner.World{Resources: []string{"cpu"}}
			var pods []Pod
			var units []Unit
			for n := range tc.nodes {
				world.Nodes = append(world.Nodes, planner.Node{Free: []int64{int64(tc.perNode)}})
				for range tc.perNode {
					units = append(units, one(fmt.Sprint(len(pods)), len(pods), 0, time.Duration(len(pods)%977)))
					pods = append(pods, Pod{Node: n, Request: []int64{1}})
				}
			}
			asked, start := 0, time.Now()
			choices := Search(world, tc.gang, pods, units, func() bool {
				asked++
				return asked > 100
			})
			t.Logf("took %v", time.Since(start))
			if len(choices) != 1 || len(choices[0].Pods) != tc.want {
				t.Fatalf("%d choices of %d victims, want one of %d", len(choices), len(choices[0].Pods), tc.want)
			}
		})
	}
}

// TestTheGangThatHasRunForLongestIsTakenLast, also if its Pods have run for more than 292 years together, which is more
// than a Duration holds.
func TestTheGangThatHasRunForLongestIsTakenLast(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	ran := func(name string, ago time.Duration) Unit {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PodStatus{StartTime: &metav1.Time{Time: now.Add(-ago)}}}
		prey := Prey{Now: now}
		group := &dialect.Group{}
		group.Spec.Minimum.Members = 10_000
		prey.AddGang(group, podgroup.Tally{Total: 10_000}, 0, slices.Repeat([]*corev1.Pod{pod}, 10_000))
		return prey.Units[0]
	}
	old, young := ran("old", 11*24*time.Hour), ran("young", time.Hour)
	if Compare(&young, &old) >= 0 {
		t.Errorf("the Pods of the old gang have run for %v together, and it is taken before the other one, of %v", old.Lost, young.Lost)
	}
}
