// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package figures computes the figures of a replay from the runs of its jobs. The package is pure.
package figures

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/lockstep-k8s/lockstep/internal/replay/workload"
)

// Figures are the figures of one policy. Parts are from 0 to 1; times are in seconds.
type Figures struct {
	Policy string `json:"policy"`
	Jobs   int    `json:"jobs"`
	// Unfinished is how many jobs never ran to their end.
	Unfinished int `json:"unfinished"`
	// GAR is the allocation ratio: the part of all units that jobs held, from the creation of the first job to the
	// creation of the last.
	GAR float64 `json:"gar"`
	// SOR is the occupancy: the part of all units that jobs held while at least one job waited.
	SOR float64 `json:"sor"`
	// GFR is the fragmentation: the part of all nodes that had both free and used units, averaged over the same time as
	// GAR.
	GFR float64 `json:"gfr"`
	// Slowdown is the mean bounded slowdown, in which a run shorter than 10 s counts as 10 s.
	Slowdown float64 `json:"boundedSlowdown"`
	// Makespan is from the first creation to the last end.
	Makespan float64 `json:"makespanSeconds"`
	// Classes are the waits by size.
	Classes []Class `json:"classes"`
	// Preempted is how many runs were ended before their job was done. Wasted is what these runs had used, as a part of
	// all units over the whole makespan.
	Preempted int     `json:"preempted"`
	Wasted    float64 `json:"wasted"`
	// InPart is for how many seconds gangs had a part of their Pods placed.
	InPart float64 `json:"gangsInPartSeconds"`
	// Held is, by the reason for a reservation, the part of all units that was kept free for waiting jobs, over the same
	// time as GAR. Nil if unknown.
	Held map[string]float64 `json:"held"`
	// Occupied is GAR in equal parts of the time, for a drawing.
	Occupied []float64 `json:"occupied,omitempty"`
	// CPU is the processor time that Lockstep's scheduler took per 1000 gangs, in seconds. 0 if the policy was played
	// by a model (package policy) and not by the scheduler.
	CPU float64 `json:"cpuSecondsPer1000Gangs"`
	// Starts is the accuracy of expected starts, nil if no job had one.
	Starts *Starts `json:"expectedStarts,omitempty"`
	// Liars compares how long others wait with and without owners who state wrong run times. Nil if all owners are
	// honest.
	Liars *Liars `json:"liars,omitempty"`
}

// HeldInAll returns the part of all units that was kept free for waiting jobs, for any reason.
func (f Figures) HeldInAll() float64 {
	sum := 0.0
	for _, part := range f.Held {
		sum += part
	}
	return sum
}

// Class are the waits of jobs with a size in a range.
type Class struct {
	// Name says the range, such as "2-8".
	Name string `json:"name"`
	Jobs int    `json:"jobs"`
	// P50 to Max are the waits from the creation to the first start, in seconds. The wait of a job that never started
	// is infinite.
	P50 Wait `json:"p50"`
	P90 Wait `json:"p90"`
	P99 Wait `json:"p99"`
	Max Wait `json:"max"`
}

// Wait is a time in seconds, which may be infinite. In JSON an infinite wait is null.
type Wait float64

// MarshalJSON implements json.Marshaler.
func (w Wait) MarshalJSON() ([]byte, error) {
	if math.IsInf(float64(w), 1) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(w), 'f', 3, 64), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (w *Wait) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*w = Wait(math.Inf(1))
		return nil
	}
	seconds, err := strconv.ParseFloat(string(text), 64)
	*w = Wait(seconds)
	return err
}

// Bounds are the largest sizes of all classes but the last, which is unbounded.
type Bounds []int

// DefaultBounds returns the size classes of a cluster, by their upper bounds: one unit, one node, two nodes, and half
// of the cluster; larger jobs are the last class. DefaultBounds leaves out bounds that are no larger than the one
// before.
func DefaultBounds(nodes workload.Nodes) Bounds {
	var bounds Bounds
	for _, bound := range []int{1, nodes.Largest(), 2 * nodes.Largest(), nodes.Units() / 2} {
		if len(bounds) == 0 || bound > bounds[len(bounds)-1] {
			bounds = append(bounds, bound)
		}
	}
	return bounds
}

func (b Bounds) classOf(size int) int {
	class, _ := slices.BinarySearch(b, size)
	return class
}

func (b Bounds) name(class int) string {
	if class == len(b) {
		return fmt.Sprintf("> %d", b[class-1])
	}
	least := 1
	if class > 0 {
		least = b[class-1] + 1
	}
	if least == b[class] {
		return strconv.Itoa(least)
	}
	return fmt.Sprintf("%d-%d", least, b[class])
}

