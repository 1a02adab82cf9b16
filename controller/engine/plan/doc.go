// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan has the words in which a core and the engine speak with each other.
//
// A core decides on an owner: a Framework, or a job of another kind. A decision is a Plan: the next status of the
// owner, how soon it has to be written, the actions, the events, and when to look again. The engine writes, acts and
// records events, and has the core decide again with the results: Outcomes, and Blocks.
//
// What a core sees of the owner has a Known, which is the engine's knowledge. A core makes a Plan with a Draft, which
// has the functions to act, check, report and wake that all cores need.
//
// The package is pure, so that a pure core can use it: there is no client and no clock.
//
// # Persist before act
//
// A status may wait for others before it is written, and a write may fail: the Actions of its Plan run nevertheless,
// and so do the Actions of the Plans after it. So a core plans an Action only if the status allows that which is
// persisted at the decision, and never because of a planned status. If an Action needs a status that is not persisted
// yet, the Plan has Persist instead, and a later Plan that finds the status persisted has the Action.
//
// # Order
//
// All Actions of a Plan may run beside each other: actions without a Group first, then groups one after the other,
// starting slowly. What has to come after something else is not planned before the other is done, which the next Plan
// knows.
package plan
