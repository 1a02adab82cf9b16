// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
)

var (
	stormsFlag     = flag.Int64("storms", 40, "how many storms TestStorms has")
	stormFirstFlag = flag.Int64("storm-first-seed", 0, "the seed of the first storm of TestStorms")
	stormSeedFlag  = flag.Int64("storm-seed", -1, "have only the storm of this seed, and print it")
)

// stormBackoff is the longest back-off of a gang.
const stormBackoff = 100 * time.Millisecond

// stormRounds is how often a storm calms down.
const stormRounds = 40

// TestStorms lets users, controllers and nodes do anything at any moment while
// the scheduler works: gangs and Pods come, change and go, nodes are added,
// cordoned, maintained and lost, bindings fail once or for a while, watches break, the scheduler dies
// at any of its requests, and another one takes over. Every binding and every
// eviction is judged as it happens, and whenever things have calmed down the
// promises of docs/scheduler-design.md are held against what has become of each group;
// see storm_check_test.go.
//
// What happens is random by the seed; how it interleaves with the scheduler is
// up to the machine, but time passes only when all wait for it: see inBubble. Forty
// storms reach the code that eighty reach, but for one statement in 250.
func TestStorms(t *testing.T) {
	if *stormSeedFlag >= 0 {
		inBubble(t, func(t *testing.T) {
			s := newStorm(t, *stormSeedFlag)
			s.verbosity = 4
			s.rage()
			t.Logf("%d bindings, %d evictions\n%v", s.binds, s.evicts, s.history)
		})
		return
	}
	var binds, evicts, actions atomic.Int64
	seeds := make(chan int64)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for seed := range seeds {
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					inBubble(t, func(t *testing.T) {
						s := newStorm(t, seed)
						s.rage()
						binds.Add(int64(s.binds))
						evicts.Add(int64(s.evicts))
						actions.Add(int64(s.actions))
					})
				})
			}
		})
	}
	for n := range *stormsFlag {
		seeds <- *stormFirstFlag + n
	}
	close(seeds)
	workers.Wait()
	t.Logf("%d storms: %d actions, %d bindings, %d evictions", *stormsFlag, actions.Load(), binds.Load(), evicts.Load())
}

// storm is one random course of events.
type storm struct {
	*history
	seed   int64
	random *rand.Rand
	// dialects draws what has to do with PodGroups of other dialects.
	dialects *rand.Rand
	told     *told
	// otherWires are the watches of PodGroups of other dialects.
	otherWires *wires

	actions int
	// single says that one action was all that happened since the last calm, and
	// adds that it only asked for more: it freed nothing, at once or bit by bit.
	single, adds bool
	// reserves says that room is reserved for gangs.
	reserves bool
	// keeps says that groups may announce members to come.
	keeps bool

	process *process                // of the scheduler that runs
	writer  atomic.Pointer[process] // the same
	stop    func()
	// standsBy says that there is a second scheduler, which takes over: standby.
	standsBy bool
	standby  *replica
}

func newStorm(t *testing.T, seed int64) *storm {
	s := &storm{history: newHistory(t), seed: seed, random: rand.New(rand.NewPCG(uint64(seed), 11)), dialects: rand.New(rand.NewPCG(uint64(seed), 12))}
	s.verbosity, s.noBackoff, s.recorder = 2, true, &events.FakeRecorder{} // it drops all events
	s.lock.PrependReactor("patch", "podgroups", s.onReport)
	s.serveOthers()
	s.keeps, s.standsBy = seed%7 == 4, seed%5 == 2
	s.reserves = s.keeps || seed%4 == 3
	maxPercent := 0
	if s.reserves {
		maxPercent = []int{50, 80, 100}[seed%3]
	}
	// On a machine that is busy a cycle may take long, and one that is given up is not tried
	// again at once.
	toCome := ""
	if s.keeps {
		toCome = fmt.Sprintf(`,"membersToCome":{"namespaces":["*"],"timeout":"300ms","namespaceMaxPercent":%d,"preemption":%t}`, []int{50, 100}[seed%2], seed%3 == 0)
	}
	// Somebody else binds members now and then, and is no scheduler to whom Volcano's groups are to be left.
	s.args = fmt.Sprintf(`{"initialBackoff":"1ms","maxBackoff":"%dms","bindRetries":2,"cycleTimeout":"1m","podGroupAPIs":{"volcano":{"mode":"On"}},"groupingRules":["Annotations"],"reservations":{"maxPercent":%d%s}}`,
		stormBackoff.Milliseconds(), maxPercent, toCome)
	return s
}

