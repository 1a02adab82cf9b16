// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package victims decides whose work a gang may take the place of, so that the
// gang fits and the least work is lost. It is pure.
//
// A Unit is work that is taken or left as a whole: a Pod, or all Pods of a gang
// that can't go on with fewer. Units may share Pods: a gang that has more
// members than it needs is a unit for each member it can spare, and one for all
// of it.
//
// Choose orders units by what is lost with them: first those that break no
// PodDisruptionBudget, of these the lowest priority, of these the least work,
// which is the time that its Pods have run, added up. Work whose end is waited for
// comes in the order of its ends, so the end of the dearest unit that is chosen is the
// earliest moment at which the gang fits, as far as is known. Then:
//
//  1. The shortest prefix of that order without which the gang fits is found by
//     bisection. So nothing is taken that is dearer than it has to be.
//  2. The prefix holds units that don't help, on other nodes say. From the
//     dearest to the cheapest, each is spared if the gang still fits: half of
//     them at once where that works, so that sparing most of many costs little.
//
// Search does so in each domain that the gang may be in, and tells what has to go
// in each, the least loss first. Of a unit that can spare Pods, but was taken as a
// whole because others of its Pods are in the way, it then takes only those.
//
// None of the units that remain can be spared. That is minimal, not the minimum:
// a smaller choice that is not part of the prefix's can be missed.
//
// Whether the gang fits is for the caller to say. Search says it by packing;
// a caller that knows of more than resources asks its plugins. What fits must
// still fit when more is taken.
//
// Choose asks about twice for each unit that it takes, and changes few units between two
// questions. So a planner.Room answers from what has changed, and Search has a limit of time: when
// it is over, a unit is spared only if the last packing of the gang shows that it can be.
package victims
