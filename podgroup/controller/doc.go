// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller keeps the phase and the counters of every PodGroup, of Frameworks and of users.
//
// A sync counts the members of one PodGroup as the informer shows them, derives the phase by package podgroup, and
// applies both to /status if they differ from the present status. It always counts anew, so a missed event only
// delays the result.
//
// Many Pod events cause few writes: events of a group within 750 ms are one sync, and a sync that finds nothing new
// writes nothing. So a group of any size costs at most one write in 750 ms.
//
// The next phase depends on the last phase. So a sync uses the controller's own last write if the informer does not
// show it yet.
//
// The scheduler writes the group's conditions. Controller and scheduler use server-side apply with different field
// managers, so neither undoes what the other writes. A write contains the resource version on which it was decided, so
// the API server refuses a late write of a former leader.
//
// Namespaces share the workers (package fair). If writes for a group fail, the controller retries at growing intervals,
// regardless of Pod events.
package controller