// rage is the whole storm.
func (s *storm) rage() {
	s.kube.Lock()
	for _, class := range all(localClass(), deviceClass()) {
		if err := s.kube.Tracker().Add(class); err != nil {
			panic(err)
		}
	}
	for range 3 {
		s.addNode()
	}
	s.kube.Unlock()
	s.launch()
	for range stormRounds {
		n := 1
		if s.random.IntN(2) == 0 {
			n += s.random.IntN(12)
		}
		s.single = n == 1
		for range n {
			s.act()
		}
		s.stirOthers()
		s.await()
	}
}

// launch starts a scheduler and waits until it has read what there is.
func (s *storm) launch() {
	s.t.Helper()
	if s.standby == nil {
		s.kube.Lock()
		s.wires.renew()
		s.kube.Unlock()
		s.lock.Lock()
		s.groupWires.renew()
		s.lock.Unlock()
		s.foreign.Lock()
		s.otherWires.renew()
		s.foreign.Unlock()
	}
	next := s.standby
	if next == nil {
		next = s.prepare()
	}
	s.writer.Store(next.process)
	s.process, s.sched = next.process, next.sched
	// A lease takes seconds to pass on. Whoever is elected has seen by then what the one
	// before has bound, and what it is to go by.
	unseen := ""
	defer func() {
		if unseen != "" {
			s.t.Log(unseen)
		}
	}()
	s.eventually("the next scheduler has seen what there is", func() bool {
		s.kube.Lock()
		defer s.kube.Unlock()
		if unseen = s.unseenByCache(); unseen == "" && s.standby != nil {
			unseen = s.unseen(s.engine().gangs)
		}
		return unseen == ""
	})
	s.foreign.Lock()
	clear(s.told.last)
	s.foreign.Unlock()
	s.stop = next.lead()
	if s.standsBy {
		s.standby = s.prepare()
		s.sched = next.sched
	}
	s.eventually("the scheduler has read all groups and Pods", func() bool {
		dump, err := gangs.DumpOf(s.engine().gangs)
		return err == nil && dump.Synced
	})
}

// kill has the scheduler die and another one take over.
func (s *storm) kill() {
	s.process.die()
	s.kube.Lock()
	s.logf("the scheduler dies")
	s.died = true
	for name := range s.groups {
		s.excuse(name)
	}
	s.faults, s.evictionFaults = nil, 0
	for _, o := range s.outages {
		o.beginAnew()
	}
	s.kube.Unlock()
	s.stop()
	if s.random.IntN(3) == 0 {
		s.skewClocks()
	}
	s.launch()
}

// deeds are what may happen, and how often relative to each other. They say
// whether there was something to do it to.
var deeds = []struct {
	weight int
	do     func(*storm) bool
}{
	{12, (*storm).addGang}, // the first four free nothing
	{6, (*storm).addOrdinary},
	{10, (*storm).replaceMembers},
	{3, (*storm).grow},
	{5, (*storm).deleteSomePod},
	{5, (*storm).deleteGang},
	{2, (*storm).deleteGroup},
	{2, (*storm).recreateGroup},
	{6, (*storm).changeMinimum},
	{7, (*storm).finish},
	{4, (*storm).addNode},
	{2, (*storm).removeNode},
	{3, (*storm).cordon},
	{4, (*storm).uncordon},
	{3, (*storm).maintain},
	{5, (*storm).failBindings},
	{3, (*storm).failEvictions},
	{2, (*storm).bindForeign},
	{4, (*storm).breakWatch},
	{3, (*storm).makeAnew},
	{2, (*storm).makeGroupAnew},
	{2, (*storm).refuseForAWhile},
	{3, (*storm).addService},
	{3, (*storm).addDaemon},
	{2, (*storm).changeClass},
	{2, (*storm).changeBudget},
	{3, (*storm).lightFuse},
}

// act does one thing.
func (s *storm) act() {
	s.actions++
	total := 2 // the weight of death
	for _, d := range deeds {
		total += d.weight
	}
	for {
		n := s.random.IntN(total)
		if n < 2 {
			s.adds = false
			s.kill()
			return
		}
		n -= 2
		i := slices.IndexFunc(deeds, func(d struct {
			weight int
			do     func(*storm) bool
		}) bool {
			n -= d.weight
			return n < 0
		})
		s.kube.Lock()
		done := deeds[i].do(s)
		s.kube.Unlock()
		if done {
			s.adds = i < 4
			return
		}
	}
}

