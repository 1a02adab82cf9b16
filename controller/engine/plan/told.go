// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"hash/fnv"
	"maps"
)

// Told records the events that still hold, so that they are not sent again and again. A round of decisions has stages.
// An event of a stage holds until a later round of the same stage does not send the event. An entry has a small fixed
// size, independent of the event's text.
type Told map[toldKey]bool

type toldKey struct {
	stage  int
	reason string
	digest uint64
}

func keyOfTold(stage int, reason, message string) toldKey {
	digest := fnv.New64a()
	digest.Write([]byte(message))
	return toldKey{stage, reason, digest.Sum64()}
}

// Has reports whether a message was sent.
func (t Told) Has(stage int, reason, message string) bool {
	return t[keyOfTold(stage, reason, message)]
}

// Note records that a message was sent. reason is one of few.
func (t *Told) Note(stage int, reason, message string) {
	if *t == nil {
		*t = Told{}
	}
	(*t)[keyOfTold(stage, reason, message)] = true
}

// And merges two records: events of a round that ended with stage `last`, and events of later stages from an earlier
// round, which this round has not checked. It changes neither record.
func (t Told) And(earlier Told, last int) Told {
	all := Told{}
	maps.Copy(all, t)
	for key := range earlier {
		if key.stage > last {
			all[key] = true
		}
	}
	return all
}
