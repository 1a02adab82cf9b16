// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/hack/bench/harness"
	"github.com/lockstep-k8s/lockstep/hack/bench/scheduling/objects"
)

// askWhy measures how long a person waits who asks why a gang of a thousand is not running, on 5000 nodes with
// 10,000 Pods: half of them fill the nodes, the others wait. That is held against kubectl, which lists the same
// objects.
func askWhy(ctx context.Context, s *stage) error {
	work := objects.Work{Scheduler: lockstep.schedulerName, Gangs: 10, Size: 1000, CPU: objects.NodeCPU}
	if err := s.createGroups(ctx, work); err != nil {
		return err
	}
	if err := harness.Parallel(ctx, work.Total(), func(ctx context.Context, i int) error {
		pod := work.Pod(i)
		if i < manyNodes {
			pod.Spec.NodeName = objects.NodeName(i)
		}
		_, err := s.kube.CoreV1().Pods(objects.Namespace).Create(ctx, pod, metav1.CreateOptions{})
		return err
	}); err != nil {
		return fmt.Errorf("creating Pods: %w", err)
	}
	kubectl := filepath.Join(s.cluster.Bin(), "kubectl")
	var asked, listed times
	for range s.Rounds {
		took, out, err := s.types(ctx, "kubectl-lockstep", "why", "gang-9", "-n", objects.Namespace)
		if err != nil {
			return err
		}
		if !strings.HasPrefix(out, "Unschedulable: there is room for 0 of the 1000 members") {
			return fmt.Errorf("the answer is wrong: %s", out)
		}
		asked = append(asked, took.Seconds())
		if took, _, err = s.types(ctx, kubectl, "get", "nodes,pods,podgroups.scheduling.lockstep.dev,priorityclasses", "-A", "-o", "name"); err != nil {
			return err
		}
		listed = append(listed, took.Seconds())
	}
	s.Report(ratio("kubectl lockstep why", asked, listed, "kubectl get of the same objects", harness.AtMost(0.5)))
	s.Report(bounded("kubectl lockstep why", asked, 5))
	return s.clear(ctx)
}

// types runs a command, as a person would.
func (s *stage) types(ctx context.Context, name string, args ...string) (time.Duration, string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.cluster.Kubeconfig)
	start := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return time.Since(start), string(out), nil
}