// pick is any of those that a condition holds for, nil for none.
func pick[T any](s *storm, from map[string]*T, is func(*T) bool) *T {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(from)) {
		if is(from[name]) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return from[names[s.random.IntN(len(names))]]
}

func any1[T any](*T) bool { return true }

// name makes a name that was never used.
func (s *storm) name(kind string) string {
	s.made++
	return fmt.Sprintf("%s%d", kind, s.made)
}

func (s *storm) addGang() bool {
	if len(s.groups) >= 9 {
		return false
	}
	name := s.name("gang")
	g := &stormGroup{exists: true, cpu: 1 + s.random.IntN(3), priority: []int32{0, 0, 0, 10, 20}[s.random.IntN(5)]}
	least := int32(1 + s.random.IntN(6))
	g.size = int(least) + max(0, s.random.IntN(5)-2)
	g.apart, g.spread, g.stores = s.random.IntN(12) == 0, s.random.IntN(12) == 0, s.random.IntN(6) == 0
	if !g.stores {
		g.computes = s.random.IntN(4) == 0
		g.shares = !g.computes && s.random.IntN(8) == 0
	}
	g.mixed, g.never = s.random.IntN(6) == 0, s.random.IntN(8) == 0
	g.PodGroup = bornAt(s.made, makeGroup(name, least, func(spec *schedulingv1alpha1.PodGroupSpec) {
		// How long it runs has nothing to do with what it says.
		if seconds := []int32{0, 1, 60, 3600}[s.dialects.IntN(4)]; seconds > 0 {
			spec.ExpectedRuntimeSeconds = &seconds
		}
		spec.DisruptionMode = schedulingv1alpha1.DisruptGang
		if s.random.IntN(5) == 0 {
			spec.DisruptionMode = schedulingv1alpha1.DisruptPod
		}
		if s.random.IntN(6) == 0 {
			spec.Topology = []schedulingv1alpha1.TopologyConstraint{{Key: "rack", Mode: schedulingv1alpha1.TopologyRequired}}
		}
		if s.random.IntN(5) == 0 {
			spec.MinRoleMember = map[string]int32{"ps": 1}
		}
		if s.random.IntN(4) == 0 {
			spec.PriorityClassName = stormClasses[s.random.IntN(len(stormClasses))]
		}
	}))
	switch s.dialects.IntN(6) {
	case 0:
		g.beOf(dialect.SchedulerPlugins)
	case 1:
		g.beOf(dialect.Volcano)
	case 2:
		g.beOf(dialect.Native)
	case 3:
		g.beOf(dialect.Rules)
	}
	if s.keeps && s.random.IntN(2) == 0 {
		asks := g.size*g.cpu + s.random.IntN(8)
		if g.of != dialect.Native && !g.isRuled() { // these can't ask
			g.asks = asks
			asking(fmt.Sprint(g.asks))(&g.Spec)
		}
	}
	s.groups[name] = g
	g.leastRank, g.mostRank = s.priorityOf(g), s.priorityOf(g)
	s.logf("add %s: %d of %d, %d cores each (mixed %t, apart %t, spread %t, stores %t, computes %t, shares %t), asks for %d, priority %d, never %t, %s, Required %t, ps %d, class %q, of %s", name, least, g.size, g.cpu,
		g.mixed, g.apart, g.spread, g.stores, g.computes, g.shares, g.asks, g.priority, g.never, g.Spec.DisruptionMode, g.required(), g.minPs(), g.Spec.PriorityClassName, g.of.Kind().Group)
	// The group comes before, among or after its members, of which some may be
	// late.
	if g.shares {
		s.addDeviceClaim(g.sharedClaim(), name, nil)
	}
	late, before := 0, s.random.IntN(g.size+1)
	if s.random.IntN(4) == 0 {
		late = s.random.IntN(g.size)
	}
	for i := range g.size + 1 {
		if i == before {
			s.createGroup(g)
		}
		if i < g.size-late {
			s.addMember(g)
		}
	}
	s.touch(name)
	return true
}

