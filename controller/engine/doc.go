// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package engine is the shell of lockstep-controller: all that is the same for every kind of object that the
// controller has Pods run for. Such an object, a Framework say, is an owner; a core decides about the actions.
//
// # One sync
//
// A sync gathers the known facts about an owner, from the caches and from memory, in a View (view.go). The sync calls
// the core: that is a plan.Plan, which is data. The engine writes the status if the Plan asks for it (status.go),
// runs the Plan's actions (act.go, execute.go), and starts over with their results until there is nothing to do
// without waiting for the API server (pass.go).
//
// What the controller itself has done is never decided upon from caches that are behind: the last status is kept in
// memory and overrides the cached one, and so do objects that were just written (memory.go). An object that has left
// the caches is looked at before it counts as gone (looks.go).
//
// A failed action is tried again for the action's cause (causes.go), when package pacing says so. Owners share
// nothing but the caches, the budget of requests, the queue and the workers, in which namespaces take turns whatever
// kinds of owners they have (package internal/fair). An owner has one sync at a time, and a namespace a bounded
// number of syncs (turn.go, work.go).
//
// # A core
//
// A core is a Core, which says how to read the owners and what to watch, and for each owner a Decider (core.go). At
// best the decisions are in a pure package, and the Core is no more than the adapter: for Frameworks that is package
// lifecycle, with package frameworks. The smallest core that does something is in notes_test.go.
//
// A core can count on this:
//
//   - Persisted in a View is a whole status that the API server has taken; nothing older is stored. A later one may
//     be, if the answer to its write was lost. View.Kept says whether the API server keeps everything. Before
//     View.Current, Persisted is what the cache began with: another
//     controller may have written since. The object may afterwards, too: then the next write of the
//     status is a conflict, writes nothing, and all that is known is read again.
//   - An action that went through is known to the next decision: by the Outcome or by the
//     object, by View.Deleted, View.Gone or View.Forced.
//   - An action that failed is forgotten, but for its Block and for when it may be tried
//     again. A core plans an action for as long as the action is wanted.
//   - A decision that changes nothing costs no request.
//
// In return a core promises:
//
//   - It plans no action that rests on what is not persisted.
//   - It writes nothing by name before View.Current.
//   - Its decision is a function of the View: the sync comes to rest when nothing changes.
package engine
