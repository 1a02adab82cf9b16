// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-k8s/lockstep/internal/times"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/ends"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/forecast"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
)

// maxExpected is for how many gangs of one priority starts are computed.
const maxExpected = 100

// Expected is when a waiting gang is expected to start, given the present queue.
type Expected struct {
	// Latest is when the gang starts if all work runs as long as its limits allow. Probable is when the gang probably
	// starts: by estimates, each corrected by how much of their estimates similar gangs have used. Zero if unknown.
	Latest, Probable time.Time
	// Awaited are the gangs and Pods that run on the gang's nodes and have to end before the gang starts, the last to
	// end first. A Pod without a gang has a key without a name.
	Awaited []dialect.Key
}

// isUnknown reports whether nothing is known of the start.
func (e *Expected) isUnknown() bool { return e.Latest.IsZero() && e.Probable.IsZero() }

// ExpectedStarts returns when waiting gangs are expected to start, for the first gangs of each priority. `reserved` are
// the nodes that are reserved for gangs, as far as the caller knows. A gang with an unknown start has the zero Expected,
// but is left out if there was no time to compute the start. If nodes or Pods can't be read, the result is empty.
func ExpectedStarts(s *Snapshot, reserved map[dialect.Key][]string) map[dialect.Key]Expected {
	return expectedStarts(s, gangs(s), reserved)
}

func expectedStarts(s *Snapshot, all map[dialect.Key]*gang, reserved map[dialect.Key][]string) map[dialect.Key]Expected {
	if s.NoNodes || s.NoPods || s.SomePods {
		return nil
	}
	x := &expecting{snapshot: s, needs: make(map[string]*forecast.Gang), work: make(map[int]*gang)}
	line := inOrder(all)
	x.queue(line)
	if len(x.gangs) == 0 {
		return nil
	}
	x.running(all)
	latest, probable := x.waiting(reserved)
	world := x.survey.worldWith(s.Pods)
	inOrder := forecast.InOrder(world, x.latest, latest, s.isOver)
	overtaking := forecast.Backfilled(world, x.latest, latest, s.isOver)
	probably := forecast.Backfilled(world, x.probable, probable, s.isOver)
	expected := make(map[dialect.Key]Expected)
	if !s.isOver() {
		for _, g := range line {
			expected[g.group.Key] = Expected{}
		}
	}
	drawn := x.draw(world, probable)
	for i, g := range x.gangs {
		e := Expected{Latest: x.after(max(inOrder[i].In, overtaking[i].In)), Probable: x.after(middle(drawn[i], probably[i].In))}
		e.Awaited = x.awaited(&probably[i])
		if !e.Latest.IsZero() {
			e.Probable = times.Sooner(e.Probable, e.Latest)
		}
		if !e.isUnknown() {
			expected[g.group.Key] = e
		}
	}
	return expected
}

// expecting is a computation of expected starts.
type expecting struct {
	snapshot *Snapshot
	survey   *survey
	// gangs are the waiting gangs, in order. classes are the classes of their members.
	gangs   []*gang
	classes [][]*class
	// latest and probable are the running work, with the latest and with the probable ends. keys are the keys of that
	// work, in the same order.
	latest, probable []forecast.Work
	keys             []dialect.Key
	// work are the gangs that run, by their numbers in latest and probable.
	work map[int]*gang
	// needs caches gangs for package forecast by what they need.
	needs map[string]*forecast.Gang
}

// queue takes the first gangs of each priority that can be simulated.
func (x *expecting) queue(inLine []*gang) {
	var every []*class
	taken := make(map[int32]int)
	for _, g := range inLine {
		if taken[g.rank.Priority] == maxExpected || x.snapshot.isOver() {
			continue
		}
		if classes, err := classify(g); err == nil {
			taken[g.rank.Priority]++
			x.gangs, x.classes, every = append(x.gangs, g), append(x.classes, classes), append(every, classes...)
		}
	}
	x.survey = surveyFor(x.snapshot.Nodes, resourcesOf(every))
}

