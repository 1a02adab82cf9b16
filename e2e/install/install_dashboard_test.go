//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// TestTheWebPageServesAsItsManifestsRunIt applies manifests/dashboard as docs/dashboard.md says: its Pod is let in
// by Pod Security, has a certificate though it can't write a file, asks the API server with the rights of its
// account, and shows a visitor his namespace.
func TestTheWebPageServesAsItsManifestsRunIt(t *testing.T) {
	cluster.SchedulerFor(t, localenv.SchedulerOptions{})
	namespace := cluster.Namespace(t)
	kubectl := func(args ...string) string {
		t.Helper()
		out, err := cluster.Kubectl(t.Context(), args...)
		if err != nil {
			pods, _ := cluster.Kubectl(context.WithoutCancel(t.Context()), "-n", "lockstep-system", "describe", "pods", "--selector=app.kubernetes.io/name=lockstep-dashboard")
			logs, _ := cluster.Kubectl(context.WithoutCancel(t.Context()), "-n", "lockstep-system", "logs", "--tail=20", "deployment/lockstep-dashboard")
			t.Fatalf("kubectl %s: %v: %s\n%s\n%s", strings.Join(args, " "), err, out, pods, logs)
		}
		return strings.TrimSpace(out)
	}
	kubectl("apply", "-k", "../../manifests/dashboard")
	kubectl("-n", "lockstep-system", "rollout", "status", "deployment/lockstep-dashboard", "--timeout="+testbed.Patience.String())
	kubectl("-n", namespace, "create", "serviceaccount", "ada")
	kubectl("-n", namespace, "create", "rolebinding", "ada", "--clusterrole=view", "--serviceaccount="+namespace+":ada")
	cluster.WaitMay(t, authorizationv1.SubjectAccessReviewSpec{
		User: testbed.ServiceAccount(namespace, "ada"),
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: "list", Group: frameworkv1.SchemeGroupVersion.Group, Resource: frameworkv1.FrameworkPlural},
	})
	token := kubectl("-n", namespace, "create", "token", "ada")
	ip := kubectl("-n", "lockstep-system", "get", "pods", "--selector=app.kubernetes.io/name=lockstep-dashboard", "--output=jsonpath={.items[0].status.podIP}")
	address := "https://" + net.JoinHostPort(ip, "8443")

	for _, c := range []struct {
		who, path, token string
		status           int
		says             string
	}{
		{"a stranger", "/", "", http.StatusUnauthorized, "log in"},
		{"a stranger", "/login", "", http.StatusOK, "<h1>Log in</h1>"},
		{"ada", "/?namespace=" + namespace, token, http.StatusOK, "system:serviceaccount:" + namespace + ":ada"},
		{"ada", "/?namespace=kube-system", token, http.StatusForbidden, "cannot list it in the namespace &#34;kube-system"},
	} {
		status, body := testbed.MustAsk(t, address+c.path, c.token)
		if status != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%s gets of %s: %d, want %d and %q\n%s", c.who, c.path, status, c.status, c.says, body)
		}
	}
}