func (s *storm) createGroup(g *stormGroup) {
	s.outages[g.Name].beginAnew()
	s.made++
	g.PodGroup = g.DeepCopy()
	g.Generation, g.Status = 1, schedulingv1alpha1.PodGroupStatus{}
	g.UID = types.UID(fmt.Sprintf("%s-%d", g.Name, s.made))
	g.finished, g.mostSucceeded = false, 0
	if g.isTheirs() {
		s.createOther(g)
		return
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	if err := s.lock.Tracker().Create(groupResource, g.DeepCopy(), testNamespace); err != nil {
		panic(err)
	}
}

func (s *storm) addMember(g *stormGroup) {
	role, cpu := "worker", g.cpu
	if g.next%3 == 0 {
		role = "ps"
		if g.mixed {
			cpu++
		}
	}
	s.addPod(&stormPod{name: fmt.Sprintf("%s-%d", g.Name, g.next), group: g.Name, role: role, cpu: cpu, priority: g.priority}, g.never)
	g.next++
}

func (s *storm) addPod(p *stormPod, never bool) {
	s.pods[p.name] = p
	options := []podOption{ofPriority(p.priority)}
	if seconds := []string{"", "1", "60"}[s.dialects.IntN(3)]; seconds != "" && p.group == "" {
		options = append(options, func(w *schedulertesting.PodWrapper) {
			w.Annotation(schedulingv1alpha1.AnnotationExpectedRuntime, seconds)
		})
	}
	if p.cpu > 1 {
		options = append(options, func(w *schedulertesting.PodWrapper) {
			w.Req(map[corev1.ResourceName]string{corev1.ResourceCPU: fmt.Sprint(p.cpu - 1)}) // a second container
		})
	}
	if p.group != "" {
		link := schedulingv1alpha1.LabelPodGroup
		if g := s.groups[p.group]; g != nil {
			link = g.link()
			switch g.of {
			case dialect.Volcano:
				options = append(options, ofVolcano(p.group))
			case dialect.Native:
				options = append(options, inNative(p.group))
			case dialect.Rules:
				options = append(options, ofRule(g))
			}
		}
		options = append(options, labelled(link, p.group), inRole(p.role))
	}
	if never {
		options = append(options, func(w *schedulertesting.PodWrapper) { w.PreemptionPolicy(corev1.PreemptNever) })
	}
	if g := s.groups[p.group]; g != nil {
		options = append(options, constrained(g))
		if g.stores {
			options = append(options, withVolumeClaim)
			s.addClaim(p.name)
		}
		p.wantsDevice = g.computes
		if g.shares {
			p.claim = g.sharedClaim()
			options = append(options, withSharedClaimOf(p.claim))
		}
	}
	if p.wantsDevice {
		options = append(options, withClaimTemplate)
	}
	if p.serves {
		options = append(options, ofService)
	}
	if p.daemon != "" {
		options = append(options, ofDaemonSet(p.daemon))
	}
	pod := makePod(p.name, options...)
	pod.ResourceVersion = s.version()
	p.uid = types.UID(fmt.Sprintf("uid-%s-%s", p.name, pod.ResourceVersion))
	pod.UID = p.uid
	if err := s.kube.Tracker().Create(podResource, pod, testNamespace); err != nil {
		panic(err)
	}
	if p.wantsDevice {
		s.giveClaim(p)
	}
	s.touch(p.group)
}

// constrained gives a member the constraints of its gang.
func constrained(g *stormGroup) podOption {
	members := &metav1.LabelSelector{MatchLabels: map[string]string{g.link(): g.Name}}
	return func(w *schedulertesting.PodWrapper) {
		if g.apart {
			w.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: members, TopologyKey: corev1.LabelHostname}},
			}}
		}
		if g.spread {
			w.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "rack",
				WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: members}}
		}
	}
}

func (s *storm) addOrdinary() bool {
	p := &stormPod{name: s.name("pod"), cpu: 1 + s.random.IntN(3), priority: []int32{0, 0, 10, 20}[s.random.IntN(4)], wantsDevice: s.random.IntN(5) == 0}
	s.logf("add %s: %d cores, priority %d, device %t", p.name, p.cpu, p.priority, p.wantsDevice)
	s.addPod(p, false)
	return true
}

// replaceMembers has a gang's controller make the members that are missing.
func (s *storm) replaceMembers() bool {
	g := pick(s, s.groups, func(g *stormGroup) bool {
		_, _, members := s.tally(g.Name)
		return members < g.size
	})
	if g == nil {
		return false
	}
	_, _, members := s.tally(g.Name)
	s.logf("add %d members to %s", g.size-members, g.Name)
	for range g.size - members {
		s.addMember(g)
	}
	return true
}

