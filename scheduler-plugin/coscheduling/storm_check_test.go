// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
)

// stormPatience is how long a storm may take to calm down. It leaves the scheduler
// its backstop of a minute and a half: the nomination of an ordinary Pod may still
// be known when that has been assumed, and hide room, and no event tells when it
// goes.
const stormPatience = 3 * time.Minute

// stormIdle is how long a promise may be broken while the scheduler has nothing to do. It is
// less than the minute after which each gang is tried anyway, or no event would be missed
// that nobody tells of.
const stormIdle = 40 * time.Second

// stormFailed says that a storm has failed.
var stormFailed atomic.Bool

// await waits until the scheduler has nothing to do any more and all promises
// hold.
func (s *storm) await() {
	s.t.Helper()
	var last, broken string
	deadline, since := time.Now().Add(stormPatience), time.Time{}
	// The pauses coincide with no back-off, or the same moment of each cycle would be seen.
	for pause := 1370 * time.Microsecond; ; pause = min(2*pause, 711*time.Millisecond) {
		if s.process.dead.Load() {
			s.kill()
		}
		if stormFailed.Load() && flag.Lookup("test.failfast").Value.String() == "true" {
			s.t.Skip("another storm has failed")
		}
		s.kube.Lock()
		if len(s.violations) > 0 {
			defer s.kube.Unlock()
			s.fail(s.violations[0])
		}
		if wrong := s.toldWrong(); wrong != "" {
			defer s.kube.Unlock()
			s.fail(wrong)
		}
		before := broken
		if last, broken = s.unrest(), ""; last == "" {
			broken = s.broken()
			last = broken
		}
		if broken == "" || broken != before {
			since = time.Now()
		}
		if time.Since(since) > stormIdle && !s.someStay() {
			defer s.kube.Unlock()
			s.fail(broken + ", and nothing happens")
		}
		if last == "" {
			s.logf("calm")
			s.calm()
			s.calmOthers()
			s.kube.Unlock()
			s.kube.ClearActions()
			s.lock.ClearActions()
			s.foreign.ClearActions()
			return
		}
		if time.Now().After(deadline) {
			defer s.kube.Unlock()
			s.fail(last)
		}
		s.kube.Unlock()
		select {
		case <-time.After(pause):
		case <-s.process.burnt: // kube-scheduler tries a preemption that fails again at once, and would do nothing else
		case <-s.t.Context().Done():
			return
		}
	}
}

func (s *storm) fail(why string) {
	s.t.Helper()
	stormFailed.Store(true)
	for name, p := range s.pods {
		if info, ok := s.sched.SchedulingQueue.GetPod(name, testNamespace, nil); ok && p.waits() && p.group == "" {
			s.logf("%s was rejected by %v, pending on %v, gated by %q", name, info.UnschedulablePlugins, info.PendingPlugins, info.GatingPlugin)
		}
	}
	s.t.Fatalf("%s\nto have the storm alone: go test ./scheduler-plugin/coscheduling -run TestStorms -storm-seed %d\n%v", why, s.seed, s.history)
}

// unrest says what the scheduler still has to see or to do, empty for nothing.
func (s *storm) unrest() string {
	if s.leaving > 0 {
		return fmt.Sprintf("%d Pods are terminating", s.leaving)
	}
	if what := s.outageLeft(); what != "" {
		return what
	}
	engine := s.engine()
	if what := s.unseen(engine.gangs); what != "" {
		return what
	}
	queue := s.sched.SchedulingQueue
	if a, b, c := queue.PodsInActiveQ(), queue.PodsInBackoffQ(), queue.InFlightPods(); len(a)+len(b)+len(c) > 0 {
		return fmt.Sprintf("Pods in the queue: %d active, %d in back-off, %d in flight", len(a), len(b), len(c))
	}
	for name, p := range s.pods {
		for _, plugin := range s.sched.Profiles[testScheduler].PreEnqueuePlugins() {
			d, ok := plugin.(*defaultpreemption.DefaultPreemption)
			if ok && p.waits() && d.Executor.IsPodRunningPreemption(p.uid) {
				return name + " is preempting"
			}
		}
	}
	for _, r := range engine.room.InOrder() {
		if r.Reason != room.InTime {
			return fmt.Sprintf("room is reserved for %s, for %s", r.Gang.Rank.Key, r.Reason)
		}
	}
	return s.unseenByCache()
}

