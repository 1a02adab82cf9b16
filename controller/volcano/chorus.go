// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"fmt"
	"math/bits"

	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
)

// chorus is the report about many Pods together: thousands may fail at once.
type chorus struct {
	order  []voice
	counts map[voice]int
	first  map[voice]string
}

// voice is what is alike: the action that follows, the event, and the task.
type voice struct {
	head  string
	event busv1alpha1.Event
	task  string
}

func (c *chorus) add(head string, h happening) {
	v := voice{head: head, event: h.event}
	if h.task != nil {
		v.task = h.task.spec.Name
	}
	if c.counts == nil {
		c.counts, c.first = map[voice]int{}, map[voice]string{}
	}
	if c.counts[v]++; c.counts[v] == 1 {
		c.order = append(c.order, v)
		c.first[v] = h.what
	}
}

// tellChorus reports how many there are, and again when the number has about doubled.
func (d *decision) tellChorus(c chorus) {
	for _, v := range c.order {
		size := bits.Len(uint(c.counts[v]))
		key := func(size int) string {
			return fmt.Sprintf("%s, %s of %s, %d", v.head, v.event, v.task, size)
		}
		if !d.HasTold(ReasonExecuteAction, key(size)) {
			message := c.first[v]
			if others := c.counts[v] - 1; others > 0 {
				message += fmt.Sprintf(", and there are %d more events %s of task %s", others, v.event, v.task)
			}
			d.Tell(false, ReasonExecuteAction, "%s: %s", v.head, message)
		}
		for ; size > 0; size-- {
			d.NoteTold(ReasonExecuteAction, key(size))
		}
	}
}