func (s *storm) deleteSomePod() bool {
	p := pick(s, s.pods, func(p *stormPod) bool { return !p.deleting })
	if p == nil {
		return false
	}
	s.logf("delete %s", p.name)
	s.deletePod(p)
	return true
}

func (s *storm) deletePod(p *stormPod) {
	s.excuse(p.group)
	s.deletePodGracefully(p, time.Duration(s.random.IntN(3))*time.Millisecond)
}

func (s *storm) deleteGang() bool {
	g := pick(s, s.groups, any1)
	if g == nil {
		return false
	}
	s.logf("delete all of %s", g.Name)
	for _, name := range slices.Sorted(maps.Keys(s.pods)) {
		if s.pods[name].group == g.Name {
			s.deletePod(s.pods[name])
		}
	}
	if g.exists {
		s.removeGroup(g)
	}
	g.size = 0
	return true
}

func (s *storm) removeGroup(g *stormGroup) {
	g.exists = false
	s.excuse(g.Name)
	if g.isTheirs() {
		s.removeOther(g)
		return
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	s.groupWires.bury(groupResource, testNamespace, g.Name)
}

func (s *storm) deleteGroup() bool {
	g := pick(s, s.groups, func(g *stormGroup) bool { return g.exists && !g.isRuled() })
	if g == nil {
		return false
	}
	s.logf("delete PodGroup %s", g.Name)
	s.removeGroup(g)
	return true
}

func (s *storm) recreateGroup() bool {
	g := pick(s, s.groups, func(g *stormGroup) bool { return !g.exists && g.size > 0 })
	if g == nil {
		return false
	}
	s.logf("create PodGroup %s again", g.Name)
	s.excuse(g.Name) // until the scheduler has seen it, its members are Pods like any others
	g.exists = true
	s.createGroup(g)
	s.touch(g.Name)
	return true
}

func (s *storm) changeMinimum() bool {
	g := pick(s, s.groups, func(g *stormGroup) bool { return g.exists })
	if g == nil {
		return false
	}
	s.setMinimum(g, int32(1+s.random.IntN(g.size+1)))
	return true
}

func (s *storm) setMinimum(g *stormGroup, least int32) {
	s.logf("minimum of %s from %d to %d", g.Name, g.Spec.MinMember, least)
	s.excuse(g.Name)
	if g.isTheirs() {
		g.PodGroup = g.DeepCopy()
		g.Spec.MinMember, g.Generation = least, g.Generation+1
		s.updateOther(g)
		s.touch(g.Name)
		return
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	object, err := s.lock.Tracker().Get(groupResource, testNamespace, g.Name)
	if err != nil {
		panic(err)
	}
	g.PodGroup = object.(*schedulingv1alpha1.PodGroup).DeepCopy()
	g.Spec.MinMember, g.Generation = least, g.Generation+1
	if err := s.lock.Tracker().Update(groupResource, g.DeepCopy(), testNamespace); err != nil {
		panic(err)
	}
	s.touch(g.Name)
}

// grow has a gang want more members, and a higher minimum first.
func (s *storm) grow() bool {
	g := pick(s, s.groups, func(g *stormGroup) bool { return g.exists && g.size < 8 })
	if g == nil {
		return false
	}
	g.size++
	s.setMinimum(g, g.Spec.MinMember+1)
	s.addMember(g)
	return true
}

// finish has a Pod that runs succeed, or all members of its gang. What somebody
// else has bound is left out: a Pod that ends before the scheduler has seen that
// binding is known to it from its own only.
func (s *storm) finish() bool {
	p := pick(s, s.pods, func(p *stormPod) bool { return p.runs() && !p.deleting && !p.foreign && !p.serves })
	if p == nil {
		return false
	}
	all := s.random.IntN(2) == 0
	for _, other := range s.pods {
		if other == p || all && p.group != "" && other.group == p.group && other.runs() && !other.deleting && !other.foreign {
			s.logf("%s succeeds", other.name)
			other.succeeded = true
			s.updatePod(other.name, func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded })
			s.releaseDevices(other)
			s.touch(other.group)
		}
	}
	return true
}

func (s *storm) addNode() bool {
	if len(s.nodes) >= 8 {
		return false
	}
	n := &stormNode{cpu: 2 + s.random.IntN(6), rack: string(rune('a' + s.random.IntN(3)))}
	object := makeNodes(s.name("node"), 1, n.cpu, "rack="+n.rack)[0].(*corev1.Node)
	n.name = object.Name
	s.nodes[n.name] = n
	s.logf("add %s: %d cores, rack %s", n.name, n.cpu, n.rack)
	s.addVolumes(n.name)
	s.addDevices(n.name)
	if err := s.kube.Tracker().Create(nodeResource, object, ""); err != nil {
		panic(err)
	}
	return true
}

// removeNode loses a node; the Pods on it are deleted.
func (s *storm) removeNode() bool {
	n := pick(s, s.nodes, any1)
	if n == nil || len(s.nodes) < 3 {
		return false
	}
	s.logf("remove %s", n.name)
	delete(s.nodes, n.name)
	s.gone[n.name] = true
	s.wires.bury(nodeResource, "", n.name)
	s.removeDevices(n.name)
	for name := range s.groups {
		s.excuse(name) // it may be about to be bound there
	}
	for _, name := range slices.Sorted(maps.Keys(s.pods)) {
		if p := s.pods[name]; p.node == n.name {
			s.deletePod(p)
		}
	}
	return true
}

func (s *storm) setCordoned(n *stormNode, cordoned bool) {
	s.logf("cordon %s: %t", n.name, cordoned)
	n.cordoned = cordoned
	object, err := s.kube.Tracker().Get(nodeResource, "", n.name)
	if err != nil {
		panic(err)
	}
	node := object.(*corev1.Node).DeepCopy()
	node.Spec.Unschedulable = cordoned
	if err := s.kube.Tracker().Update(nodeResource, node, ""); err != nil {
		panic(err)
	}
}

func (s *storm) cordon() bool {
	n := pick(s, s.nodes, func(n *stormNode) bool { return !n.cordoned })
	if n == nil {
		return false
	}
	s.setCordoned(n, true)
	return true
}

func (s *storm) uncordon() bool {
	n := pick(s, s.nodes, func(n *stormNode) bool { return n.cordoned })
	if n == nil {
		return false
	}
	s.setCordoned(n, false)
	return true
}

// maintain has a node be maintained from now on, or no longer: no work but that of DaemonSets starts there meanwhile.
func (s *storm) maintain() bool {
	n := pick(s, s.nodes, any1)
	if n == nil {
		return false
	}
	n.maintained = !n.maintained
	s.logf("maintain %s: %t", n.name, n.maintained)
	object, err := s.kube.Tracker().Get(nodeResource, "", n.name)
	if err != nil {
		panic(err)
	}
	node := object.(*corev1.Node).DeepCopy()
	delete(node.Annotations, schedulingv1alpha1.AnnotationMaintenanceFrom)
	if n.maintained {
		metav1.SetMetaDataAnnotation(&node.ObjectMeta, schedulingv1alpha1.AnnotationMaintenanceFrom, time.Now().Format(time.RFC3339))
	}
	if err := s.kube.Tracker().Update(nodeResource, node, ""); err != nil {
		panic(err)
	}
	return true
}

// failBindings has some of the next bindings fail.
func (s *storm) failBindings() bool {
	for range 1 + s.random.IntN(4) {
		s.faults = append(s.faults, bindFault(s.random.IntN(int(bindFaults)+1)))
	}
	s.logf("the next bindings: %v", s.faults)
	return true
}

// failEvictions has some of the next evictions fail: more often than the scheduler tries one, perhaps.
func (s *storm) failEvictions() bool {
	s.evictionFaults = 1 + s.random.IntN(10)
	s.logf("the next %d evictions fail", s.evictionFaults)
	return true
}

// bindForeign binds a member as another scheduler would.
func (s *storm) bindForeign() bool {
	p := pick(s, s.pods, func(p *stormPod) bool {
		g := s.groups[p.group]
		return p.waits() && p.daemon == "" && !p.wantsDevice && (g == nil || g.isPlain() && !g.required())
	})
	if p == nil {
		return false
	}
	n := pick(s, s.nodes, func(n *stormNode) bool {
		used, _ := s.used(n.name)
		return n.cpu-used >= p.cpu
	})
	if n == nil {
		return false
	}
	s.logf("somebody binds %s to %s", p.name, n.name)
	s.departed = append(s.departed, *p) // it waits no more, and the scheduler may not know
	p.foreign = true
	s.excuse(p.group)
	s.setNode(p, n.name)
	s.touch(p.group)
	return true
}
