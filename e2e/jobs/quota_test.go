//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// TestAnExhaustedQuotaCostsFewRequests leaves a Framework of many tasks without room in the quota for
// most of its Pods. The controller asks seldom for those Pods, says why the Framework waits, holds
// up no other Framework, and uses the quota that becomes free.
func TestAnExhaustedQuotaCostsFewRequests(t *testing.T) {
	t.Parallel()
	const tasks, room = 200, 5
	calm := cluster.RunSmall(t)
	namespace := cluster.Namespace(t)
	cluster.SetQuota(t, namespace, room)
	fw := jobs.MakeFramework("poor").Role("worker", tasks, jobs.RunForever()).Obj()
	cluster.CreateFramework(t, namespace, fw)
	cluster.WaitBlocked(t, namespace, fw.Name, frameworkv1.ReasonQuotaExceeded, "exceeded quota: pods")

	cluster.WantUntroubled(t, calm)
	before, logged := waitSeldomRefused(t, namespace), linesOfRefusals(t, namespace)
	if most := 20; before > most {
		t.Errorf("the controller has asked %d times in vain in the beginning, want at most %d", before, most)
	}
	testbed.PauseFor(t, time.Minute) // The requests of this minute are counted.
	asked, told := refusedPods(t, namespace)-before, linesOfRefusals(t, namespace)-logged
	if most := 3; asked > most || told > most {
		t.Errorf("in a minute the controller has asked %d times in vain and written %d lines, want at most %d", asked, told, most)
	}

	cluster.SetQuota(t, namespace, tasks)
	freed := time.Now()
	cluster.WaitFrameworkWithin(t, time.Minute, namespace, fw.Name, "use the room", func(fw *frameworkv1.Framework) bool {
		pods, err := cluster.PodsOf(t.Context(), namespace, fw.Name)
		return err == nil && len(pods) > room
	})
	t.Logf("the room was used after %v", time.Since(freed).Round(time.Second))
	cluster.WaitUnblocked(t, namespace, fw.Name, tasks)
}

// refusedPods counts the Pods that the API server has refused to create in a namespace.
func refusedPods(t *testing.T, namespace string) int {
	t.Helper()
	n := 0
	for _, r := range cluster.Audited(t) {
		if r.Namespace == namespace && r.Resource == "pods" && r.Verb == "create" && r.Code == http.StatusForbidden {
			n++
		}
	}
	return n
}

// linesOfRefusals counts the lines that the controller has logged about the quota of a namespace.
func linesOfRefusals(t *testing.T, namespace string) int {
	t.Helper()
	n := 0
	for line := range strings.Lines(cluster.ControllerLog(t)) {
		if strings.Contains(line, "exceeded quota") && strings.Contains(line, namespace) {
			n++
		}
	}
	return n
}

// waitSeldomRefused waits until the controller's back-off, which grows to half a minute, has come half
// of the way. It returns how many Pods were refused until then.
func waitSeldomRefused(t *testing.T, namespace string) int {
	t.Helper()
	const distance = 15 * time.Second
	refused, last := 0, time.Now()
	testbed.EventuallyWithin(t, 3*time.Minute, "two refusals that lie far from each other", func(context.Context) (bool, string, error) {
		testbed.PauseFor(t, time.Second) // The audit log is long: it is not read ten times a second.
		now := refusedPods(t, namespace)
		if now == refused {
			return false, fmt.Sprintf("%d refusals, the last %v ago", refused, time.Since(last).Round(time.Second)), nil
		}
		far := time.Since(last) >= distance
		refused, last = now, time.Now()
		return far, fmt.Sprintf("%d refusals", refused), nil
	})
	return refused
}
