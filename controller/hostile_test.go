// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// TestAPodThatSomebodyKeepsHoldsBackItsOwnFrameworkAlone: whoever may change Pods gives one of each of
// many Frameworks a finalizer.
func TestAPodThatSomebodyKeepsHoldsBackItsOwnFrameworkAlone(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		var kept []string
		for i := range 50 {
			name := fmt.Sprintf("kept-%d", i)
			c.add("ns", name, map[string]int32{"w": 2})
			kept = append(kept, name)
		}
		c.pass(10 * time.Second)
		for _, name := range kept {
			c.keep(name + "-w-0")
		}
		c.ends = succeed
		c.add("ns", "other", map[string]int32{"w": 2})
		lives := func() {
			for range 20 {
				c.runNodes(1)
				c.pass(10 * time.Second)
			}
		}
		lives()
		if got := c.statusOf("ns", "other").State; got != frameworkv1.FrameworkCompleted {
			t.Errorf("the Framework beside them is %s, want it Completed", got)
		}
		for _, name := range kept {
			if got := c.statusOf("ns", name).State; got == frameworkv1.FrameworkCompleted {
				t.Errorf("%s is %s, want that it waits for its Pod", name, got)
			}
			c.letGo(name + "-w-0")
		}
		lives()
		for _, name := range kept {
			if got := c.statusOf("ns", name).State; got != frameworkv1.FrameworkCompleted {
				t.Errorf("%s is %s when its Pod is gone, want it Completed", name, got)
			}
		}
	})
}

// TestATemplateThatIsNoneFailsItsOwnFrameworkAlone, and its status says what is wrong.
func TestATemplateThatIsNoneFailsItsOwnFrameworkAlone(t *testing.T) {
	for name, tc := range map[string]struct{ template, says string }{
		"no template":                 {`{"spec":{"containers":"many"}}`, "spec.containers"},
		"a quantity read for ever":    {`{"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"1e99999999"}}}]}}`, "must be a quantity with an exponent"},
		"one of 400,000 containers":   {`{"spec":{"containers":[{}` + strings.Repeat(",{}", 400_000) + `]}}`, "at most 20000 JSON values"},
		"a placeholder in a quantity": {`{"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"1e9999999{{FC_TASK_INDEX}}"}}}]}}`, "must be a quantity with an exponent"},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				poison := job("ns", "poison", map[string]int32{"w": 2})
				poison.Spec.TaskRoles[0].Task.Pod.Raw = []byte(tc.template)
				apiserver.Add(c.server, poison)
				c.ends = succeed
				c.add("ns", "other", map[string]int32{"w": 2})
				for range 20 {
					c.runNodes(1)
					c.pass(10 * time.Second)
				}
				if got := c.statusOf("ns", "other").State; got != frameworkv1.FrameworkCompleted {
					t.Errorf("the Framework beside it is %s, want it Completed", got)
				}
				status := c.statusOf("ns", "poison")
				completion := status.AttemptStatus.CompletionStatus
				if status.State != frameworkv1.FrameworkCompleted || completion == nil || completion.Type.Name != frameworkv1.CompletionTypeFailed || !strings.Contains(completion.Diagnostics, tc.says) {
					t.Errorf("it is %s with %+v, want it Completed as one that failed for %q", status.State, completion, tc.says)
				}
			})
		})
	}
}
