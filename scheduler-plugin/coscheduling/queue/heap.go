// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import "container/heap"

// ordered is a heap of gangs. A gang may be in several heaps. gang.slots has the gang's position in each heap, plus one;
// 0 if the gang is not in the heap.
type ordered struct {
	items []*gang
	slot  slot
	less  func(a, b *gang) bool
}

// slot names a kind of heap. It is the index in gang.slots.
type slot int

const (
	slotDue slot = iota
	slotEarly
	slotHopeful
	slotTimer
	slotShape
	slotRuns
	slots
)

func byRank(s slot) ordered {
	return ordered{slot: s, less: func(a, b *gang) bool { return a.rank.Compare(b.rank) < 0 }}
}

// byRunTime has the gang first that runs for the shortest time, and gangs with an unknown run time last.
func byRunTime(s slot) ordered {
	return ordered{slot: s, less: func(a, b *gang) bool { return a.runs > 0 && (b.runs == 0 || a.runs < b.runs) }}
}

func byTime(s slot) ordered {
	return ordered{slot: s, less: func(a, b *gang) bool { return a.timer.Before(b.timer) }}
}

// first returns the gang that comes first, nil if there is none.
func (o *ordered) first() *gang {
	if len(o.items) == 0 {
		return nil
	}
	return o.items[0]
}

// put adds a gang to the heap, moves it to its present position, or removes it.
func (o *ordered) put(g *gang, in bool) {
	at := g.slots[o.slot] - 1
	switch {
	case in && at < 0:
		heap.Push(o, g)
	case in:
		heap.Fix(o, at)
	case at >= 0:
		heap.Remove(o, at)
	}
}

// Len implements heap.Interface.
func (o *ordered) Len() int { return len(o.items) }

// Less implements heap.Interface.
func (o *ordered) Less(i, j int) bool { return o.less(o.items[i], o.items[j]) }

// Swap implements heap.Interface.
func (o *ordered) Swap(i, j int) {
	o.items[i], o.items[j] = o.items[j], o.items[i]
	o.items[i].slots[o.slot], o.items[j].slots[o.slot] = i+1, j+1
}

// Push implements heap.Interface.
func (o *ordered) Push(x any) {
	g, ok := x.(*gang)
	if !ok {
		return // put only pushes gangs
	}
	o.items = append(o.items, g)
	g.slots[o.slot] = len(o.items)
}

// Pop implements heap.Interface.
func (o *ordered) Pop() any {
	last := len(o.items) - 1
	g := o.items[last]
	o.items[last] = nil
	o.items = o.items[:last]
	g.slots[o.slot] = 0
	return g
}
