// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package adapter has what the adapters have in common that stand between package engine and
// pure cores: packages frameworks, volcanojobs and kubeflowjobs.
//
//	objects.go  how objects are written that cores of several kinds make
//	keep.go     what is kept of what is watched
//	decider.go  a decider that hands a snapshot to a function, and remembers what it says
//	owners.go   how owners and their statuses are read
package adapter
