// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

// mostMissed bounds how many events are remembered in a cycle.
const mostMissed = 1000

// missed is what has happened since a cycle began, which its plan may not have seen.
type missed struct {
	// events are those of which it matters how many there were.
	events []Event
	// placing says that a Pod was placed or a node has gone, relabelling that a Pod was
	// relabelled, more that there was more than is remembered.
	placing, relabelling, more bool
}

func (m *missed) add(event Event) {
	switch {
	case event.Kind == PodPlaced || event.Kind == NodeGone:
		m.placing = true // there may be thousands, and they are all the same
	case event.Kind == PodRelabelled:
		m.relabelling = true
	case len(m.events) == mostMissed:
		m.more = true
	default:
		m.events = append(m.events, event)
	}
}

// help says whether what was missed may help a gang in need, and for how many members it
// gives room if not.
func (m *missed) help(need *Need) (gained int, helps bool) {
	if m.more || m.placing && need.RegardsOthers || m.relabelling && !need.IgnoresLabels {
		return 0, true
	}
	for i := range m.events {
		if need.helps(&m.events[i], &gained) {
			return gained, true
		}
	}
	return gained, false
}
