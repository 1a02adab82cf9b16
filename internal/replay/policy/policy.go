// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policy plays a workload under policies from textbooks, to compare a scheduler with them. The policies are
// models: a decision takes no time, and a Pod needs nothing but units of one node.
//
//   - FIFO: jobs start in the order of their creation. If the first job does not fit, all others wait.
//   - Greedy: any job that fits starts. This is what kube-scheduler and the plugin Coscheduling of scheduler-plugins do.
//   - EASY: the first job that does not fit gets a reservation at the earliest time at which it fits, by the limits of running jobs. Other jobs start only if they end before that time by their own limits, or use what the reservation leaves (Lifka 1995).
//   - EASYTrue: EASY, with the true run times as limits.
package policy

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/lockstep-k8s/lockstep/internal/replay/workload"
)

// Name names a policy.
type Name string

// The policies.
const (
	FIFO     Name = "fifo"
	Greedy   Name = "greedy"
	EASY     Name = "easy"
	EASYTrue Name = "easy-true"
)

// Names are all policies.
var Names = []Name{FIFO, Greedy, EASY, EASYTrue}

// never is the end of a job with an unknown limit.
const never = time.Duration(math.MaxInt64)

// Play plays jobs on nodes and returns the outcome. jobs are sorted by the time of their creation.
func Play(name Name, jobs []workload.Job, nodes workload.Nodes) workload.Outcome {
	p := &player{name: name, jobs: jobs, free: newPool(nodes), outcome: workload.Outcome{Policy: string(name), Held: map[string]float64{}}}
	held := 0
	for next := 0; ; {
		before := p.now
		end, running := p.running.End()
		switch {
		case next < len(jobs) && (!running || jobs[next].Submit < end):
			p.now = jobs[next].Submit
		case running:
			p.now = end
		default:
			slices.SortStableFunc(p.outcome.Runs, func(a, b workload.Run) int { return cmp.Compare(a.Start, b.Start) })
			return p.outcome
		}
		if next < len(jobs) && held > 0 {
			p.outcome.Held[workload.InTime] += float64(held) * (p.now - before).Seconds()
		}
		for ended, ok := p.running.Ended(p.now); ok; ended, ok = p.running.Ended(p.now) {
			p.free.add(ended.Nodes, jobs[ended.Job].Units)
		}
		for next < len(jobs) && jobs[next].Submit <= p.now {
			p.waiting = append(p.waiting, next)
			next++
		}
		held = p.start().held(p.free)
	}
}

type player struct {
	name    Name
	jobs    []workload.Job
	now     time.Duration
	free    *pool
	running workload.Running
	// waiting are the jobs that wait, in order.
	waiting []int
	outcome workload.Outcome
}

// shape is what jobs that fit on the same nodes have in common.
type shape struct {
	pods, units int
	// outlasts says that the job may run on when a reservation begins.
	outlasts bool
}

// start starts all waiting jobs that the policy lets start now, and returns the reservation of the first that still
// waits; nil if there is none.
func (p *player) start() (reserved *reservation) {
	refused := map[shape]bool{}
	still := p.waiting[:0]
	for i, job := range p.waiting {
		of := shape{pods: p.jobs[job].Pods, units: p.jobs[job].Units}
		var nodes []int
		if reserved != nil {
			of.outlasts = p.latestEnd(job, p.now) > reserved.at
		}
		if !refused[of] {
			nodes = p.place(of, reserved)
		}
		if nodes != nil {
			p.run(job, nodes)
			if of.outlasts && reserved != nil {
				reserved.take(nodes, of.units)
			}
			continue
		}
		refused[of] = true
		still = append(still, job)
		if p.name == FIFO {
			still = append(still, p.waiting[i+1:]...)
			break
		}
		if reserved == nil && (p.name == EASY || p.name == EASYTrue) {
			reserved = p.reserve(job)
			clear(refused)
			refused[shape{pods: of.pods, units: of.units, outlasts: true}] = true
			if p.free.none() {
				still = append(still, p.waiting[i+1:]...)
				break
			}
		}
	}
	p.waiting = still
	return reserved
}

