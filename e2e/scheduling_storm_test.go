//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

var (
	stormSeed   = flag.Uint64("storm-seed", 1, "what TestSchedulingStorm does")
	stormRounds = flag.Int("storm-rounds", 8, "how often it calms down")
)

// The nodes of a storm: as many at the start, each with cores.
const (
	stormNodes = 4
	stormCores = 6
)

// TestSchedulingStorm has gangs and Pods come and go, nodes be added, cordoned and
// lost, and the scheduler be killed at any moment. All that becomes of the Pods is
// read from a watch, in the order in which the API server did it, and judged:
// no node holds more than it can, no member is bound of a gang that is not
// complete, nobody is evicted for nothing above him; and when things have calmed
// down each gang is whole or not there at all, and none that fits waits. It is
// the storm of the scheduler's own tests on a real API server.
func TestSchedulingStorm(t *testing.T) {
	s := &storm{pool: newPool(t), random: rand.New(rand.NewPCG(*stormSeed, 13)), nodes: map[string]bool{}, gangs: map[string]*stormGang{}}
	cluster.CreateClass(t, "e2e-storm-high", 1000)
	for _, node := range s.addNodes(stormNodes, stormCores) {
		s.nodes[node] = true
	}
	s.record = recordPods(t, s.namespace)
	t.Logf("seed %d", *stormSeed)
	for round := range *stormRounds {
		for range 4 + s.random.IntN(8) {
			s.act()
		}
		testbed.Eventually(t, fmt.Sprintf("all promises to hold in round %d", round), func(context.Context) (bool, string, error) {
			what := s.broken()
			return what == "", what, nil
		})
		s.calm()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t.Logf("%d bindings, %d evictions, %d kills", s.binds, s.evictions, s.kills)
}

// stormGang is a PodGroup of a storm, and what it was since the last calm.
type stormGang struct {
	min, size, cores, next int
	high                   bool
	existed                bool
	// excused says that a placement may have been cut short since the last calm,
	// and not been made up for.
	excused bool
}

type storm struct {
	*pool
	*record
	random *rand.Rand
	nodes  map[string]bool // whether they may be used
	gangs  map[string]*stormGang
	made   int
	kills  int
}

// act does one thing.
func (s *storm) act() {
	s.t.Helper()
	switch n := s.random.IntN(20); {
	case n < 6:
		s.addGang()
	case n < 8:
		s.made++
		createPods(s.t, s.namespace, []*corev1.Pod{s.ordinary(fmt.Sprintf("pod%d", s.made), testbed.WithCores(1+s.random.IntN(2)))})
	case n < 10:
		s.deleteGang()
	case n < 12:
		s.deleteOne()
	case n < 15:
		s.replace()
	case n < 17:
		s.cordon()
	case n < 18:
		s.loseNode()
	default:
		s.kill()
	}
}

func (s *storm) addGang() {
	s.made++
	name := fmt.Sprintf("gang%d", s.made)
	g := &stormGang{min: 1 + s.random.IntN(6), cores: 1 + s.random.IntN(3), high: s.random.IntN(3) == 0, existed: true}
	g.size = g.min + s.random.IntN(2)
	s.gangs[name] = g
	s.expect(name, g.min)
	cluster.CreateGroup(s.t, s.namespace, name, int32(g.min))
	s.addMembers(name, g.size)
}

func (s *storm) addMembers(name string, n int) {
	g := s.gangs[name]
	change := []func(*corev1.Pod){s.here, testbed.WithCores(g.cores)}
	if g.high {
		change = append(change, ofClass("e2e-storm-high"))
	}
	pods := make([]*corev1.Pod, n)
	for i := range pods {
		pods[i] = member(name, g.next, change...)
		g.next++
	}
	createPods(s.t, s.namespace, pods)
}

// anyGang is one of the gangs, empty if there is none.
func (s *storm) anyGang() string {
	if len(s.gangs) == 0 {
		return ""
	}
	return slices.Sorted(maps.Keys(s.gangs))[s.random.IntN(len(s.gangs))]
}

func (s *storm) deleteGang() {
	name := s.anyGang()
	if name == "" {
		return
	}
	delete(s.gangs, name)
	if err := cluster.Lockstep.SchedulingV1alpha1().PodGroups(s.namespace).Delete(s.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		s.t.Fatal(err)
	}
	s.deletePods(func(pod *corev1.Pod) bool { return pod.Labels[schedulingv1alpha1.LabelPodGroup] == name })
}

// deletePods deletes those Pods that are there now.
func (s *storm) deletePods(which func(*corev1.Pod) bool) {
	list, err := cluster.Kube.CoreV1().Pods(s.namespace).List(s.t.Context(), metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	zero := int64(0)
	for i := range list.Items {
		if !which(&list.Items[i]) {
			continue
		}
		if g := s.gangs[list.Items[i].Labels[schedulingv1alpha1.LabelPodGroup]]; g != nil {
			g.excused = true
		}
		// The scheduler may be evicting it just now.
		_ = cluster.Kube.CoreV1().Pods(s.namespace).Delete(s.t.Context(), list.Items[i].Name, metav1.DeleteOptions{GracePeriodSeconds: &zero})
	}
}

func (s *storm) deleteOne() {
	n := s.random.IntN(10)
	s.deletePods(func(*corev1.Pod) bool { n--; return n == 0 })
}

// replace makes the members that a gang lacks.
func (s *storm) replace() {
	name := s.anyGang()
	if name == "" {
		return
	}
	_, all, err := gangsIn(s.t.Context(), s.namespace)
	if err != nil {
		s.t.Fatal(err)
	}
	if lacks := s.gangs[name].size - len(all[name]); lacks > 0 {
		s.addMembers(name, lacks)
	}
}

func (s *storm) anyNode() string {
	return slices.Sorted(maps.Keys(s.nodes))[s.random.IntN(len(s.nodes))]
}

// cordon cordons a node or takes that back.
func (s *storm) cordon() {
	node := s.anyNode()
	s.nodes[node] = !s.nodes[node]
	_, err := cluster.Kube.CoreV1().Nodes().Patch(s.t.Context(), node, "application/merge-patch+json",
		fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, !s.nodes[node]), metav1.PatchOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	s.excuseAll()
}

// loseNode deletes a node and its Pods, and adds another one.
func (s *storm) loseNode() {
	node := s.anyNode()
	delete(s.nodes, node)
	if err := cluster.Kube.CoreV1().Nodes().Delete(s.t.Context(), node, metav1.DeleteOptions{}); err != nil {
		s.t.Fatal(err)
	}
	s.excuseAll()
	s.deletePods(func(pod *corev1.Pod) bool { return pod.Spec.NodeName == node })
	s.nodes[s.addNodes(1, stormCores)[0]] = true
}

// excuseAll notes that any placement may have been cut short.
func (s *storm) excuseAll() {
	for _, g := range s.gangs {
		g.excused = true
	}
}

func (s *storm) kill() {
	s.excuseAll()
	if err := cluster.Kill(s.t.Context(), "scheduler"); err != nil {
		s.t.Log(err) // it is just being started
		return
	}
	s.kills++
}

// broken says which promise does not hold, empty for none.
func (s *storm) broken() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.violations) > 0 {
		s.t.Fatalf("seed %d: %s", *stormSeed, s.violations[0])
	}
	free := make(map[string]int)
	for node, usable := range s.nodes {
		if usable {
			free[node] = stormCores
		}
	}
	placed, waiting := make(map[string]int), make(map[string]int)
	for _, pod := range s.pods {
		group := pod.Labels[schedulingv1alpha1.LabelPodGroup]
		if pod.Spec.NodeName == "" {
			waiting[group]++
			continue
		}
		placed[group]++
		if _, usable := free[pod.Spec.NodeName]; usable {
			free[pod.Spec.NodeName] -= cores(pod)
		} else if _, exists := s.nodes[pod.Spec.NodeName]; !exists {
			// Bound just when its node went. The garbage collector takes its time.
			s.orphans = append(s.orphans, pod.Name)
		}
	}
	if len(s.orphans) > 0 {
		s.collect()
		return "Pods on nodes that are gone"
	}
	for _, name := range slices.Sorted(maps.Keys(s.gangs)) {
		g := s.gangs[name]
		lacks := g.min - placed[name]
		if lacks <= 0 {
			lacks = min(1, waiting[name]) // of its surplus
		}
		room := 0
		for _, n := range free {
			room += max(0, n) / g.cores
		}
		switch {
		case lacks > 0 && waiting[name] >= lacks && room >= lacks:
			return fmt.Sprintf("%s has %d of %d placed, and room for the %d that it lacks", name, placed[name], g.min, lacks)
		case placed[name] > 0 && placed[name] < g.min && !s.whole[name] && !g.excused:
			return fmt.Sprintf("%s has %d of %d placed, and never had them all", name, placed[name], g.min)
		}
	}
	return ""
}

// collect deletes the Pods on nodes that are gone. The caller holds the lock.
func (s *storm) collect() {
	zero := int64(0)
	for _, name := range s.orphans {
		_ = cluster.Kube.CoreV1().Pods(s.namespace).Delete(s.t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &zero})
	}
	s.orphans = nil
}

// calm forgets the excuses of gangs that need none any more.
func (s *storm) calm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, g := range s.gangs {
		placed := 0
		for _, pod := range s.pods {
			if pod.Labels[schedulingv1alpha1.LabelPodGroup] == name && pod.Spec.NodeName != "" {
				placed++
			}
		}
		if placed == 0 || placed >= g.min {
			g.excused = false
		}
		s.most[name] = 0
	}
	clear(s.waited)
}
