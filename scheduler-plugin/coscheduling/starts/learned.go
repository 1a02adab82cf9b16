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

// Limits of what is learned: the number of name stems; how many of the last gangs count for each; and how many are
// needed at least.
const (
	maxStems  = 4096
	maxShares = 63
	minShares = 5
)

// learned records which share of its estimate (or of its limit, without an estimate) each gang has used: by the stem of
// its name, by namespace, and over all. Users mostly overstate, by similar factors each time (Tsafrir, Etsion and
// Feitelson, 2007).
type learned struct{ shares *lru.Cache }

func newLearned() *learned { return &learned{lru.New(maxStems)} }

// keysOf returns the keys under which a gang counts, the narrowest first.
func keysOf(key dialect.Key) []string {
	stem := strings.TrimRight(key.Name, "0123456789")
	return []string{key.Namespace + "/" + stem, key.Namespace, ""}
}

// ended records how long a gang ran.
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

// expected returns how long a gang that has already run for a time will run in all, at most, in this part of all cases, from
// 0 to below 1: its estimate times that quantile of the shares of similar gangs that ran at least as long. It returns the
// estimate if too little is known.
func (l *learned) expected(key dialect.Key, stated, ran time.Duration, part float64) time.Duration {
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
		return time.Duration(longer[int(part*float64(len(longer)))] * float64(stated))
	}
	return stated
}
