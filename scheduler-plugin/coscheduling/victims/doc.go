// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package victims decides which Pods to take, that is, to evict or to wait for, so that a gang fits and the least work
// is lost. The package is pure.
//
// A Unit is a set of Pods that is taken or spared as a whole: a single Pod, or all Pods of a gang that can't go on with
// fewer. Units may share Pods: for a gang with more members than its minimum there is one unit for each member above
// the minimum, and one unit for all members.
//
// Choose orders units by what is lost with them: units that violate no PodDisruptionBudget first, then units that have
// run for their minimum time, then by lower priority, then by the run time of the Pods, added up. Units that end by
// themselves come in the order of their ends. So the end of the last chosen unit is the earliest time at which the gang
// fits, as far as is known. Then:
//
//  1. Bisection finds the shortest prefix of that order without which the gang fits. So no unit with a higher loss than
//     necessary is taken.
//  2. The prefix has units that don't help, for instance on other nodes. From the end of the order
//     to its beginning, each unit is spared if the gang still fits. If possible half of the units are
//     spared at once, so that sparing many units costs little.
//
// Search does this in each domain that the gang may be in, and returns a choice for each, the least loss first. If a
// unit was taken as a whole, but some of its Pods are not in the gang's way and can go on alone, Search spares these.
//
// No chosen unit can be spared. The choice is minimal, but need not be the smallest one: a smaller choice outside of
// the prefix can be missed.
//
// The caller decides whether the gang fits. Search decides by packing; a caller that checks more than resources asks
// the scheduler's plugins. A gang that fits must still fit when more units are taken.
//
// Choose calls Room.Fits about twice for each unit taken. Between two calls it takes or spares only few units, so a
// planner.Room updates its last answer instead of packing anew. Search has a time limit. After the limit, a unit is
// spared only if the last packing of the gang shows that it can be.
package victims
