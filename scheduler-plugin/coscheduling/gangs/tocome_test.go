// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

func asking(cores string) func(*schedulingv1alpha1.PodGroupSpec) {
	return func(spec *schedulingv1alpha1.PodGroupSpec) {
		spec.MinResources = map[corev1.ResourceName]resource.Quantity{"cpu": resource.MustParse(cores)}
	}
}

// cores has a Pod request n cores.
func cores(n string) podOption {
	return func(w *schedulertesting.PodWrapper) { w.Req(map[corev1.ResourceName]string{"cpu": n}) }
}

// toCome is how many cores are announced for the gang "gang" and have not come, -1 if none of its members runs.
func (b *bench) toCome() int64 {
	toCome, runs := b.ToCome(gangName, b.gangs[gangName].group.UID)
	if !runs {
		return -1
	}
	return toCome[corev1.ResourceCPU] / 1000
}

// TestMembersThatComeAreAnnouncedNoMore, and what a group asks for when its gang runs is announced by none.
func TestMembersThatComeAreAnnouncedNoMore(t *testing.T) {
	b := newBench()
	b.SetGroup(makeGroup("gang", 1, asking("13")))
	driver := makePod("driver", inGroup("gang"), cores("1"))
	b.add(driver)
	if view := b.cycle(); !view.Starts || view.ToCome[corev1.ResourceCPU] != 13000 {
		t.Errorf("it starts: %t, with %s announced; want that it does with 13 cpu", view.Starts, view.ToCome)
	}
	b.assumeAll(gangName, map[types.UID]string{driver.UID: "node"})
	steps := []struct {
		what string
		do   func()
		want int64
	}{
		{"with its driver", func() {}, 12},
		{"with an executor", func() { b.add(makePod("exec", inGroup("gang"), cores("2"), onNode("node"))) }, 10},
		{"with an executor that waits", func() { b.add(makePod("exec-2", inGroup("gang"), cores("2"))) }, 10},
		{"with one that is gated", func() { b.add(makePod("later", inGroup("gang"), cores("8"), gated)) }, 10},
		{"when the group asks for more", func() { b.SetGroup(makeGroup("gang", 1, asking("99"))) }, 10},
		{"when it asks for less", func() { b.SetGroup(makeGroup("gang", 1, asking("5"))) }, 2},
		{"when it asks for more again", func() { b.SetGroup(makeGroup("gang", 1, asking("13"))) }, 2},
		{"when all have come", func() { b.add(makePod("exec-2", inGroup("gang"), cores("2"), onNode("node"))) }, 0},
	}
	for _, step := range steps {
		if step.do(); b.toCome() != step.want {
			t.Errorf("%s %d cpu are announced, want %d", step.what, b.toCome(), step.want)
		}
	}
	if _, runs := b.ToCome(gangName, "another"); runs {
		t.Error("another group of its name runs")
	}
}

// TestAGangStartsAnew when none of its members is left. One whose members have succeeded has its minimum, so that the next one starts
// nothing.
func TestAGangStartsAnew(t *testing.T) {
	for name, tc := range map[string]struct {
		end    corev1.PodPhase
		starts bool
	}{
		"the driver has succeeded": {corev1.PodSucceeded, false},
		"the driver has failed":    {corev1.PodFailed, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			b.SetGroup(makeGroup("gang", 1, asking("13")))
			b.add(makePod("driver", inGroup("gang"), cores("1"), onNode("node")))
			b.add(makePod("driver", inGroup("gang"), cores("1"), onNode("node"), inPhase(tc.end)))
			if got := b.toCome(); got != -1 {
				t.Errorf("%d cpu are announced by a gang of which nobody is left", got)
			}
			b.SetGroup(makeGroup("gang", 1, asking("20")))
			b.add(makePod("next", inGroup("gang"), cores("1")))
			if view := b.cycle(); view.Starts != tc.starts || !view.ToCome.IsZero() != tc.starts {
				t.Errorf("it starts: %t, with %s announced; want %t", view.Starts, view.ToCome, tc.starts)
			}
		})
	}
}

// TestWhatIsAnnouncedLastsBetweenTwoStages: an initializer has succeeded, and the nodes are to come.
func TestWhatIsAnnouncedLastsBetweenTwoStages(t *testing.T) {
	succeeded := inPhase(corev1.PodSucceeded)
	b := newBench()
	b.SetGroup(makeGroup("gang", 3, asking("13")))
	b.add(makePod("init", inGroup("gang"), staged, cores("1"), onNode("node")))
	b.tick(3 * time.Second)
	b.add(makePod("init", inGroup("gang"), staged, cores("1"), onNode("node"), succeeded))
	b.tick(3 * time.Second)
	if got := b.toCome(); got != 12 {
		t.Fatalf("%d cpu are announced when the initializer has succeeded, want 12", got)
	}
	b.add(makePod("node-0", inGroup("gang"), staged, cores("6"), onNode("node")))
	if got := b.toCome(); got != 6 {
		t.Errorf("with a node %d cpu are announced, want 6", got)
	}
	for _, node := range []string{"node-0", "node-1"} {
		b.add(makePod(node, inGroup("gang"), staged, cores("6"), onNode("node"), succeeded))
	}
	if got := b.toCome(); got != -1 {
		t.Errorf("when all have succeeded %d cpu are announced, want none", got)
	}
}

// TestALargeGangPaysNoMoreForAMemberThatChanges than a small one: all other gangs wait meanwhile.
func TestALargeGangPaysNoMoreForAMemberThatChanges(t *testing.T) {
	cost := func(members int) float64 {
		b := newBench()
		b.SetGroup(makeGroup("gang", 1, asking("99999")))
		for i := range members {
			b.add(makePod(fmt.Sprint("worker-", i), inGroup("gang"), cores("1"), onNode("node")))
		}
		changed := 0
		return testing.AllocsPerRun(20, func() {
			changed++
			b.add(makePod("worker-0", inGroup("gang"), cores("1"), onNode("node"), func(w *schedulertesting.PodWrapper) { w.Label("changed", fmt.Sprint(changed)) }))
			b.toCome()
		})
	}
	if small, large := cost(10), cost(2000); large > small+50 {
		t.Errorf("a change of one member costs %.0f allocations in a gang of 10, and %.0f in one of 2000", small, large)
	}
}
