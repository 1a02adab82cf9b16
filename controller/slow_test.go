// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"testing"
	"time"

	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// TestASlowWriteHoldsUpNobodyElse has one worker, and an API server that takes long to
// store the status of one Framework: another of its namespace gets its Pods, and the one
// that waits is not begun again before the answer, although it has changed.
func TestASlowWriteHoldsUpNobodyElse(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.killProgram()
		c.config.WorkerNumber = ptr.To[int32](1)
		c.startProgram()
		const answer = 30 * time.Second
		writes := 0
		c.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			if r.Resource == "frameworks" && r.Subresource == "status" && r.Name == "slow" {
				writes++
				return apiserver.Fault{Before: answer}
			}
			return apiserver.Fault{}
		})
		c.add("ns", "slow", map[string]int32{"w": 2})
		c.pass(time.Second)
		apiserver.Change(c.server, "ns", "slow", func(f *frameworkv1.Framework) { f.Spec.Description = "changed" })
		c.add("ns", "other", map[string]int32{"w": 2})
		c.pass(answer / 2)
		if got := len(c.podsOf("ns", "other-w-")); got != 2 {
			t.Errorf("the other Framework has %d Pods while one waits for the API server, want 2", got)
		}
		if writes != 1 {
			t.Errorf("%d writes of one Framework are under way, want 1", writes)
		}
		c.pass(10 * time.Minute)
		if got := len(c.podsOf("ns", "slow-w-")); got != 2 {
			t.Errorf("the slow Framework has %d Pods in the end, want 2", got)
		}
	})
}
