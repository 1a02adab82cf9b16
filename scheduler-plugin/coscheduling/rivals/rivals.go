// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rivals knows of other schedulers that serve a scheduler name which is served here. Two of one
// name both place the same Pods: each plans with room that the other one takes, and gangs are
// bound in part. Nobody but the user can end that, so it has to be told.
//
// A rival shows by one of two signs: it renews a Lease (leases.go), or a member of a gang that waits
// here is bound by somebody else. Either is believed for a while, and renewed if it shows again. A Lease counts
// for all namespaces, a binding for that of its Pod.
//
// The package is pure: it is told what was seen and what time it is.
package rivals

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// Sign is by what a rival has shown.
type Sign struct {
	// Name is the scheduler name that it serves.
	Name string
	// Namespace is the only one for which the sign counts; empty for all. Who may bind Pods of a namespace
	// can make such a sign, and is not to stop the gangs of others.
	Namespace string
	// Other says who it is, as far as that is known, and what was seen.
	Other string
	// Lasts is for how long the rival is believed to be there.
	Lasts time.Duration
}

// How long signs last.
const (
	// LeaseLasts is longer than the time between two looks at a Lease.
	LeaseLasts = 2 * time.Minute
	// BindingLasts is longer, as a rival binds only when there are Pods for it.
	BindingLasts = 10 * time.Minute
)

// Known are the rivals that are known of. The zero value knows none. It is safe for concurrent use.
type Known struct {
	mu    sync.Mutex
	until map[where]time.Time
}

// where is a scheduler name, in a namespace or, if that is empty, in all.
type where struct{ name, namespace string }

// Note notes a sign, and says whether no rival of this name was known, in whatever namespace.
func (k *Known) Note(sign Sign, now time.Time) (isNews bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forget(now)
	isNews = true
	for at := range k.until {
		isNews = isNews && at.name != sign.Name
	}
	if k.until == nil {
		k.until = make(map[where]time.Time)
	}
	at := where{sign.Name, sign.Namespace}
	if until := now.Add(sign.Lasts); until.After(k.until[at]) {
		k.until[at] = until
	}
	return isNews
}

// forget forgets signs that have lasted. The caller holds the lock.
func (k *Known) forget(now time.Time) {
	maps.DeleteFunc(k.until, func(_ where, until time.Time) bool { return !until.After(now) })
}

// In are the scheduler names of which a rival is known that counts in a namespace, in no order.
func (k *Known) In(namespace string, now time.Time) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forget(now)
	var names []string
	for at := range k.until {
		if at.namespace == "" || at.namespace == namespace {
			names = append(names, at.name)
		}
	}
	return names
}

// Names are the scheduler names of which a rival is known in any namespace, sorted.
func (k *Known) Names(now time.Time) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forget(now)
	var names []string
	for at := range k.until {
		names = append(names, at.name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
