// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import "github.com/lockstep-k8s/lockstep/controller/lifecycle"

// SetEntropy has the controller draw from a source of its own, so that the lives of
// equal seeds are equal. It is called before Run.
func (c *Controller) SetEntropy(entropy lifecycle.Entropy) { c.entropy = entropy }

// Known is how many Frameworks the controller remembers.
func (c *Controller) Known() int { return len(c.known.all()) }

// Undecodable is how many Frameworks the controller can't work with.
func (c *Controller) Undecodable() int { return c.metrics.undecodable.len() }
