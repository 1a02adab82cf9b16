// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

// NewWith makes a Controller that draws from a source of its own, so that the lives of
// equal seeds are equal.
var NewWith = newWith

// Known is how many Frameworks the controller remembers.
func (c *Controller) Known() int { return c.frameworks.Known() }

// Remembered is how many of them it remembers with their status.
func (c *Controller) Remembered() int { return c.frameworks.Remembered() }

// KnownJobs is how many Volcano Jobs the controller remembers.
func (c *Controller) KnownJobs() int { return c.jobs.Known() }

// KnownKubeflowJobs is how many training jobs of Kubeflow the controller remembers.
func (c *Controller) KnownKubeflowJobs() int {
	known := 0
	for _, jobs := range c.kubeflowJobs {
		known += jobs.Known()
	}
	return known
}

// Undecodable is how many Frameworks the controller can't work with.
func (c *Controller) Undecodable() int { return c.frameworks.Undecodable() }