// running records what runs, and when it ends.
func (x *expecting) running(all map[dialect.Key]*gang) {
	now := x.snapshot.Now
	of := make(map[dialect.Key]int)
	for _, pod := range x.snapshot.Pods {
		node, known := x.survey.index[pod.Spec.NodeName]
		if !known || hasEnded(pod) {
			continue
		}
		takes := forecast.Take{Node: node, Amount: x.survey.taking(pod)}
		key, named := x.snapshot.Links.KeyOf(pod)
		g := all[key]
		isMember := named && g != nil && g.group.HasMember(pod)
		if at, known := of[key]; known && isMember {
			x.latest[at].Takes = append(x.latest[at].Takes, takes)
			x.probable[at].Takes = x.latest[at].Takes
			continue
		}
		var end ends.End
		switch {
		case isMember:
			of[key] = len(x.keys)
			x.work[len(x.keys)] = g
			end = x.endOf(g, g.running(), g.placedPods(), median)
		case pod.DeletionTimestamp != nil:
			end.Latest = times.Later(pod.DeletionTimestamp.Time, now)
		case ends.ByItself(pod):
			end = ends.OfPod(pod, now)
		}
		if !isMember {
			key = dialect.Key{Namespace: pod.Namespace}
		}
		x.keys = append(x.keys, key)
		x.latest = append(x.latest, forecast.Work{Ends: x.until(end.Latest), Takes: []forecast.Take{takes}})
		x.probable = append(x.probable, forecast.Work{Ends: x.until(end.Until(true)), Takes: []forecast.Take{takes}})
	}
}

// median is the quantile of run times that stands for the median gang.
const median = 0.5

// endOf returns when a gang ends. The members run, or start now. The run time is the quantile `part` (from 0 to 1) of
// the run times of similar gangs.
func (x *expecting) endOf(g *gang, minimum int, members []*corev1.Pod, part float64) ends.End {
	runtime, now := g.group.Spec.Runtime, x.snapshot.Now
	if x.snapshot.Runs != nil {
		runtime.Expected = x.snapshot.Runs(g.group, Ran(members, now), part)
	}
	return ends.OfGang(runtime, minimum, members, now)
}

// Ran returns for how long all of the Pods have been running. It is 0 if one has not started.
func Ran(pods []*corev1.Pod, now time.Time) time.Duration {
	var begun time.Time
	for _, pod := range pods {
		if pod.Status.StartTime == nil {
			return 0
		}
		begun = times.Later(begun, pod.Status.StartTime.Time)
	}
	if begun.IsZero() {
		return 0
	}
	return max(0, now.Sub(begun))
}

// running returns how many members have to have started before the gang's time counts.
func (g *gang) running() int {
	ended := int(g.placed.Total) - len(g.nodes)
	return int(g.group.Spec.Minimum.Members) - max(0, ended)
}

// waiting returns the waiting gangs, with either kind of run time.
func (x *expecting) waiting(reserved map[dialect.Key][]string) (latest, probable []forecast.Gang) {
	waiting := x.gangs
	x.gangs = nil
	for i, g := range waiting {
		// The gang starts at the latest where room is reserved, or elsewhere if there is room earlier.
		of, anywhere := x.need(g, x.classes[i], reserved[g.group.Key]), x.need(g, x.classes[i], nil)
		if of.Need == nil {
			continue // the gang can't be simulated
		}
		x.gangs = append(x.gangs, g)
		end := x.endOf(g, int(g.group.Spec.Minimum.Members), g.waiting, median)
		of.Runs = x.until(end.Latest)
		latest = append(latest, of)
		anywhere.Runs = x.until(end.Until(true))
		probable = append(probable, anywhere)
	}
	return latest, probable
}

// draws is the number of schedules for the probable start.
const draws = 8

