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

// maxStems is the largest number of keys (name stems and namespaces) for which run times are kept. maxShares is how
// many of the last gangs count for each key. minShares is the smallest number of gangs with which a key is used.
const (
	maxStems  = 4096
	maxShares = 63
	minShares = 5
)

// learned records, for each gang that has ended, which share of its estimated run time it used; without an estimate,
// which share of its limit. There are records by the stem of the gang's name, by namespace, and for all gangs. Users
// usually overestimate run times, by a similar factor each time (Tsafrir, Etsion and Feitelson, 2007).
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

// expected returns how long a gang will run in all, given that it has run for `ran`. The result is the gang's estimate,
// `stated`, multiplied by a share that was learned: of the shares of their estimates that similar gangs used, only
// those above ran/stated count, and of these the quantile `part` (0 to below 1) is taken. If too few similar gangs are
// known, or none used so much, the result is `stated`.
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
