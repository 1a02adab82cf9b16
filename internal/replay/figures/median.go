// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package figures

import "slices"

// Median returns the medians of a policy's figures over several variants of a workload, at least one. Variants without
// a job of a class do not count for that class. Occupied is taken from the first variant.
func Median(variants []Figures) Figures {
	of := func(field func(*Figures) float64) float64 {
		var values []float64
		for i := range variants {
			values = append(values, field(&variants[i]))
		}
		return middle(values)
	}
	m := Figures{
		Policy:     variants[0].Policy,
		Jobs:       int(of(func(f *Figures) float64 { return float64(f.Jobs) })),
		Unfinished: int(of(func(f *Figures) float64 { return float64(f.Unfinished) })),
		GAR:        of(func(f *Figures) float64 { return f.GAR }),
		SOR:        of(func(f *Figures) float64 { return f.SOR }),
		GFR:        of(func(f *Figures) float64 { return f.GFR }),
		Slowdown:   of(func(f *Figures) float64 { return f.Slowdown }),
		Makespan:   of(func(f *Figures) float64 { return f.Makespan }),
		Preempted:  int(of(func(f *Figures) float64 { return float64(f.Preempted) })),
		Wasted:     of(func(f *Figures) float64 { return f.Wasted }),
		InPart:     of(func(f *Figures) float64 { return f.InPart }),
		CPU:        of(func(f *Figures) float64 { return f.CPU }),
		Held:       medianOfHeld(variants),
		Occupied:   variants[0].Occupied,
		Starts:     medianOfStarts(variants),
		Liars:      medianOfLiars(variants),
	}
	var names []string
	classes := map[string][]Class{}
	for _, f := range variants {
		for _, class := range f.Classes {
			if classes[class.Name] == nil {
				names = append(names, class.Name)
			}
			classes[class.Name] = append(classes[class.Name], class)
		}
	}
	for _, name := range names {
		wait := func(field func(*Class) Wait) Wait {
			var values []float64
			for i := range classes[name] {
				values = append(values, float64(field(&classes[name][i])))
			}
			return Wait(middle(values))
		}
		m.Classes = append(m.Classes, Class{Name: name,
			Jobs: int(wait(func(c *Class) Wait { return Wait(c.Jobs) })),
			P50:  wait(func(c *Class) Wait { return c.P50 }),
			P90:  wait(func(c *Class) Wait { return c.P90 }),
			P99:  wait(func(c *Class) Wait { return c.P99 }),
			Max:  wait(func(c *Class) Wait { return c.Max }),
		})
	}
	return m
}

// medianOfHeld returns the medians by reason, nil if unknown. A variant without a reason held nothing for it.
func medianOfHeld(variants []Figures) map[string]float64 {
	var medians map[string]float64
	for _, variant := range variants {
		if variant.Held != nil && medians == nil {
			medians = make(map[string]float64)
		}
		for reason := range variant.Held {
			var values []float64
			for _, other := range variants {
				values = append(values, other.Held[reason])
			}
			medians[reason] = middle(values)
		}
	}
	return medians
}

// middle returns the median, the lower one of two.
func middle(values []float64) float64 {
	slices.Sort(values)
	return values[(len(values)-1)/2]
}
