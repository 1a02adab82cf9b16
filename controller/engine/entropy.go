// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"math/rand/v2"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"
)

// systemEntropy is the real source of what decisions may not invent.
type systemEntropy struct{}

// NewUID returns a random UUID.
func (systemEntropy) NewUID() types.UID {
	return types.UID(uuid.NewString())
}

// Between returns a number drawn evenly, both ends inclusive.
func (systemEntropy) Between(least, most int64) int64 {
	return least + rand.Int64N(most-least+1)
}