// unseen says what is not known of gangs, or what they are about to do.
func (s *storm) unseen(all *gangs.Gangs) string {
	dump, err := gangs.DumpOf(all)
	if err != nil {
		return err.Error()
	}
	members := 0
	for _, p := range s.pods {
		if p.group == "" {
			continue
		}
		members++
		g, ok := dump.Gangs[s.groups[p.group].key()]
		if !ok {
			return "a group is not seen"
		}
		m, ok := g.Members[p.uid]
		if m.Leaving {
			return p.name + " is being preempted"
		}
		if !ok || m.Pod.Spec.NodeName != p.node || (m.Pod.Status.Phase == corev1.PodSucceeded) != p.succeeded || m.Assumed != "" {
			return p.name + " is not seen as it is"
		}
	}
	for key, g := range dump.Gangs {
		members -= len(g.Members)
		want := s.groupOf(key)
		if key.Dialect == dialect.Rules {
			// It is there as long as a Pod is known.
			if (g.Group != nil) != (len(g.Members) > 0) {
				return fmt.Sprintf("%s has %d members, and that it has a group is %t", key.Name, len(g.Members), g.Group != nil)
			}
		} else if (g.Group != nil) != (want != nil && want.exists) || g.Group != nil && (g.Group.UID != want.UID || g.Group.Generation != want.Generation) {
			return fmt.Sprintf("PodGroup %s is not seen as it is", key.Name)
		}
		if g.Ready {
			return fmt.Sprintf("%s is to be planned", key.Name)
		}
	}
	if members != 0 {
		return "members that are gone are still known"
	}
	return ""
}

// unseenByCache says what the scheduler's own cache has not seen.
func (s *storm) unseenByCache() string {
	dump := s.sched.Cache.Dump()
	if len(dump.AssumedPods) > 0 {
		return fmt.Sprintf("Pods are assumed: %v", dump.AssumedPods)
	}
	pods := make(map[string]int)
	known := make(map[types.UID]string)
	for _, p := range s.pods {
		if p.runs() {
			pods[p.node]++
			known[p.uid] = p.node
		}
	}
	for name, info := range dump.Nodes {
		node := s.nodes[name]
		if node == nil || info.Node() == nil {
			return fmt.Sprintf("node %s is still known", name)
		}
		if info.Node().Spec.Unschedulable != node.cordoned || len(info.GetPods()) != pods[name] {
			return fmt.Sprintf("node %s is not seen as it is", name)
		}
		for _, pod := range info.GetPods() {
			if known[pod.GetPod().UID] != name {
				return fmt.Sprintf("%s is known on %s, and is not there", pod.GetPod().UID, name)
			}
		}
	}
	if len(dump.Nodes) != len(s.nodes) {
		return "a node is not seen"
	}
	if what := s.unseenVolumes(); what != "" {
		return what
	}
	if what := s.unseenDevices(); what != "" {
		return what
	}
	if what := s.unseenByListers(); what != "" {
		return what
	}
	return s.unseenByQueue()
}

// unseenByQueue says which Pod that waits the queue does not know as it is, or which one the queue knows and is gone.
func (s *storm) unseenByQueue() string {
	members := make(map[types.UID]bool)
	for _, pod := range s.engine().queue.Members() {
		members[pod.UID] = true
		if p := s.pods[pod.Name]; p == nil || p.uid != pod.UID || p.group == "" || !p.waits() {
			return fmt.Sprintf("%s (%s) is among the members that wait, and does not", pod.Name, pod.UID)
		}
	}
	for name, p := range s.pods {
		switch {
		case !p.waits():
		case p.group == "":
			if info, ok := s.sched.SchedulingQueue.GetPod(name, testNamespace, nil); !ok || info.Pod.UID != p.uid {
				return name + " is not in the queue"
			}
		case !members[p.uid]:
			return name + " is not among the members that wait"
		}
	}
	return ""
}

// unfounded says which room is reserved for nobody: each reservation is that of a gang that waits.
func (s *storm) unfounded() string {
	for _, r := range s.engine().room.InOrder() {
		gang := r.Gang
		g := s.groupOf(gang.Rank.Key)
		if g == nil || !g.exists || g.UID != gang.UID || s.lacks(g) == 0 {
			return fmt.Sprintf("room is held for %s, which does not wait for it", gang.Rank.Key.Name)
		}
		if late := time.Since(r.End); late > time.Second {
			return fmt.Sprintf("room is held for %s since %v after its end", gang.Rank.Key.Name, late)
		}
	}
	return ""
}

