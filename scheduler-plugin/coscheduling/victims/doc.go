// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package victims decides which work to take so that a gang fits and the least work is lost. The package is pure.
//
// A Unit is work that is taken or spared as a whole: a Pod, or all Pods of a gang that can't go on with fewer. Units
// may share Pods: a gang with more members than its minimum is one unit for each member above the minimum, and one unit
// for all members.
//
// Choose orders units by what is lost with them: first units that violate no PodDisruptionBudget, then by lower
// priority, then by less work (the run time of the Pods, added up). Units that end by themselves come in the order of
// their ends, so the end of the dearest chosen unit is the earliest time at which the gang fits, as far as is known.
// Then:
//
//  1. Bisection finds the shortest prefix of that order without which the gang fits. So no unit is
//     taken that is dearer than necessary.
//  2. The prefix has units that don't help, for instance on other nodes. From the dearest to the
//     cheapest, each is spared if the gang still fits: half of them at once where that works, so that
//     sparing most of many costs little.
//
// Search does this in each domain that the gang may be in, and returns a choice for each, the least loss first. If a
// unit was taken as a whole but can spare Pods that are not in the way, Search takes only the others.
//
// None of the remaining units can be spared. The choice is minimal, not the minimum: a smaller choice outside of the
// prefix can be missed.
//
// The caller decides whether the gang fits. Search decides by packing; a caller that checks more than resources asks
// its plugins. What fits must still fit when more is taken.
//
// Choose asks about twice for each unit taken, and changes few units between two questions. So a planner.Room computes
// its answer from the change. Search has a time limit: after the limit, a unit is spared only if the last packing of
// the gang shows that it can be.
package victims