// place returns a node for each Pod of a job, or nil.
func (p *player) place(of shape, reserved *reservation) []int {
	if reserved != nil && of.outlasts {
		return reserved.place(p.free, of)
	}
	return p.free.place(of.pods, of.units)
}

func (p *player) run(job int, nodes []int) {
	p.free.remove(nodes, p.jobs[job].Units)
	run := workload.Run{Job: job, Start: p.now, End: p.now + p.jobs[job].Runtime, Nodes: nodes}
	p.outcome.Runs = append(p.outcome.Runs, run)
	p.running.Add(run)
}

// latestEnd returns the time by which a job that starts at start must have ended, given the limit that the policy
// knows.
func (p *player) latestEnd(job int, start time.Duration) time.Duration {
	switch {
	case p.name == EASYTrue:
		return start + p.jobs[job].Runtime
	case p.jobs[job].Limit == 0:
		return never
	default:
		return start + p.jobs[job].Limit
	}
}

// reservation is for the first job that waits: nodes, from a time on.
type reservation struct {
	at time.Duration
	// spare is how many units of each node will be free at that time, beside the reserved job.
	spare []int
}

// reserve returns a reservation at the earliest time at which a job fits, if running jobs end by their limits. A job
// that has exceeded its limit is expected to end now.
func (p *player) reserve(job int) *reservation {
	ending := slices.Clone(p.running.All())
	ends := func(r workload.Run) time.Duration { return max(p.now, p.latestEnd(r.Job, r.Start)) }
	slices.SortFunc(ending, func(a, b workload.Run) int { return cmp.Compare(ends(a), ends(b)) })
	then := p.free.clone()
	units, pods := p.jobs[job].Units, p.jobs[job].Pods
	at := p.now
	last := make([]time.Duration, len(then.free)) // when the last job on each node ends, 0 if nothing ends there
	for i, run := range ending {
		then.add(run.Nodes, p.jobs[run.Job].Units)
		at = ends(run)
		for _, node := range run.Nodes {
			last[node] = at
		}
		if i+1 < len(ending) && ends(ending[i+1]) == at {
			continue
		}
		if _, ok := then.fits(pods, units); ok {
			then.remove(then.placeIn(latestFirst(last), pods, units), units)
			break
		}
	}
	return &reservation{at: at, spare: then.free}
}

// latestFirst returns the nodes in the order in which a reservation takes them: those that become free last come first,
// so that jobs that may run on find as much room as possible now.
func latestFirst(last []time.Duration) []int {
	nodes := make([]int, len(last))
	for node := range nodes {
		nodes[node] = node
	}
	slices.SortStableFunc(nodes, func(a, b int) int { return -cmp.Compare(last[a], last[b]) })
	return nodes
}

// place returns a node for each Pod of a job that may still run when the reserved job starts; nil if there is no room.
// place uses only room that the reserved job leaves.
func (r *reservation) place(now *pool, of shape) []int {
	var nodes []int
	for node, free := range now.free {
		for n := min(free, r.spare[node]) / of.units; n > 0 && len(nodes) < of.pods; n-- {
			nodes = append(nodes, node)
		}
		if len(nodes) == of.pods {
			return nodes
		}
	}
	return nil
}

// held returns how many of the free units are only for jobs that end before the reserved job starts. There are none if
// nobody knows when that is, or if the reservation is nil.
func (r *reservation) held(now *pool) (units int) {
	if r == nil || r.at == never {
		return 0
	}
	for node, free := range now.free {
		units += free - min(free, max(0, r.spare[node]))
	}
	return units
}

// take notes that a job that may run on has got nodes.
func (r *reservation) take(nodes []int, units int) {
	for _, node := range nodes {
		r.spare[node] -= units
	}
}
