// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package planner decides where the members of a gang go, or why they can't go
// anywhere. It is pure: nodes and members in, a placement or a shortfall out.
//
// A World holds what is free on the nodes, a Gang what has to be placed: members
// grouped in classes of equal needs, how many of them are needed at least, in
// all and of each role, and how close together they have to be. Members that
// are placed already are not in the Gang: its minima are what is still missing,
// and its levels name the domains that the placed ones fix.
//
// The search goes over domains, not over single members:
//
//  1. The nodes are split into candidates: one for each combination of domains
//     of the Required levels, or a single one if there is none.
//  2. In each candidate all members are packed. If they don't all fit, the
//     needed ones are packed alone, and then as many others as still fit: of
//     both those of the highest priority first, as long as the minima hold so.
//  3. Plans yields the candidates in which the minima hold, the tightest first:
//     the one that keeps the largest room free elsewhere.
//
// Packing is first fit along an order of the nodes, class after class. The
// order keeps domains of Preferred levels together, so that few of them are
// used. For a gang of one class, packing is exact: if the minima can be held at
// all, they are. For several classes it is a heuristic: the classes with the
// fewest places go first; if that fails, the largest, then the smallest. A
// placement that needs a cleverer mix can be missed: about three in a thousand
// of the tight random worlds of property_test.go.
//
// The planner knows resources, eligibility and spreads only. What else depends on where the
// other members went, such as affinity, is for the caller to verify; it asks
// for the next plan if one does not hold. Exceeds tells it cheaply where no plan can.
package planner
