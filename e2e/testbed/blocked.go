// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// WaitBlocked waits until a condition and an event say for which reason a Framework waits.
func (c *Cluster) WaitBlocked(t testing.TB, namespace, name, reason, text string) {
	t.Helper()
	c.WaitFramework(t, namespace, name, "say that it waits for "+reason, func(fw *frameworkv1.Framework) bool {
		if fw.Status == nil {
			return false
		}
		blocked := meta.FindStatusCondition(fw.Status.Conditions, frameworkv1.ConditionTasksBlocked)
		return blocked != nil && blocked.Status == metav1.ConditionTrue && blocked.Reason == reason && strings.Contains(blocked.Message, text)
	})
	Eventually(t, "an event that says so", func(ctx context.Context) (bool, string, error) {
		out, err := c.Kubectl(ctx, "get", "events", "-n", namespace, "--field-selector=type=Warning,reason="+reason+",involvedObject.name="+name,
			"-o", "jsonpath={.items[*].message}")
		return strings.Contains(out, text), out, err
	})
}

// WaitUnblocked waits until a Framework runs with a number of tasks, and no condition says that it waits.
func (c *Cluster) WaitUnblocked(t testing.TB, namespace, name string, tasks int32) {
	t.Helper()
	c.WaitFramework(t, namespace, name, "run with all tasks, not blocked any more", func(fw *frameworkv1.Framework) bool {
		return fw.Status.Tasks.Running == tasks && !meta.IsStatusConditionTrue(fw.Status.Conditions, frameworkv1.ConditionTasksBlocked)
	})
}

// RunSmall runs a small Framework in a namespace of its own to its end, and returns how long that took.
func (c *Cluster) RunSmall(t testing.TB) time.Duration {
	t.Helper()
	namespace, begun := c.Namespace(t), time.Now()
	c.CreateFramework(t, namespace, jobs.MakeFramework("small").Role("worker", 2, jobs.RunFor(time.Second, 0)).Obj())
	done := c.WaitFrameworkState(t, namespace, "small", frameworkv1.FrameworkCompleted)
	if succeeded := done.Status.Tasks.Succeeded; succeeded != 2 {
		t.Errorf("%d tasks of a Framework of another namespace succeeded, want 2", succeeded)
	}
	return time.Since(begun)
}

// WantUntroubled checks that a small Framework takes no longer than before, when it took calm: five times as long, or 30 s, which
// is ten times as long as on an idle machine. Other programs on the machine may slow one Framework down, so the fastest of three
// counts. A controller that is held up would hold up each of them.
func (c *Cluster) WantUntroubled(t testing.TB, calm time.Duration) {
	t.Helper()
	most := max(30*time.Second, 5*calm)
	var took []time.Duration
	for range 3 {
		took = append(took, c.RunSmall(t).Round(time.Second))
		if took[len(took)-1] <= most {
			return
		}
	}
	t.Errorf("Frameworks of other namespaces took %v, one after the other, want at most %v", took, most)
}
