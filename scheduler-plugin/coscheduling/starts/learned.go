// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package starts

import (
	"slices"
	"strings"
	"time"

	"k8s.io/utils/lru"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// Bounds of what is learned: of how many stems of names, from how many of the last gangs of each, and from how many at least.
const (
	maxStems  = 4096
	maxShares = 63
	minShares = 5
)

// learned is which part of their estimates, or of their limits where they have no estimates, gangs have used: by the stem of
// their names, by namespace, and all together. Users mostly overstate, and alike each time (Tsafrir, Etsion and Feitelson, 2007).
type learned struct{ shares *lru.Cache }

func newLearned() *learned { return &learned{lru.New(maxStems)} }

// keysOf are those under which a gang counts, the narrowest first.
func keysOf(key dialect.Key) []string {
	stem := strings.TrimRight(key.Name, "0123456789")
	return []string{key.Namespace + "/" + stem, key.Namespace, ""}
}

// ended notes for how long a gang ran.
func (l *learned) ended(key dialect.Key, stated, ran time.Duration) {
	if stated <= 0 || ran <= 0 {
		return
	}
	for _, of := range keysOf(key) {
		var shares []float64
		if known, ok := l.shares.Get(of); ok {
			shares = known.([]float64)
		}
		if len(shares) == maxShares {
			shares = shares[1:]
		}
		l.shares.Add(of, append(slices.Clone(shares), min(1, ran.Seconds()/stated.Seconds())))
	}
}

// expected returns how long a gang will probably run that has run for a time: its estimate times the median of the shares that gangs
// like it have used which ran for as long. It is the estimate if too little is known.
func (l *learned) expected(key dialect.Key, stated, ran time.Duration) time.Duration {
	if stated <= 0 {
		return stated
	}
	for _, of := range keysOf(key) {
		known, ok := l.shares.Get(of)
		if !ok || len(known.([]float64)) < minShares {
			continue
		}
		used := ran.Seconds() / stated.Seconds()
		longer := slices.DeleteFunc(slices.Clone(known.([]float64)), func(share float64) bool { return share <= used })
		if len(longer) == 0 {
			return stated
		}
		slices.Sort(longer)
		return time.Duration(longer[len(longer)/2] * float64(stated))
	}
	return stated
}