// Of returns the figures of an outcome.
func Of(outcome workload.Outcome, jobs []workload.Job, nodes workload.Nodes, bounds Bounds) Figures {
	f := Figures{Policy: outcome.Policy, Jobs: len(jobs), InPart: outcome.PartTime.Seconds()}
	if len(jobs) > 0 {
		f.CPU = outcome.CPU.Seconds() * 1000 / float64(len(jobs))
	}
	starts := startsIn(outcome, jobs)
	done := make([]bool, len(jobs))
	for _, run := range outcome.Runs {
		if run.Preempted {
			f.Preempted++
			f.Wasted += float64(jobs[run.Job].Size()) * (run.End - run.Start).Seconds()
		} else {
			done[run.Job] = true
		}
		f.Makespan = max(f.Makespan, run.End.Seconds())
	}
	waits := make([][]float64, len(bounds)+1)
	for i := range jobs {
		wait := waitOf(&jobs[i], starts[i])
		if starts[i] >= 0 {
			f.Slowdown += max(1, (wait+jobs[i].Runtime.Seconds())/max(10, jobs[i].Runtime.Seconds()))
		}
		if !done[i] {
			f.Unfinished++
		}
		class := bounds.classOf(jobs[i].Size())
		waits[class] = append(waits[class], wait)
	}
	if n := len(jobs) - f.Unfinished; n > 0 {
		f.Slowdown /= float64(n)
	}
	for class, of := range waits {
		if len(of) == 0 {
			continue
		}
		slices.Sort(of)
		f.Classes = append(f.Classes, Class{Name: bounds.name(class), Jobs: len(of),
			P50: Wait(quantile(of, 0.5)), P90: Wait(quantile(of, 0.9)), P99: Wait(quantile(of, 0.99)), Max: Wait(of[len(of)-1])})
	}
	f.sweep(outcome, jobs, nodes, starts)
	f.Starts = startsOf(outcome.Told, jobs, starts)
	if f.Makespan > 0 {
		f.Wasted /= f.Makespan * float64(nodes.Units())
	}
	return f
}

// quantile returns the smallest of the sorted values v such that at least the given part (0 to 1) of all values are v
// or less.
func quantile(sorted []float64, part float64) float64 {
	return sorted[max(0, int(math.Ceil(part*float64(len(sorted))))-1)]
}

// change is what happens at one moment: a job takes or frees units of nodes, or begins or stops waiting.
type change struct {
	at    time.Duration
	units int
	nodes []int
	waits int
}

func changesOf(outcome workload.Outcome, jobs []workload.Job, starts []time.Duration) []change {
	changes := make([]change, 0, 2*len(outcome.Runs)+2*len(jobs))
	for _, run := range outcome.Runs {
		units := jobs[run.Job].Units
		changes = append(changes, change{at: run.Start, units: units, nodes: run.Nodes}, change{at: run.End, units: -units, nodes: run.Nodes})
	}
	for i := range jobs {
		changes = append(changes, change{at: jobs[i].Submit, waits: 1})
		if starts[i] >= 0 {
			changes = append(changes, change{at: starts[i], waits: -1})
		}
	}
	// Releases come first, so that no node is overcommitted.
	slices.SortStableFunc(changes, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.units, b.units))
	})
	return changes
}

// sweep goes over the time and adds up GAR, SOR and GFR.
func (f *Figures) sweep(outcome workload.Outcome, jobs []workload.Job, nodes workload.Nodes, starts []time.Duration) {
	if len(jobs) == 0 {
		return
	}
	last := jobs[len(jobs)-1].Submit
	used := make([]int, len(nodes))
	allocated, broken, waiting := 0, 0, 0
	var now time.Duration
	var all, busy, part, contended, contendedBusy float64
	for _, c := range changesOf(outcome, jobs, starts) {
		until := min(c.at, last)
		if span := (until - now).Seconds(); span > 0 {
			all += span
			busy += span * float64(allocated)
			f.occupy(now, until, last, float64(allocated)/float64(nodes.Units()))
			part += span * float64(broken)
			if waiting > 0 {
				contended += span
				contendedBusy += span * float64(allocated)
			}
			now = until
		}
		waiting += c.waits
		for _, node := range c.nodes {
			was := used[node] > 0 && used[node] < nodes[node]
			used[node] += c.units
			allocated += c.units
			switch is := used[node] > 0 && used[node] < nodes[node]; {
			case is && !was:
				broken++
			case was && !is:
				broken--
			}
		}
	}
	units := float64(nodes.Units())
	f.GAR, f.GFR = ratio(busy, all*units), ratio(part, all*float64(len(nodes)))
	f.SOR = ratio(contendedBusy, contended*units)
	if outcome.Held != nil {
		f.Held = make(map[string]float64, len(outcome.Held))
		for reason, held := range outcome.Held {
			f.Held[reason] = ratio(held, all*units)
		}
	}
}

// parts is into how many parts the time is divided for Occupied.
const parts = 240

// occupy adds the time between two moments, in which the given part of all units was in use, to the occupancy of each
// bin.
func (f *Figures) occupy(from, to, last time.Duration, part float64) {
	if f.Occupied == nil {
		f.Occupied = make([]float64, parts)
	}
	width := last.Seconds() / parts
	for i := int(from.Seconds() / width); i < parts && float64(i)*width < to.Seconds(); i++ {
		within := min(to.Seconds(), float64(i+1)*width) - max(from.Seconds(), float64(i)*width)
		f.Occupied[i] += part * max(0, within) / width
	}
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
