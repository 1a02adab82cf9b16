// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fair shares workers between namespaces: what the objects of one namespace
// wait for, a slow webhook say, holds up no other.
//
// A queue hands out keys so that namespaces take turns. A sync that outlasts the patience of its worker goes on
// without the worker. There are bounds on the syncs that are begun and not ended: the rest is parked until one has
// ended.
package fair
