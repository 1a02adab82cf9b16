// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"hash/fnv"
	"maps"
)

// Told records which events still hold, so that they are not sent again. A round runs in stages. The event of a stage
// holds until the same stage, in a later round, does not send it. Each entry has the same small size, however long the
// event's text is.
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

// And returns both the events of a round that ended with the stage `last`, and those events of an earlier round that
// belong to later stages, which this round has not reached. It changes neither record.
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
