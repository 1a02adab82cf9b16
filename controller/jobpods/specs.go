// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package jobpods

import (
	"fmt"
	"sync"

	"github.com/lockstep-k8s/lockstep/internal/text"
)

// MaxSpecValues limits how many objects, lists and list elements the spec of a job may have, all templates together.
// The decoded spec is kept as long as the job exists, and a value of a few bytes may take hundreds of bytes once
// decoded.
const MaxSpecValues = 50_000

// CheckSpec returns an error if a spec, in JSON, has too many values to be decoded.
func CheckSpec(raw []byte) error {
	if values := text.CountSigns(raw, "{[,"); values > MaxSpecValues {
		return fmt.Errorf("spec must have at most %d JSON values, all templates together, has %d", MaxSpecValues, values)
	}
	return nil
}

// KeyMaker creates a pair of ssh keys. Pure packages get it as an argument, because they draw no random numbers.
type KeyMaker func() (private, public []byte, err error)

// Once returns k if k is not nil. Otherwise it returns a KeyMaker that calls `other` once and then returns the same
// keys each time. So a Secret has the same keys if its creation has to be repeated.
func (k KeyMaker) Once(other KeyMaker) KeyMaker {
	if k != nil {
		return k
	}
	type pair struct {
		private, public []byte
		err             error
	}
	made := sync.OnceValue(func() (p pair) {
		p.private, p.public, p.err = other()
		return p
	})
	return func() ([]byte, []byte, error) { return made().private, made().public, made().err }
}
