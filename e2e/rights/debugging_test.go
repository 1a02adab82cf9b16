//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"net/http"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

// TestAnAdministratorDebugsBothPrograms: profiles and the level of the log are for those whom the
// API server lets have them, and for nobody else.
func TestAnAdministratorDebugsBothPrograms(t *testing.T) {
	namespace := cluster.Namespace(t)
	token := cluster.Token(t, namespace, "default")
	programs := map[string]string{"lockstep-controller": "https://" + controllerAddress, "lockstep-scheduler": "https://" + schedulerAddress}
	for program, url := range programs {
		if status, said := testbed.MustAsk(t, url+"/debug/pprof/heap", token); status != http.StatusForbidden {
			t.Errorf("a stranger who asks %s for a profile gets %d: %.200s", program, status, said)
		}
		if status, said := testbed.MustPut(t, url+"/debug/flags/v", token, "5"); status != http.StatusForbidden {
			t.Errorf("a stranger who sets the level of the log of %s gets %d: %.200s", program, status, said)
		}
	}
	if out, err := cluster.Kubectl(t.Context(), "create", "clusterrole", namespace, "--verb=get,put", "--non-resource-url=/debug/*"); err != nil {
		t.Fatal(err, out)
	}
	if out, err := cluster.Kubectl(t.Context(), "create", "clusterrolebinding", namespace+"-debug", "--clusterrole="+namespace, "--serviceaccount="+namespace+":debugger"); err != nil {
		t.Fatal(err, out)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := cluster.Kube.RbacV1().ClusterRoleBindings().Delete(ctx, namespace+"-debug", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		if err := cluster.Kube.RbacV1().ClusterRoles().Delete(ctx, namespace, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	if out, err := cluster.Kubectl(t.Context(), "create", "serviceaccount", "debugger", "-n", namespace); err != nil {
		t.Fatal(err, out)
	}
	for verb, path := range map[string]string{"get": "/debug/pprof/heap", "put": "/debug/flags/v"} {
		cluster.WaitMay(t, authorizationv1.SubjectAccessReviewSpec{
			User:                  testbed.ServiceAccount(namespace, "debugger"),
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: verb, Path: path},
		})
	}
	token = cluster.Token(t, namespace, "debugger")
	for program, url := range programs {
		if status, said := testbed.MustAsk(t, url+"/debug/pprof/heap", token); status != http.StatusOK {
			t.Errorf("%s answers its administrator, who asks for a profile, with %d: %.200s", program, status, said)
		}
		if status, said := testbed.MustPut(t, url+"/debug/flags/v", token, "2"); status != http.StatusOK {
			t.Errorf("%s answers its administrator, who sets the level of the log, with %d: %.200s", program, status, said)
		}
	}
}
