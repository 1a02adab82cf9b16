// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

// mostMissed bounds how many events of a cycle are remembered.
const mostMissed = 1000

// missed has the events since a cycle began. The plan of that cycle may be made without regard to these events.
type missed struct {
	// events has the events of other kinds: their number matters.
	events []Event
	// placing reports that there was a PodPlaced or NodeGone event. relabelling reports that there was a PodRelabelled
	// event. more reports that some other events are not kept, because there were more than mostMissed.
	placing, relabelling, more bool
}

func (m *missed) add(event Event) {
	switch {
	case event.Kind == PodPlaced || event.Kind == NodeGone:
		m.placing = true // one flag for all, as there may be thousands
	case event.Kind == PodRelabelled:
		m.relabelling = true
	case len(m.events) == mostMissed:
		m.more = true
	default:
		m.events = append(m.events, event)
	}
}

// help reports whether the missed events may help a gang. If they may not, `gained` is the largest number of members
// for which the events can have freed room.
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
