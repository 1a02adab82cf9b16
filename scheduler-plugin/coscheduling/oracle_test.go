// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"flag"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/place"
)

var (
	oracleDrawsFlag = flag.Int64("oracle-draws", 150, "how many draws TestOracle has")
	oracleFirstFlag = flag.Int64("oracle-first-seed", 0, "the seed of the first draw of TestOracle")
	oracleSeedFlag  = flag.Int64("oracle-seed", -1, "have only the draw of this seed in TestOracle, and print it")
)

// oracleRuns is how often kube-scheduler places the Pods of a draw.
const oracleRuns = 5

// TestOracle compares a gang with the same Pods without a group. Where kube-scheduler, which
// scores all nodes, places all of them one by one in each of five orders, the gang is placed, and
// what its Pods prefer is fulfilled about as well as in the worst of the five.
func TestOracle(t *testing.T) {
	w := newWorld(t)
	w.verbosity, w.scoresAll, w.args = 0, true, `{"cycleTimeout":"1m"}`
	w.start()()
	first, count := *oracleFirstFlag, *oracleDrawsFlag
	if *oracleSeedFlag >= 0 {
		first, count = *oracleSeedFlag, 1
		t.Logf("the draw is\n%v", newDraw(first))
	}
	var ratios []float64
	placed := 0
	for seed := first; seed < first+count; seed++ {
		d := newDraw(seed)
		o := &oracle{world: w, draw: d}
		worst, all := o.worst(seed)
		if !all {
			continue
		}
		placed++
		where, why := o.gang()
		if why != "" {
			t.Errorf("kube-scheduler places all %d Pods one by one, but not as a gang: %s; replay with -run Oracle -oracle-seed %d", len(d.members), why, seed)
			continue
		}
		if worst == 0 {
			continue
		}
		ratio := d.fulfilled(where) / worst
		if ratios = append(ratios, ratio); ratio < 0.8 {
			t.Errorf("what the Pods of the gang prefer is fulfilled to %.2f of what kube-scheduler does at the worst; replay with -run Oracle -oracle-seed %d", ratio, seed)
		}
	}
	if slices.Sort(ratios); len(ratios) > 0 {
		t.Logf("of %d draws kube-scheduler places %d; preferences are fulfilled to %.2f at the worst, %.2f in the median", count, placed, ratios[0], ratios[len(ratios)/2])
		if median := ratios[len(ratios)/2]; count > 1 && median < 0.95 {
			t.Errorf("what Pods prefer is fulfilled to %.2f in the median of what kube-scheduler does at the worst", median)
		}
	}
}

// oracle places the Pods of a draw, one by one or as a gang.
type oracle struct {
	world *world
	draw  *draw
}

// with does something while the nodes and Pods of the draw are there.
func (o *oracle) with(do func(ctx context.Context)) {
	w, logger := o.world, klog.Background()
	for _, node := range o.draw.nodes {
		w.sched.Cache.AddNode(logger, node)
	}
	for _, pod := range o.draw.existing {
		o.must(w.sched.Cache.AddPod(logger, pod))
	}
	do(klog.NewContext(w.t.Context(), logger))
	for _, pod := range o.draw.existing {
		o.must(w.sched.Cache.RemovePod(logger, pod))
	}
	for _, node := range o.draw.nodes {
		o.must(w.sched.Cache.RemoveNode(logger, node))
	}
}

func (o *oracle) must(err error) {
	o.world.t.Helper()
	if err != nil {
		o.world.t.Fatal(err)
	}
}

// worst places the Pods without a group in several orders. It returns how well what they prefer is
// fulfilled at the worst, and false if a Pod finds no place in one of the orders.
func (o *oracle) worst(seed int64) (worst float64, all bool) {
	random := rand.New(rand.NewPCG(uint64(seed), 22))
	all = true
	o.with(func(ctx context.Context) {
		pods := slices.Clone(o.draw.members)
		for run := range oracleRuns {
			where, ok := o.oneByOne(ctx, pods)
			if all = all && ok; !all {
				return
			}
			if sum := o.draw.fulfilled(where); run == 0 || sum < worst {
				worst = sum
			}
			random.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
		}
	})
	return worst, all
}

// oneByOne has kube-scheduler place Pods in an order, as Pods without a group, and takes them away.
// It returns false if one of them finds no place.
func (o *oracle) oneByOne(ctx context.Context, pods []*corev1.Pod) (where map[string]string, ok bool) {
	w, logger := o.world, klog.FromContext(ctx)
	where = make(map[string]string)
	for _, member := range pods {
		pod := member.DeepCopy()
		delete(pod.Labels, schedulingv1alpha1.LabelPodGroup)
		info, err := framework.NewPodInfo(pod)
		o.must(err)
		o.must(w.engine().sched.UpdateSnapshot(logger))
		profile, state := w.sched.Profiles[testScheduler], framework.NewCycleState()
		result, err := w.sched.SchedulePod(ctx, profile, state, &framework.QueuedPodInfo{PodInfo: info})
		if err != nil {
			return nil, false
		}
		pod.Spec.NodeName = result.SuggestedHost
		if !profile.RunReservePluginsReserve(ctx, state, pod, pod.Spec.NodeName).IsSuccess() {
			return nil, false
		}
		defer profile.RunReservePluginsUnreserve(ctx, state, pod, pod.Spec.NodeName)
		o.must(w.sched.Cache.AssumePod(logger, pod))
		defer func() { o.must(w.sched.Cache.ForgetPod(logger, pod)) }()
		where[pod.Name] = pod.Spec.NodeName
	}
	return where, true
}

