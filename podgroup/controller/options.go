// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"time"

	schedulinginformers "github.com/lockstep-k8s/lockstep/client/informers/externalversions/scheduling/v1alpha1"
)

// defaultWindow makes of a wave of Pod events little more than one write a second.
// A group that starts without trouble is written once or twice, and no phase or
// counter is a second old.
const defaultWindow = 750 * time.Millisecond

type options struct {
	window    time.Duration
	podGroups schedulinginformers.PodGroupInformer
}

// Option changes a Controller from its defaults.
type Option func(*options)

// WithWindow sets how long Pod events of a group are collected before the group
// is synced, 0s or more. Default 750ms.
func WithWindow(window time.Duration) Option {
	return func(o *options) { o.window = window }
}

// WithPodGroupInformer makes the Controller use an informer that its caller
// shares and starts, of all namespaces that the Controller is to look after. By
// default it runs one of its own.
func WithPodGroupInformer(informer schedulinginformers.PodGroupInformer) Option {
	return func(o *options) { o.podGroups = informer }
}
