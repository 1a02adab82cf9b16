// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan has the types that a core and the engine exchange.
//
// A core decides on an owner: a Framework, or a job of another kind. A decision is a Plan: the next status of the
// owner, how soon it has to be written, the actions, the events, and when to look again. The engine carries the
// Plan out, and calls the core again with the results: Outcomes of actions that succeeded, and Blocks of actions that
// failed.
//
// The core's input contains a Known, which is what the engine knows of the owner. A core builds a Plan with a Draft,
// which has the functions to act, check, report and wake that all cores need.
//
// The package is pure, so that a pure core can use it: there is no client and no clock.
//
// # Persist before act
//
// The Actions of a Plan run even if its status is not written yet, because the write waits or has failed. So a core
// plans an Action only if the status that is persisted at the decision allows it. If an Action needs a newer status,
// the Plan has Persist instead, and a later Plan has the Action, once that status is persisted.
//
// # Order
//
// Actions of a Plan run in parallel: first actions without a Group, then groups one after the other, each with few
// actions at first. If an action must come after another, a core plans it only in a later Plan, when the first is done.
package plan
