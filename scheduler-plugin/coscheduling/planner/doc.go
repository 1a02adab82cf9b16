// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package planner decides where the members of a gang go, or why there is no place. The package is pure: nodes and
// members in, a placement or a shortfall out.
//
// A World holds what is free on the nodes. A Gang holds what has to be placed: members in classes of equal needs, and
// the minima, that is, how many members are needed in all and of each role. Members that are placed already are not in
// the Gang, and its minima are what is still missing. A Gang also has levels: topologies, Required or Preferred, each
// with the domain that members placed already have fixed, if any.
//
// The search goes over domains, not over single members:
//
//  1. The nodes are split into candidates: one for each combination of domains of the Required levels, or a
//     single one without such levels. Those that certainly can't hold the minima are left out (Exceeds).
//  2. In each candidate all members are packed. If not all fit, the needed members are packed first, and then as
//     many others as still fit. Both are packed by priority, unless the minima can't be met that way.
//  3. Plans yields the candidates in which the minima hold, the tightest first, so that the largest room stays
//     free elsewhere.
//
// Packing is first fit along an order of the nodes, class after class. The order keeps domains of Preferred levels
// together, so that few are used. For a gang of one class, packing is exact: if the minima can be met, they are. For
// several classes packing is a heuristic: classes with the fewest places go first; if that fails, the largest, then the
// smallest. A placement that needs a cleverer mix can be missed. In the tight random worlds of property_test.go, packing
// misses about three in a thousand.
//
// The planner knows only resources, eligibility and spreads. The caller verifies everything else that depends on where
// other members went, such as affinity, and asks for the next plan if one does not hold.
package planner
