// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package jobpods

import (
	"fmt"
	"sync"

	"github.com/lockstep-k8s/lockstep/internal/text"
)

// MaxSpecValues bounds the objects, the lists and their elements in the spec of a job, all its templates together. A
// value of a few bytes can take hundreds of bytes once decoded, and the decoded spec is kept for as long as the job
// exists.
const MaxSpecValues = 50_000

// CheckSpec returns an error if a spec in JSON has too many values to be decoded.
func CheckSpec(raw []byte) error {
	if values := text.CountSigns(raw, "{[,"); values > MaxSpecValues {
		return fmt.Errorf("spec must have at most %d JSON values, all templates together, has %d", MaxSpecValues, values)
	}
	return nil
}

// KeyMaker creates a new pair of ssh keys. It is an argument, because pure packages draw no random numbers.
type KeyMaker func() (private, public []byte, err error)

// Once returns k if k is not nil. Otherwise it returns a KeyMaker that calls other at its first use and returns the
// same keys at each further use. So a Secret has the same keys when its creation is tried again.
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
