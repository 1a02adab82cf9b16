// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kueue names the release of Kueue beside which Lockstep is tested. It is a module of its
// own, so that Lockstep needs nothing of it. make e2e-kueue builds Kueue from here.
package kueue
