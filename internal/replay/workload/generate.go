// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Capability generates the workload of a machine for large jobs, such as those of national laboratories: sizes from
// one node to all nodes, run times of minutes to a day, and limits. The median job uses 35 % of its limit. load is the
// part of all node time that the jobs need. The same seed gives the same jobs.
func Capability(n int, nodes Nodes, load float64, seed uint64) []Job {
	random := rand.New(rand.NewPCG(seed, 1))
	return generate(random, n, 40, nodes, load, func(job *Job) {
		job.Units, job.Pods = nodes.Largest(), capabilitySize(random, len(nodes))
		// Log-normal run times with a median of 40 minutes, at most a day.
		job.Runtime = seconds(min(86400, 2400*math.Exp(1.3*random.NormFloat64())))
		job.Limit = overstated(random, job.Runtime)
	})
}

// generate draws n jobs that belong to a number of owners. The jobs are created over so much time that they need a
// fraction of the time of all nodes: `load`.
func generate(random *rand.Rand, n, owners int, nodes Nodes, load float64, draw func(*Job)) []Job {
	jobs := make([]Job, n)
	var asked float64
	for i := range jobs {
		job := &jobs[i]
		job.Name = fmt.Sprintf("job-%d", i)
		job.Owner = fmt.Sprintf("team-%d", random.IntN(owners))
		draw(job)
		asked += float64(job.Size()) * job.Runtime.Seconds()
	}
	arrive(random, jobs, asked/load/float64(nodes.Units()))
	return jobs
}

// capabilitySize draws a number of nodes: many small jobs, a tail of large ones, up to all nodes.
func capabilitySize(random *rand.Rand, nodes int) int {
	switch p := random.Float64(); {
	case p < 0.01:
		return nodes/2 + 1 + random.IntN(nodes-nodes/2)
	case p < 0.05:
		return nodes/8 + random.IntN(nodes/2-nodes/8+1)
	default:
		return max(1, min(nodes/8, int(math.Exp(random.Float64()*math.Log(float64(nodes)/8)))))
	}
}

// overstated draws a limit for a run time. The median job uses 35 % of its limit. Limits are round numbers, as people
// choose them.
func overstated(random *rand.Rand, runtime time.Duration) time.Duration {
	used := 0.02 + 0.98*math.Pow(random.Float64(), 1.57) // the median is 0.35
	limit := time.Duration(float64(runtime) / used)
	for _, round := range []time.Duration{15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 12 * time.Hour, 24 * time.Hour} {
		if limit <= round {
			return round
		}
	}
	return max(24*time.Hour, limit.Round(time.Hour))
}

// arrive draws the jobs' times of creation, over a span in seconds. More jobs are created by day than by night.
func arrive(random *rand.Rand, jobs []Job, span float64) {
	for i := range jobs {
		for {
			at := random.Float64() * span
			if random.Float64() < 0.6+0.4*math.Sin(2*math.Pi*at/86400) {
				jobs[i].Submit = seconds(at)
				break
			}
		}
	}
}

// Training generates the workload of a cluster of GPU nodes: most jobs have one GPU, one in fifteen more than two
// nodes. No limits are known.
func Training(n int, nodes Nodes, load float64, seed uint64) []Job {
	random := rand.New(rand.NewPCG(seed, 2))
	perNode := nodes.Largest()
	return generate(random, n, 12, nodes, load, func(job *Job) {
		units := 1
		switch p := random.Float64(); {
		case p < 0.60:
		case p < 0.80:
			units = min(perNode, 1<<random.IntN(4))
		case p < 0.93:
			units = perNode * (1 + random.IntN(2))
		default:
			units = perNode * min(max(1, len(nodes)/4), 3+random.IntN(14))
		}
		job.Split(units, perNode)
		job.Runtime = seconds(min(7*86400, 1200*math.Exp(1.8*random.NormFloat64())))
	})
}

// stated returns a limit that is a run time times a factor, at least a second and at most ten years.
func stated(factor float64, runtime time.Duration) time.Duration {
	return max(time.Second, limit(factor*runtime.Seconds()))
}

// Estimates returns the jobs with limits. The limit of a job is its run time times a factor, drawn evenly from 1 to
// `most`.
func Estimates(jobs []Job, most float64, seed uint64) []Job {
	random := rand.New(rand.NewPCG(seed, 3))
	estimated := append([]Job(nil), jobs...)
	for i := range estimated {
		factor := 1 + (most-1)*random.Float64()
		estimated[i].Limit = stated(factor, estimated[i].Runtime)
	}
	return estimated
}

// Liars are two owners who state wrong run times.
type Liars struct {
	Overstates, Understates string
}

// Lie returns the jobs with wrong limits for the two owners whose jobs take the most node time. The first owner's
// limits are the run times multiplied by a factor, the second owner's are the run times divided by the factor. Lie
// returns an error unless there are jobs of other owners, too.
func Lie(jobs []Job, factor float64) ([]Job, Liars, error) {
	work := map[string]float64{}
	for _, job := range jobs {
		work[job.Owner] += float64(job.Size()) * job.Runtime.Seconds()
	}
	if len(work) < 3 {
		return nil, Liars{}, fmt.Errorf("two owners lie, and the jobs are of %d owners: at least three are needed", len(work))
	}
	owners := slices.SortedFunc(maps.Keys(work), func(a, b string) int {
		return cmp.Or(-cmp.Compare(work[a], work[b]), cmp.Compare(a, b))
	})
	liars := Liars{Overstates: owners[0], Understates: owners[1]}
	lying := slices.Clone(jobs)
	for i := range lying {
		switch job := &lying[i]; job.Owner {
		case liars.Overstates:
			job.Limit = stated(factor, job.Runtime)
		case liars.Understates:
			job.Limit = stated(1/factor, job.Runtime)
		}
	}
	return lying, liars, nil
}

// Weeks returns a variant of a workload: as many weeks as the workload has, each drawn from its weeks with replacement.
// The last week may be a part of a week, and is as long as it is. The seed decides the draw. If a class has few jobs,
// variants show how much its figures depend on chance. jobs are sorted by the time of their creation.
func Weeks(jobs []Job, seed uint64) []Job {
	const week = 7 * 24 * time.Hour
	random := rand.New(rand.NewPCG(seed, 4))
	var weeks [][]Job
	for _, job := range jobs {
		for int(job.Submit/week) >= len(weeks) {
			weeks = append(weeks, nil)
		}
		weeks[job.Submit/week] = append(weeks[job.Submit/week], job)
	}
	var drawn []Job
	begin := time.Duration(0)
	for i := range weeks {
		from := random.IntN(len(weeks))
		shift := begin - time.Duration(from)*week
		for _, job := range weeks[from] {
			job.Submit += shift
			job.Name = fmt.Sprintf("w%d-%s", i, job.Name)
			drawn = append(drawn, job)
		}
		begin += min(week, jobs[len(jobs)-1].Submit-time.Duration(from)*week)
	}
	return drawn
}

// Nudged returns the jobs with run times changed by up to one per cent, within their limits. Because jobs wait for each
// other, small differences grow: a figure that changes a lot is due to chance.
func Nudged(jobs []Job, seed uint64) []Job {
	random := rand.New(rand.NewPCG(seed, 5))
	nudged := append([]Job(nil), jobs...)
	for i := range nudged {
		job := &nudged[i]
		runtime := time.Duration((0.99 + 0.02*random.Float64()) * float64(job.Runtime))
		if job.Runtime > job.Limit || runtime <= job.Limit {
			job.Runtime = runtime
		}
	}
	return nudged
}
