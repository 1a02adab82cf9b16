// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package engine is the shell of lockstep-controller: everything that is the same for all kinds of jobs. An object for
// which the controller creates Pods, for instance a Framework, is called an owner. A core decides what to do for owners
// of one kind; the engine does it.
//
// # One sync
//
// A sync collects the known facts about an owner, from the caches and from memory, in a View (view.go), and calls the
// core, which returns a plan.Plan. The engine writes the status if the Plan says so (status.go), runs the Plan's
// actions (act.go, execute.go), and calls the core again with their results, until nothing is left to do without
// waiting for the API server (pass.go).
//
// Caches may be behind the controller's own writes. So the engine keeps the last status and recently written objects
// in memory, and they override the cached ones (memory.go). If an object has left the caches, the engine asks the API
// server before the object counts as gone (looks.go).
//
// A failed action has a cause, and is tried again when that cause is due (causes.go, package pacing). Owners share only
// the caches, the budget of requests, the queue and the workers. Namespaces take turns in the queue (package
// internal/fair). An owner has one sync at a time, and a namespace a bounded number of syncs (turn.go, work.go).
//
// # A core
//
// A core implements two interfaces (core.go): Core, which describes how to read the owners and what to watch, and
// Decider, one for each owner. Put the decisions in a pure package, as package lifecycle does for Frameworks, and the
// Core in another one, as package frameworks does. The smallest useful core is in notes_test.go.
//
// The engine guarantees:
//
//   - View.Persisted is a complete status that the API server has accepted. No older status is stored; a newer one may
//     be stored if the answer to its write was lost. View.Kept reports whether the CRD keeps all fields.
//   - While View.Current is false, Persisted comes from the cache, and another controller may have written since. If
//     another client writes later, the next write of the status fails with a conflict, and the engine reads everything
//     again.
//   - The next decision knows an action that succeeded: by an Outcome, by the object, or by View.Deleted, View.Gone or
//     View.Forced.
//   - The engine forgets an action that failed, except for its Block and for the time of the next try. So a core plans
//     an action again in each decision, as long as it wants the action.
//   - A decision that changes nothing costs no request.
//
// A core must guarantee:
//
//   - It plans an action only if the persisted status allows the action.
//   - It plans no write that identifies its object only by name while View.Current is false.
//   - Its decision depends only on the View, so that a sync ends when nothing changes.
package engine
