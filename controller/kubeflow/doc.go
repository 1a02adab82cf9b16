// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubeflow decides how a training job of Kubeflow lives, whatever its kind: TFJob of
// both versions, and PyTorchJob. It is pure, like package lifecycle, which does the same for
// Frameworks: it knows no client, no clock and no randomness.
//
// A kind is a row of data (kinds.go).
package kubeflow
