// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// firstPlan is the best plan, or nil.
func firstPlan(world *World, gang *Gang) *Plan {
	for plan := range Plans(world, gang) {
		return &plan
	}
	return nil
}

// show writes a plan as "class@node=count", by names.
func show(world *World, plan *Plan) string {
	if plan == nil {
		return "none"
	}
	var parts []string
	for _, a := range plan.Assignments {
		parts = append(parts, fmt.Sprintf("%d@%s=%d", a.Class, world.Nodes[a.Node].Name, a.Count))
	}
	return strings.Join(parts, " ")
}

// nodes makes nodes n0, n1, … with so much free CPU.
func nodes(cpu ...int64) []Node {
	var all []Node
	for i, free := range cpu {
		all = append(all, Node{Name: fmt.Sprintf("n%d", i), Free: []int64{free}})
	}
	return all
}

// in puts nodes into domains, one letter of domains for each node.
func in(all []Node, domains ...string) []Node {
	for i := range all {
		all[i].Domains = nil
		for _, d := range domains {
			name := string(d[i])
			if name == "-" {
				name = ""
			}
			all[i].Domains = append(all[i].Domains, name)
		}
	}
	return all
}

func TestPlans(t *testing.T) {
	workers := func(n int, cpu int64) Class { return Class{Role: "worker", Count: n, Request: []int64{cpu}} }
	tests := map[string]struct {
		nodes []Node
		gang  Gang
		want  string
	}{
		"a gang that fits is placed whole": {
			nodes: nodes(2, 2),
			gang:  Gang{Min: 4, Classes: []Class{workers(4, 1)}},
			want:  "0@n0=2 0@n1=2",
		},
		"of nodes with room for one member, the one is taken of which nothing is left": {
			nodes: nodes(8, 3, 2),
			gang:  Gang{Min: 1, Classes: []Class{workers(1, 2)}},
			want:  "0@n2=1",
		},
		"one member too many, and nobody is placed": {
			nodes: nodes(2, 2),
			gang:  Gang{Min: 5, Classes: []Class{workers(5, 1)}},
			want:  "none",
		},
		"members above the minimum are placed as far as they fit": {
			nodes: nodes(2, 1),
			gang:  Gang{Min: 2, Classes: []Class{workers(5, 1)}},
			want:  "0@n0=2 0@n1=1",
		},
		"fewer members than the minimum are not placed": {
			nodes: nodes(9),
			gang:  Gang{Min: 3, Classes: []Class{workers(2, 1)}},
			want:  "none",
		},
		"the minimum of a role holds beside that of all": {
			nodes: nodes(2),
			gang: Gang{Min: 2, MinRole: map[string]int{"ps": 1}, Classes: []Class{
				workers(3, 1), {Role: "ps", Count: 1, Request: []int64{1}},
			}},
			want: "0@n0=1 1@n0=1",
		},
		"a minimum that is reached already leaves only a surplus to place": {
			nodes: nodes(1),
			gang:  Gang{Min: 0, Classes: []Class{workers(2, 1)}},
			want:  "0@n0=1",
		},
		"where not all fit, members of a higher priority are in the minimum": {
			nodes: nodes(3),
			gang:  Gang{Min: 3, Classes: []Class{workers(5, 1), {Role: "driver", Count: 1, Request: []int64{1}, Priority: 9}}},
			want:  "0@n0=2 1@n0=1",
		},
		"also if they are larger": {
			nodes: nodes(4),
			gang:  Gang{Min: 3, Classes: []Class{workers(5, 1), {Role: "driver", Count: 1, Request: []int64{2}, Priority: 9}}},
			want:  "0@n0=2 1@n0=1",
		},
		"but not if the minimum could not be held then": {
			nodes: nodes(3),
			gang:  Gang{Min: 3, Classes: []Class{workers(5, 1), {Role: "driver", Count: 1, Request: []int64{2}, Priority: 9}}},
			want:  "0@n0=3",
		},
		"of those above the minimum the ones of a higher priority are placed": {
			nodes: nodes(3),
			gang:  Gang{Min: 1, MinRole: map[string]int{"worker": 1}, Classes: []Class{workers(5, 1), {Role: "driver", Count: 2, Request: []int64{1}, Priority: 9}}},
			want:  "0@n0=1 1@n0=2",
		},
		"the minimum of a role comes before a higher priority": {
			nodes: nodes(2),
			gang:  Gang{Min: 2, MinRole: map[string]int{"worker": 2}, Classes: []Class{workers(2, 1), {Role: "driver", Count: 1, Request: []int64{1}, Priority: 9}}},
			want:  "0@n0=2",
		},
		"large members go first, small ones fill the gaps": {
			nodes: nodes(3, 3),
			gang:  Gang{Min: 4, Classes: []Class{workers(2, 1), {Role: "big", Count: 2, Request: []int64{2}}}},
			want:  "0@n0=1 0@n1=1 1@n0=1 1@n1=1",
		},
		"members with little choice go before larger ones": {
			nodes: nodes(2, 2),
			gang: Gang{Min: 2, Classes: []Class{
				{Role: "big", Count: 1, Request: []int64{2}},
				{Role: "pinned", Count: 1, Request: []int64{1}, Eligible: []bool{true, false}},
			}},
			want: "0@n1=1 1@n0=1",
		},
		"members that can't share a node get one each": {
			nodes: nodes(9, 9, 9),
			gang:  Gang{Min: 3, Classes: []Class{{Count: 3, Request: []int64{1}, PerNode: 1}}},
			want:  "0@n0=1 0@n1=1 0@n2=1",
		},
		"better nodes are filled first": {
			nodes: []Node{{Name: "n0", Free: []int64{2}}, {Name: "n1", Free: []int64{2}, Score: 7}},
			gang:  Gang{Min: 2, Classes: []Class{workers(2, 1)}},
			want:  "0@n1=2",
		},
		"a Required domain holds all, and the tightest one is taken": {
			nodes: in(nodes(2, 2, 2, 1), "aabb"),
			gang:  Gang{Min: 3, Classes: []Class{workers(3, 1)}, Levels: []Level{{Key: "rack", Required: true}}},
			want:  "0@n2=2 0@n3=1",
		},
		"no Required domain holds all, though the cluster would": {
			nodes: in(nodes(2, 2), "ab"),
			gang:  Gang{Min: 3, Classes: []Class{workers(3, 1)}, Levels: []Level{{Key: "rack", Required: true}}},
			want:  "none",
		},
		"nodes without a Required label are not used": {
			nodes: in(nodes(9, 2), "-a"),
			gang:  Gang{Min: 2, Classes: []Class{workers(2, 1)}, Levels: []Level{{Key: "rack", Required: true}}},
			want:  "0@n1=2",
		},
		"a replacement goes to the domain of its gang": {
			nodes: in(nodes(1, 9), "ab"),
			gang:  Gang{Min: 1, Classes: []Class{workers(1, 1)}, Levels: []Level{{Key: "rack", Required: true, Fixed: "b"}}},
			want:  "0@n1=1",
		},
		"a Preferred domain that holds all is used alone, the tightest first": {
			nodes: in(nodes(1, 4, 2, 1), "abcc"),
			gang:  Gang{Min: 3, Classes: []Class{workers(3, 1)}, Levels: []Level{{Key: "rack"}}},
			want:  "0@n2=2 0@n3=1",
		},
		"no Preferred domain holds all, so few are used": {
			nodes: in(nodes(1, 1, 3, 1), "abcd"),
			gang:  Gang{Min: 4, Classes: []Class{workers(4, 1)}, Levels: []Level{{Key: "rack"}}},
			want:  "0@n2=3 0@n0=1",
		},
		"a Preferred rack inside a Required zone": {
			nodes: in(nodes(4, 1, 1, 2), "xyyy", "abbc"),
			gang: Gang{Min: 2, Classes: []Class{workers(2, 1)}, Levels: []Level{
				{Key: "zone", Required: true, Fixed: "y"}, {Key: "rack"},
			}},
			want: "0@n1=1 0@n2=1",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			world := &World{Resources: []string{"cpu"}, Nodes: tc.nodes}
			if diff := cmp.Diff(tc.want, show(world, firstPlan(world, &tc.gang))); diff != "" {
				t.Errorf("plan (-want, +got):\n%s", diff)
			}
		})
	}
}

