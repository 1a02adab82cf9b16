//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroupapis

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

// TestTheCommandLineKnowsGangsOfOtherTools: why, simulate and line answer for a PodGroup of scheduler-plugins.
func TestTheCommandLineKnowsGangsOfOtherTools(t *testing.T) {
	t.Parallel()
	namespace := cluster.Namespace(t)
	cluster.createGroupOfPlugins(t, namespace, "job", "TFJob", map[string]any{"minMember": int64(2)})
	for i := range 2 {
		cluster.CreatePod(t, namespace, testbed.MakePod(fmt.Sprintf("job-%d", i), named(label, "job"), ofScheduler(testbed.GangScheduler), testbed.WithCores(9)))
	}
	for _, c := range []struct {
		args  []string
		texts []string
	}{
		{[]string{"why", "job"}, []string{"NotEnoughResources: ", "2 members", "cpu"}},
		{[]string{"why", "podgroup/job"}, []string{"NotEnoughResources: "}},
		{[]string{"queue"}, []string{"job", "MEMBERS"}},
		{[]string{"simulate", "job"}, []string{"the gang has no room"}},
	} {
		testbed.Eventually(t, strings.Join(c.args, " ")+" to answer", func(ctx context.Context) (bool, string, error) {
			cmd := exec.CommandContext(ctx, "kubectl-lockstep", append(c.args, "-n", namespace)...)
			cmd.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig)
			out, _ := cmd.CombinedOutput()
			for _, text := range c.texts {
				if !strings.Contains(string(out), text) {
					return false, string(out), nil
				}
			}
			return true, "", nil
		})
	}
}
