// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fair shares workers between namespaces: a delay in one namespace, by a slow webhook for instance, does not
// delay other namespaces.
//
// A queue hands out keys so that namespaces take turns. If a sync takes longer than the patience of its worker, it
// continues without the worker. The number of unfinished syncs is bounded; further keys are parked until a sync has
// ended.
package fair
