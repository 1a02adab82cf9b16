// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller keeps the phase and the counters of every PodGroup, of Frameworks and of users.
//
// A PodGroup is a key of the queue. A sync counts the group's members as the informer sees them now, lets package
// podgroup derive the phase, and applies both to /status if they differ from the present status. Counters are never
// changed by one and one: a missed event costs nothing but time.
//
// Two rules keep many Pod events from becoming many writes: events of a group
// within a window of 750 ms are one sync, and a sync that finds nothing new writes
// nothing. So a group costs at most one write a window, however many members it
// has.
//
// The phase depends on the one before it. A sync therefore looks at the
// controller's own last write where the informer does not show it yet.
//
// The scheduler writes the group's conditions. Both use server-side apply with a field manager of their own, so
// neither undoes what the other writes. A write names the version of the group that it was decided on: a late write,
// of a controller that led before, is refused.
//
// Namespaces share the workers (package fair), and a group with failed writes is tried at growing intervals, whatever
// its Pods do.
package controller
