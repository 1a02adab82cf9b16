// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"time"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// MakeLife returns the i-th of a series of Frameworks. Four kinds alternate: a plain Framework, a gang, a Framework
// that fails in its first attempt, and one whose tasks fail in their first attempts. Each Pod requests cpu, runs for a
// time, and finally succeeds.
func MakeLife(name string, i int, runs time.Duration, cpu string) *frameworkv1.Framework {
	b := MakeFramework(name)
	switch i % 4 {
	case 0:
		return b.Role("worker", 3, RunFor(runs, 0).CPU(cpu)).Obj()
	case 1:
		return b.Gang().Role("worker", 4, RunFor(runs, 0).CPU(cpu)).Obj()
	case 2:
		return b.Retry(false, 1).Role("worker", 2, RunFor(runs, 9).InFirstAttempts(1).CPU(cpu)).Obj()
	}
	return b.Role("worker", 2, RunFor(runs, 5).Retry(false, 1).InFirstTaskAttempts(1).CPU(cpu)).Obj()
}
