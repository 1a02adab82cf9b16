//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	kubeflowv2beta1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v2beta1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

// TestUsersMayDoWhatTheirRoleInANamespaceSays with jobs of all kinds: whoever may view may read
// them, whoever may edit or administer may make them, and nobody may write what the controller says
// of them, nor do anything in another namespace.
func TestUsersMayDoWhatTheirRoleInANamespaceSays(t *testing.T) {
	namespace := cluster.Namespace(t)
	kinds := map[string][]string{
		"frameworkcontroller.microsoft.com": {"frameworks"},
		"scheduling.lockstep.dev":           {"podgroups"},
		"batch.volcano.sh":                  {"jobs"},
		"bus.volcano.sh":                    {"commands"},
		"kubeflow.org":                      append(kubeflowv1.Plurals(), kubeflowv2beta1.MPIJobPlural),
	}
	for role, mayEdit := range map[string]bool{"view": false, "edit": true, "admin": true} {
		user := "somebody-who-may-" + role
		if _, err := cluster.Kube.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: user},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		may := func(ctx context.Context, namespace, verb, group, resource, subresource string) bool {
			t.Helper()
			review, err := cluster.Kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
				Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: namespace, Verb: verb, Group: group, Resource: resource, Subresource: subresource}},
			}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return review.Status.Allowed
		}
		// The roles of the cluster collect others some time after these have come.
		testbed.EventuallyWithin(t, soon, role+" to be in force", func(ctx context.Context) (bool, string, error) {
			return may(ctx, namespace, "list", "kubeflow.org", "mpijobs", ""), "", nil
		})
		for group, resources := range kinds {
			for _, resource := range resources {
				for verb, want := range map[string]bool{"get": true, "list": true, "watch": true, "create": mayEdit, "update": mayEdit,
					"patch": mayEdit, "delete": mayEdit, "deletecollection": mayEdit} {
					if got := may(t.Context(), namespace, verb, group, resource, ""); got != want {
						t.Errorf("%s: %s %s.%s is %t, want %t", user, verb, resource, group, got, want)
					}
					if may(t.Context(), "default", verb, group, resource, "") {
						t.Errorf("%s: %s %s.%s in another namespace", user, verb, resource, group)
					}
				}
				for _, verb := range []string{"update", "patch"} {
					if may(t.Context(), namespace, verb, group, resource, "status") {
						t.Errorf("%s: %s %s/status.%s", user, verb, resource, group)
					}
				}
			}
		}
	}
}
