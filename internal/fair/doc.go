// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fair shares workers between namespaces, so that slow work in one namespace, for instance because of a slow
// webhook, does not delay the others.
//
// A queue hands out keys so that namespaces take turns. If a sync takes longer than its worker's patience, it continues
// without the worker, which goes on to other objects. The number of unfinished syncs is bounded; beyond it, keys are
// parked until a sync has ended.
package fair
