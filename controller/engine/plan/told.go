// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"hash/fnv"
	"maps"
)

// Told is what a user was told that may hold for longer, so that it is not told again and again. A
// round has stages, and what one of them has told holds until the same stage tells it no more. An
// entry takes the same little room whatever was said.
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

// Has says whether a message was told.
func (t Told) Has(stage int, reason, message string) bool {
	return t[keyOfTold(stage, reason, message)]
}

// Note notes that a message was told. reason is one of few.
func (t *Told) Note(stage int, reason, message string) {
	if *t == nil {
		*t = Told{}
	}
	(*t)[keyOfTold(stage, reason, message)] = true
}

// And is what was told in a round that ended with a stage, and of an earlier round what stages
// after it had told: nobody has looked whether that still holds. Neither is changed.
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