// broken says which promise does not hold now that all is calm, empty for none.
func (s *storm) broken() string {
	for _, check := range []func() string{s.partial, s.hoarded, s.unfounded, s.left, s.daemonLeft, s.scattered, s.leftBehind, s.shouldPreempt, s.inVain, s.nominated, s.untold} {
		if what := check(); what != "" {
			return what
		}
	}
	return ""
}

func (s *storm) sortedGroups() []*stormGroup {
	var groups []*stormGroup
	for _, name := range slices.Sorted(maps.Keys(s.groups)) {
		if g := s.groups[name]; g.exists {
			groups = append(groups, g)
		}
	}
	return groups
}

// lacks is how many members a group's minimum lacks, 0 if it holds or can't: the
// members do not exist.
func (s *storm) lacks(g *stormGroup) int {
	placed, placedPs, _ := s.tally(g.Name)
	waiting, waitingPs := 0, 0
	for _, p := range s.pods {
		if p.group == g.Name && p.waits() {
			waiting++
			if p.role == "ps" {
				waitingPs++
			}
		}
	}
	least := int(g.Spec.MinMember)
	if placed+waiting < least || placedPs+waitingPs < g.minPs() {
		return 0
	}
	return max(0, least-placed, g.minPs()-placedPs)
}

// nominated: no autoscaler is kept from adding nodes for a member. Nothing ends any more, so
// no room is being made.
func (s *storm) nominated() string {
	for _, name := range slices.Sorted(maps.Keys(s.pods)) {
		p := s.pods[name]
		if p.group == "" || !p.waits() {
			continue
		}
		object, err := s.kube.Tracker().Get(podResource, testNamespace, name)
		if err != nil {
			return err.Error()
		}
		if node := object.(*corev1.Pod).Status.NominatedNodeName; node != "" {
			return fmt.Sprintf("%s is nominated for %s, where nobody makes room for it", name, node)
		}
	}
	return ""
}

// partial: all or nothing. A group with some of its minimum placed had it whole
// once, or something cut it short.
func (s *storm) partial() string {
	for _, g := range s.sortedGroups() {
		placed, placedPs, _ := s.tally(g.Name)
		if placed == 0 || placed >= int(g.Spec.MinMember) && placedPs >= g.minPs() || g.excused {
			continue
		}
		if !g.whole {
			return fmt.Sprintf("%d of %d members of %s are placed, and it never had its minimum", placed, g.Spec.MinMember, g.Name)
		}
		running := 0
		for _, p := range s.pods {
			if p.group == g.Name && p.runs() {
				running++
			}
		}
		keepsRest := g.Spec.DisruptionMode == schedulingv1alpha1.DisruptPod
		if g.broken && running > 0 && !keepsRest {
			return fmt.Sprintf("%d of %d members of %s are left by preemption", placed, g.Spec.MinMember, g.Name)
		}
	}
	return ""
}

// free is what a node has left, without Pods that are worth less than above.
func (s *storm) free(n *stormNode, above int32) int {
	if n.cordoned || n.maintained {
		return 0
	}
	free := n.cpu
	for _, p := range s.pods {
		if p.node != n.name || !p.runs() {
			continue
		}
		priority := p.priority
		if g := s.groups[p.group]; g != nil && g.exists {
			priority = s.priorityOf(g)
		}
		if priority >= above {
			free -= p.cpu
		}
	}
	// A Pod that preempted others here is waited for by those below it.
	for _, nominated := range s.sched.SchedulingQueue.NominatedPodsForNode(n.name) {
		if p := s.pods[nominated.GetPod().Name]; p != nil && p.waits() && p.group == "" {
			free -= p.cpu
		}
	}
	return max(0, free)
}

// lowest is below all priorities.
const lowest = -1 << 31

// rackOf is where the members of a group with required topology have to be,
// empty for anywhere.
func (s *storm) rackOf(g *stormGroup) string {
	if !g.required() {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(s.pods)) {
		if p := s.pods[name]; p.group == g.Name && p.runs() && s.nodes[p.node] != nil {
			return s.nodes[p.node].rack
		}
	}
	return ""
}

