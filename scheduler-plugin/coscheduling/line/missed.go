// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package line

// mostMissed bounds how many events are remembered in a turn.
const mostMissed = 1000

// missed is what has happened since a turn began, which its plan may not have seen.
type missed struct {
	events []Event
	// more says that there was more than is remembered.
	more bool
}

func (m *missed) add(event Event) {
	if len(m.events) == mostMissed {
		m.more = true
		return
	}
	m.events = append(m.events, event)
}

// help says whether what was missed may help a gang in need.
func (m *missed) help(need *Need) bool {
	if m.more {
		return true
	}
	gained := 0
	for i := range m.events {
		if need.helps(&m.events[i], &gained) {
			return true
		}
	}
	return false
}