// draw returns when each gang starts in several schedules. In each schedule the run times are drawn from those of
// similar gangs. A single schedule of median run times would be wrong: the first of ten gangs to end ends earlier than
// the smallest of their medians. If there is no time for all schedules, draw returns none, because fewer schedules
// would cover only some of the run times.
func (x *expecting) draw(world *planner.World, waiting []forecast.Gang) [][]time.Duration {
	drawn := make([][]time.Duration, len(waiting))
	if x.snapshot.Runs == nil {
		return drawn
	}
	works, gangs := slices.Clone(x.probable), slices.Clone(waiting)
	for n := range draws {
		for i, g := range x.work {
			works[i].Ends = x.until(x.endOf(g, g.running(), g.placedPods(), partOf(g, n)).Until(true))
		}
		for i, g := range x.gangs {
			gangs[i].Runs = x.until(x.endOf(g, int(g.group.Spec.Minimum.Members), g.waiting, partOf(g, n)).Until(true))
		}
		starts := forecast.Backfilled(world, works, gangs, x.snapshot.isOver)
		if x.snapshot.isOver() {
			return make([][]time.Duration, len(waiting))
		}
		for i := range starts {
			drawn[i] = append(drawn[i], starts[i].In)
		}
	}
	return drawn
}

// partOf returns the quantile of run times that a gang has in a draw. The quantiles of all draws are spread evenly, and
// shifted by an amount that differs from gang to gang.
func partOf(g *gang, draw int) float64 {
	name := sha256.Sum256([]byte(g.group.Key.String())) // names that differ in one digit must have shifts far apart
	shift := float64(binary.BigEndian.Uint64(name[:8])>>1) / (1 << 63)
	_, part := math.Modf(shift + float64(draw)/draws)
	return part
}

// middle returns the median of some times, and another one if there are none.
func middle(of []time.Duration, without time.Duration) time.Duration {
	if len(of) == 0 {
		return without
	}
	slices.Sort(of)
	return of[len(of)/2]
}

// need returns what a gang needs. If nodes are reserved for the gang, only these nodes count.
func (x *expecting) need(g *gang, classes []*class, reserved []string) forecast.Gang {
	var key strings.Builder
	least, roles := g.minima()
	fmt.Fprint(&key, least, roles, g.group.Spec.Topology, g.nodes, reserved)
	for _, c := range classes {
		fmt.Fprint(&key, c.text, len(c.members))
	}
	if known := x.needs[key.String()]; known != nil {
		return *known
	}
	of := forecast.Gang{}
	x.survey.ask(g, classes, x.snapshot.Pods)
	of.Need = x.survey.gang
	of.Need.LeastOnly = true
	if len(of.Need.Levels) > 0 {
		for _, node := range x.snapshot.Nodes {
			var domains []string
			for _, level := range of.Need.Levels {
				domains = append(domains, node.Labels[level.Key])
			}
			of.Domains = append(of.Domains, domains)
		}
	}
	if len(reserved) > 0 {
		for c := range of.Need.Classes {
			eligible := of.Need.Classes[c].Eligible
			for n := range eligible {
				eligible[n] = eligible[n] && slices.Contains(reserved, x.snapshot.Nodes[n].Name)
			}
		}
	}
	x.needs[key.String()] = &of
	return of
}

// until returns the time from now until something happens.
func (x *expecting) until(at time.Time) time.Duration {
	if at.IsZero() {
		return forecast.Never
	}
	return max(0, at.Sub(x.snapshot.Now))
}

// after returns the time of something that happens after a duration from now.
func (x *expecting) after(in time.Duration) time.Time {
	if in == forecast.Never {
		return time.Time{}
	}
	return x.snapshot.Now.Add(in)
}

// awaited returns what ends on the nodes of a gang before the gang starts.
func (x *expecting) awaited(start *forecast.Start) []dialect.Key {
	var works []int
	for i, work := range x.probable {
		if start.In != forecast.Never && work.Ends <= start.In && slices.ContainsFunc(work.Takes, func(take forecast.Take) bool {
			_, uses := slices.BinarySearch(start.Nodes, take.Node)
			return uses
		}) {
			works = append(works, i)
		}
	}
	slices.SortStableFunc(works, func(a, b int) int { return cmp.Compare(x.probable[b].Ends, x.probable[a].Ends) })
	var keys []dialect.Key
	for _, i := range works {
		keys = append(keys, x.keys[i])
	}
	return keys
}