// gang places the Pods as a gang. It returns where, or why not.
func (o *oracle) gang(change ...func(*schedulingv1alpha1.PodGroupSpec)) (where map[string]string, why string) {
	view := gangView{Gang: place.Gang{View: gangs.View{Key: gangName, Group: dialect.FromOwn(makeGroup(gangName.Name, int32(len(o.draw.members)), change...))}}}
	for _, pod := range o.draw.members {
		view.Waiting = append(view.Waiting, pod)
		view.ClassKeys = append(view.ClassKeys, place.ClassKey(pod, podgroup.RoleOf(pod)))
	}
	where = make(map[string]string)
	o.with(func(ctx context.Context) {
		engine := o.world.engine()
		engine.passes = place.Passes{}
		out, err := engine.plan(ctx, &view, false)
		o.must(err)
		if out.Shortfall != nil {
			why = out.Shortfall.Message
		}
		for _, p := range out.Placements {
			where[p.Pod.Name] = p.Node
		}
		engine.release(ctx, out.Placements, 0)
	})
	return where, why
}

// fulfilled is the sum of what the members prefer and have, where they are.
func (d *draw) fulfilled(where map[string]string) float64 {
	nodes := make(map[string]*corev1.Node)
	avoided := false
	for _, node := range d.nodes {
		nodes[node.Name] = node
		avoided = avoided || slices.ContainsFunc(node.Spec.Taints, isAvoided)
	}
	var pods []*corev1.Pod
	for _, pod := range slices.Concat(d.existing, d.members) {
		if node := where[pod.Name]; node != "" {
			pod = pod.DeepCopy()
			pod.Spec.NodeName = node
		}
		pods = append(pods, pod)
	}
	sum := 0.0
	for _, pod := range pods[len(d.existing):] {
		node := nodes[pod.Spec.NodeName]
		if avoided {
			if _, found := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, pod.Spec.Tolerations, isAvoidedBy, false); !found {
				sum++
			}
		}
		for _, c := range pod.Spec.TopologySpreadConstraints {
			if c.WhenUnsatisfiable == corev1.ScheduleAnyway {
				sum += evenness(c, node, nodes, pods)
			}
		}
		a := pod.Spec.Affinity
		if a == nil {
			continue
		}
		if a.NodeAffinity != nil {
			terms, err := nodeaffinity.NewPreferredSchedulingTerms(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
			if err != nil {
				panic(err)
			}
			sum += float64(terms.Score(node)) / 100
		}
		for _, wanted := range a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
			if hasNear(wanted.PodAffinityTerm, pod, nodes, pods) {
				sum += float64(wanted.Weight) / 100
			}
		}
		for _, unwanted := range a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
			if !hasNear(unwanted.PodAffinityTerm, pod, nodes, pods) {
				sum += float64(unwanted.Weight) / 100
			}
		}
	}
	return sum
}

func isAvoided(taint corev1.Taint) bool    { return taint.Effect == corev1.TaintEffectPreferNoSchedule }
func isAvoidedBy(taint *corev1.Taint) bool { return isAvoided(*taint) }

// hasNear says whether another Pod that a term is about is in the same domain.
func hasNear(term corev1.PodAffinityTerm, pod *corev1.Pod, nodes map[string]*corev1.Node, pods []*corev1.Pod) bool {
	selector := labels.SelectorFromSet(term.LabelSelector.MatchLabels)
	domain, has := nodes[pod.Spec.NodeName].Labels[term.TopologyKey]
	return has && slices.ContainsFunc(pods, func(other *corev1.Pod) bool {
		return other.Name != pod.Name && selector.Matches(labels.Set(other.Labels)) && nodes[other.Spec.NodeName].Labels[term.TopologyKey] == domain
	})
}

// evenness is 1 if a node's domain has no more Pods than a constraint wants, and less the more it has.
func evenness(c corev1.TopologySpreadConstraint, on *corev1.Node, nodes map[string]*corev1.Node, pods []*corev1.Pod) float64 {
	selector, counts := labels.SelectorFromSet(c.LabelSelector.MatchLabels), make(map[string]int)
	for _, node := range nodes {
		if domain, has := node.Labels[c.TopologyKey]; has {
			counts[domain] += 0
		}
	}
	for _, pod := range pods {
		if domain, has := nodes[pod.Spec.NodeName].Labels[c.TopologyKey]; has && selector.Matches(labels.Set(pod.Labels)) {
			counts[domain]++
		}
	}
	domain, has := on.Labels[c.TopologyKey]
	if !has {
		return 0
	}
	least := counts[domain]
	for _, n := range counts {
		least = min(least, n)
	}
	return min(1, float64(c.MaxSkew)/float64(max(1, counts[domain]-least)))
}
