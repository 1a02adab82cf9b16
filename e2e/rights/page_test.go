//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"crypto/x509/pkix"
	"fmt"
	"net/http"
	"strings"
	"testing"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// dashboardExceptions are rights of the web page that the walk does not use.
var dashboardExceptions []exception

// webPage has an administrator open each page, and leave one open.
func webPage(t *testing.T) {
	address, namespace := cluster.RunDashboard(t), cluster.Namespace(t)
	cluster.CreateFramework(t, namespace, jobs.MakeFramework("walk").Gang().Role("worker", 1, jobs.RunForever().Scheduler(testbed.GangScheduler)).Obj())
	cluster.WaitFrameworkState(t, namespace, "walk", frameworkv1.FrameworkAttemptRunning)
	if status, body := testbed.MustAsk(t, address+"/", cluster.Token(t, namespace, "default")); status != http.StatusForbidden {
		t.Errorf("somebody without rights is answered with %d: %s", status, body)
	}
	admin := cluster.Certificate(t, testbed.ClientCA, pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}})
	for _, path := range []string{
		"/?namespace=*", "/?namespace=" + namespace, "/queue", "/nodes",
		"/frameworks/" + namespace + "/walk", "/frameworks/" + namespace + "/walk/why", "/frameworks/" + namespace + "/walk/tasks",
		"/logs/" + namespace + "/walk-worker-0",
	} {
		status, body := testbed.MustAskAs(t, address+path, &admin, nil)
		// The Pod is on a simulated node, which has no logs.
		if status != http.StatusOK && !strings.HasPrefix(path, "/logs/") {
			t.Errorf("%s is answered with %d: %s", path, status, body)
		}
		if strings.Contains(body, "lockstep-dashboard&#34; cannot") {
			t.Errorf("%s says that the page lacks a right: %s", path, body)
		}
	}
	ctx, leaves := context.WithCancel(t.Context())
	defer leaves()
	go func() {
		// It ends with its context.
		_, _, _ = testbed.AskAs(ctx, address+"/frameworks/"+namespace+"/walk", &admin, http.Header{"Accept": {"text/event-stream"}})
	}()
	testbed.EventuallyWithin(t, soon, "the page to be live", func(context.Context) (bool, string, error) {
		missing := map[grant]bool{"watch frameworks.frameworkcontroller.microsoft.com": true, "watch podgroups.scheduling.lockstep.dev": true, "watch pods": true}
		for _, r := range cluster.AuditedAll(t) {
			if r.Namespace == namespace && strings.HasSuffix(r.User, ":lockstep-dashboard") {
				delete(missing, grantOf(r.Verb, r.Group, r.Resource))
			}
		}
		return len(missing) == 0, fmt.Sprint("not yet: ", missing), nil
	})
}
