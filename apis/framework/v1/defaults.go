// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// Defaults of a completion policy, as FrameworkController's user manual
// intends them: one failed task fails the attempt, and only the end of all
// tasks succeeds it.
const (
	DefaultMinFailedTaskCount    int32 = 1
	DefaultMinSucceededTaskCount int32 = -1
)

// FailedThreshold is how many failed tasks complete the attempt. Below 1 there
// is no such threshold. It defaults minFailedTaskCount.
func (p CompletionPolicySpec) FailedThreshold() int32 {
	if p.MinFailedTaskCount == nil {
		return DefaultMinFailedTaskCount
	}
	return *p.MinFailedTaskCount
}

// SucceededThreshold is how many succeeded tasks complete the attempt. Below 1
// there is no such threshold. It defaults minSucceededTaskCount.
func (p CompletionPolicySpec) SucceededThreshold() int32 {
	if p.MinSucceededTaskCount == nil {
		return DefaultMinSucceededTaskCount
	}
	return *p.MinSucceededTaskCount
}