func TestPlansYieldsFurtherDomains(t *testing.T) {
	world := &World{Resources: []string{"cpu"}, Nodes: in(nodes(3, 2, 1), "abc")}
	gang := &Gang{Min: 2, Classes: []Class{{Count: 2, Request: []int64{1}}}, Levels: []Level{{Key: "rack", Required: true}}}
	var got []string
	for plan := range Plans(world, gang) {
		got = append(got, show(world, &plan))
	}
	if diff := cmp.Diff([]string{"0@n1=2", "0@n0=2"}, got); diff != "" {
		t.Errorf("plans, tightest first (-want, +got):\n%s", diff)
	}
}

func TestExplain(t *testing.T) {
	tests := map[string]struct {
		world World
		gang  Gang
		want  Shortfall
	}{
		"the scarcest resource, and how much of it": {
			world: World{Resources: []string{"cpu", "gpu"}, Nodes: []Node{
				{Free: []int64{8, 1}}, {Free: []int64{8, 2}},
			}},
			gang: Gang{Min: 5, Classes: []Class{{Role: "worker", Count: 5, Request: []int64{1, 1}}}},
			want: Shortfall{Needed: 5, Placed: 3, Most: 3, Role: "worker", Eligible: 2, Resource: "gpu", Missing: 2},
		},
		"no node admits the members": {
			world: World{Resources: []string{"cpu"}, Nodes: nodes(8)},
			gang:  Gang{Min: 1, Classes: []Class{{Count: 1, Request: []int64{1}, Eligible: []bool{false}}}},
			want:  Shortfall{Needed: 1, Resource: "cpu", Missing: 1},
		},
		"the best domain of a Required level": {
			world: World{Resources: []string{"cpu"}, Nodes: in(nodes(1, 2), "ab")},
			gang:  Gang{Min: 3, Classes: []Class{{Count: 3, Request: []int64{1}}}, Levels: []Level{{Key: "rack", Required: true}}},
			want:  Shortfall{Needed: 3, Placed: 2, Most: 2, Eligible: 1, Resource: "cpu", Missing: 1, Key: "rack", Domain: "b"},
		},
		"a better way to pack might hold more": {
			world: World{Resources: []string{"cpu"}, Nodes: nodes(6, 4, 5)},
			gang:  Gang{Min: 3, Classes: []Class{{Role: "ps", Count: 1, Request: []int64{4}}, {Role: "worker", Count: 2, Request: []int64{6}}}},
			want:  Shortfall{Needed: 3, Placed: 1, Most: 2, Role: "worker", Eligible: 3, Resource: "cpu", Missing: 12},
		},
		"no node has the label of a Required level": {
			world: World{Resources: []string{"cpu"}, Nodes: in(nodes(1), "-")},
			gang:  Gang{Min: 1, Classes: []Class{{Count: 1, Request: []int64{1}}}, Levels: []Level{{Key: "rack", Required: true}}},
			want:  Shortfall{Needed: 1, Key: "rack", NoDomain: true},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Explain(&tc.world, &tc.gang)); diff != "" {
				t.Errorf("shortfall (-want, +got):\n%s", diff)
			}
		})
	}
}

func TestPlannerHasNoClient(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dep := range strings.Lines(string(out)) {
		if strings.HasPrefix(dep, "k8s.io/") {
			t.Errorf("the planner is pure, but depends on %s", strings.TrimSpace(dep))
		}
	}
}