// room is how many members of a group have room together, on nodes without work
// below above. It is exact for members that are all alike, and never too much:
// a member that is smaller than the largest takes no more than its place.
func (s *storm) room(g *stormGroup, above int32) int {
	cpu := 0
	for _, p := range s.pods {
		if p.group == g.Name && p.waits() {
			cpu = max(cpu, p.cpu)
		}
	}
	if cpu == 0 || s.lacksPs(g, len(s.pods)) {
		return 0
	}
	racks := make(map[string]map[string]int)
	rack := s.rackOf(g)
	for _, n := range s.nodes {
		key := ""
		if g.required() {
			key = n.rack
		}
		if rack == "" || rack == n.rack {
			if racks[key] == nil {
				racks[key] = make(map[string]int)
			}
			racks[key][n.name] = min(s.free(n, above)/cpu, s.admits(g, n.name))
		}
	}
	best := 0
	for _, nodes := range racks {
		sum := 0
		for _, n := range nodes {
			sum += n
		}
		if g.stores {
			sum = s.roomWithVolumes(g, nodes)
		}
		if g.computes || g.shares {
			sum = s.roomWithDevices(g, nodes)
		}
		best = max(best, sum)
	}
	return best
}

// isBehind says whether room is reserved for somebody ahead of a group. A gang with a reservation in time and one that runs, and waits for
// members of its own, never wait for each other: of that one its room is not kept.
func (s *storm) isBehind(g *stormGroup, waitsForItsOwn bool) bool {
	return s.reserves && slices.ContainsFunc(s.engine().room.InOrder(), func(r *room.Reservation) bool {
		return r.Gang.Rank.Compare(s.rank(g)) < 0 && !(waitsForItsOwn && r.Reason == room.InTime)
	})
}

// runsAny says whether a member of a group runs.
func (s *storm) runsAny(g *stormGroup) bool {
	for _, p := range s.pods {
		if p.group == g.Name && p.runs() {
			return true
		}
	}
	return false
}

// isAnnounced says whether a member is within what its group announced when it started.
func (s *storm) isAnnounced(g *stormGroup, p *stormPod) bool {
	toCome, runs := s.engine().reader.ToCome(s.rank(g).Key, g.UID)
	return s.keeps && runs && int64(p.cpu)*1000 <= toCome[corev1.ResourceCPU]
}

// left: no group that fits is left waiting. When ordinary Pods are tried again is
// kube-scheduler's business.
func (s *storm) left() string {
	for _, g := range s.sortedGroups() {
		if g.spread {
			continue // Whether it fits depends on the order.
		}
		placed, _, _ := s.tally(g.Name)
		if g.asks > 0 && !s.runsAny(g) {
			continue // It starts only with room for members to come.
		}
		if need := s.lacks(g); need > 0 && s.room(g, lowest) >= need && !s.isBehind(g, placed > 0) {
			return fmt.Sprintf("%s waits, though there is room for the %d members that it lacks", g.Name, need)
		}
	}
	return ""
}

// leftBehind: members above the minimum are placed as far as they fit.
func (s *storm) leftBehind() string {
	for _, g := range s.sortedGroups() {
		placed, placedPs, _ := s.tally(g.Name)
		if placed < int(g.Spec.MinMember) || placedPs < g.minPs() || g.spread {
			continue
		}
		rack := s.rackOf(g)
		for _, p := range s.pods {
			if p.group != g.Name || !p.waits() || s.isBehind(g, s.isAnnounced(g, p)) {
				continue
			}
			for _, n := range s.nodes {
				if g.stores {
					if v := s.volumeOf(p.name); v != nil && v.node != n.name || v == nil && s.freeVolumes(n.name) == 0 {
						continue
					}
				}
				if s.free(n, lowest) >= p.cpu && s.hasDevice(p, n.name) && s.admits(g, n.name) > 0 && (rack == "" || n.rack == rack) {
					return fmt.Sprintf("%s waits, though its gang is placed and there is room on %s", p.name, n.name)
				}
			}
		}
	}
	return ""
}

// scattered: members are in one rack if they have to be.
func (s *storm) scattered() string {
	for _, g := range s.sortedGroups() {
		rack := s.rackOf(g)
		for _, p := range s.pods {
			if rack != "" && p.group == g.Name && p.runs() && s.nodes[p.node] != nil && s.nodes[p.node].rack != rack {
				return fmt.Sprintf("%s is in two racks", g.Name)
			}
		}
	}
	return ""
}

