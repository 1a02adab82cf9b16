// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kube is the only room that touches kube-scheduler's internals.
package kube