// shouldPreempt: a gang that could have its minimum if all that it outranks went
// has preempted what it needs.
func (s *storm) shouldPreempt() string {
	for _, g := range s.sortedGroups() {
		if g.spread || g.stores || g.computes || g.shares {
			continue // Volumes and devices that victims give back are not considered.
		}
		if g.asks > 0 {
			continue // Nobody is evicted for members to come.
		}
		if s.pausesPreemption(g) {
			continue
		}
		if need := s.lacks(g); need > 0 && !g.never && !s.isBehind(g, false) && s.room(g, s.priorityOf(g)) >= need {
			return fmt.Sprintf("%s waits, though it could preempt work for the %d members that it lacks", g.Name, need)
		}
	}
	return ""
}

// someStay says whether Pods may not be chosen as victims because they could not be evicted, or gangs have not looked again since.
func (h *history) someStay() bool {
	return !h.stayed.IsZero() && time.Since(h.stayed) < failedPause+time.Minute+stormIdle
}

// allPods are the Pods that exist.
func (h *history) allPods() []stormPod {
	var pods []stormPod
	for _, p := range h.pods {
		pods = append(pods, *p)
	}
	return pods
}

// inVain: whoever was evicted made room for somebody, and could not have stayed.
// It is judged when nothing but one thing has happened, which freed nothing and so
// can't have undone the reason, and for gangs whose members are all alike: of
// others the search for victims does not find the least in every case.
func (s *storm) inVain() string {
	if s.someStay() {
		return "" // Others went for a gang whose victims could not go.
	}
	if s.keeps {
		return "" // They made room where it was kept for members to come, and is not any more.
	}
	if !s.single || !s.adds || len(s.evictions) == 0 || len(s.gone) > 0 || slices.ContainsFunc(slices.Concat(s.bound, s.allPods()), func(p stormPod) bool {
		g := s.groups[p.group]
		return g != nil && !g.isPlain() && (p.waits() || slices.Contains(s.bound, p))
	}) {
		return ""
	}
	// The default preemption of an ordinary Pod does not know that of a gang all
	// goes, nor whether the Pod is bound by somebody else meanwhile.
	for _, p := range slices.Concat(s.bound, s.departed, s.allPods()) {
		if p.group == "" && slices.ContainsFunc(s.evictions, func(e evicted) bool { return p.priority > e.rank }) {
			return ""
		}
	}
	units := make(map[string][]evicted)
	for _, e := range s.evictions {
		if !s.outbid(e.rank) && !s.outranked(e.rank) {
			return fmt.Sprintf("%s of rank %d was evicted, but nothing above it was bound or waits", e.pod.name, e.rank)
		}
		unit := e.pod.name
		if g := s.groups[e.pod.group]; g != nil && (g.Spec.DisruptionMode != schedulingv1alpha1.DisruptPod || !g.whole) {
			if placed, placedPs, _ := s.tally(g.Name); placed < int(g.Spec.MinMember) || placedPs < g.minPs() {
				unit = e.pod.group // all or nothing of it went
			}
		}
		units[unit] = append(units[unit], e)
	}
	for _, name := range slices.Sorted(maps.Keys(units)) {
		taken := make(map[string]int)
		fits := true
		for _, e := range units[name] {
			n := s.nodes[e.pod.node]
			if n == nil {
				fits = false
				break
			}
			used, _ := s.used(n.name)
			taken[n.name] += e.pod.cpu
			fits = fits && used+taken[n.name] <= n.cpu
		}
		if fits {
			return fmt.Sprintf("%s was evicted, but there is room for it where it was", name)
		}
	}
	return ""
}

// outbid says whether a Pod of higher rank was bound since the last calm.
func (s *storm) outbid(rank int32) bool {
	return slices.ContainsFunc(s.bound, func(p stormPod) bool {
		if g := s.groups[p.group]; g != nil {
			return g.mostRank > rank
		}
		return p.group == "" && p.priority > rank
	})
}

// pausesPreemption says whether a gang preempts nobody for a while, as its bindings were refused, and says so.
func (s *storm) pausesPreemption(g *stormGroup) bool {
	known, _ := s.engine().reader.Look(s.rank(g).Key)
	return known.Refusal != nil && strings.Contains(known.Refusal.Message, "the bindings of its last placements were refused")
}
