//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"context"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/client/clientset/versioned"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

// TestThePoliciesRefuseWhatTheyAreToRefuse, with a message that says what to do, and nothing else:
// each has a Framework that is allowed beside one that is refused.
func TestThePoliciesRefuseWhatTheyAreToRefuse(t *testing.T) {
	namespace, client := somebodysNamespace(t)
	if out, err := cluster.Kubectl(t.Context(), "apply", "-k", "../../manifests/policies"); err != nil {
		t.Fatal(err, out)
	}
	t.Cleanup(func() {
		if out, err := cluster.Kubectl(context.WithoutCancel(t.Context()), "delete", "-k", "../../manifests/policies"); err != nil {
			t.Error(err, out)
		}
	})
	for name, tc := range map[string]struct{ allowed, refused, message string }{
		"a class of priority that the user may use": {
			allowed: "priorityClassName: mine, containers: [{name: c, image: registry.example.com/i}]",
			refused: "priorityClassName: theirs, containers: [{name: c, image: registry.example.com/i}]",
			message: "you may not use the PriorityClass theirs: it takes the verb use of priorityclasses in the namespace " + namespace,
		},
		"a class of priority that is put together later": {
			allowed: "containers: [{name: c, image: registry.example.com/i}]",
			refused: "priorityClassName: '{{FC_TASKROLE_NAME}}', containers: [{name: c, image: registry.example.com/i}]",
			message: "you may not use the PriorityClass {{FC_TASKROLE_NAME}}",
		},
		"a priority without a class": {
			allowed: "containers: [{name: c, image: registry.example.com/i}]",
			refused: "priority: 7, containers: [{name: c, image: registry.example.com/i}]",
			message: "the template of a role must not have the field priority: name a PriorityClass",
		},
		"an image": {
			allowed: "containers: [{name: c, image: registry.example.com/i}], initContainers: [{name: c, image: registry.example.com/i}]",
			refused: "containers: [{name: c, image: registry.example.com/i}], initContainers: [{name: c, image: evil.example/i}]",
			message: "the image evil.example/i is not from here: it has to begin with registry.example.com/",
		},
		"an image that is a volume": {
			allowed: "containers: [{name: c, image: registry.example.com/i}], volumes: [{name: v, image: {reference: registry.example.com/i}}]",
			refused: "containers: [{name: c, image: registry.example.com/i}], volumes: [{name: v, image: {reference: evil.example/i}}]",
			message: "the image evil.example/i is not from here",
		},
		"an image in a field that gets its name later": {
			allowed: "containers: [{name: c, image: registry.example.com/i}]",
			refused: "containers: [{name: c, image: registry.example.com/i, '{{FC_TASKROLE_NAME}}': evil.example/i}]",
			message: "the name of a field in the template of a role must not have a placeholder",
		},
		"a priority in a field that gets its name later": {
			allowed: "containers: [{name: c, image: registry.example.com/i}]",
			refused: "'{{FC_TASKROLE_NAME}}': 7, containers: [{name: c, image: registry.example.com/i}]",
			message: "the name of a field in the template of a role must not have a placeholder",
		},
		"a size": {
			allowed: "containers: [{name: c, image: registry.example.com/i, args: [" + strings.Repeat("x", 50_000) + "]}]",
			refused: "containers: [{name: c, image: registry.example.com/i, args: [" + strings.Repeat("x", 100_000) + "]}]",
			message: "the Pods of a Framework may take 67108864 bytes here, and those of this one take 100",
		},
		"a size of what is neither argument nor variable": {
			allowed: "containers: [{name: c, image: registry.example.com/i, livenessProbe: {exec: {command: [" + strings.Repeat("é", 30_000) + "]}}}]",
			refused: "containers: [{name: c, image: registry.example.com/i, livenessProbe: {exec: {command: [" + strings.Repeat("é", 50_000) + "]}}}]",
			message: "the Pods of a Framework may take 67108864 bytes here, and those of this one take 100",
		},
		"a size of a variable in a field that gets its name later": {
			allowed: `containers: [{name: c, image: registry.example.com/i, env: [{name: NAMES, value: '{"{{FC_POD_NAME}}": "\\"}'}]}]`,
			refused: "containers: [{name: c, image: registry.example.com/i, env: [{name: NAMES, '{{FC_TASKROLE_NAME}}': v}]}]",
			message: "the name of a field in the template of a role must not have a placeholder",
		},
	} {
		t.Run(name, func(t *testing.T) {
			// Policies are in force some time after they have come.
			testbed.EventuallyWithin(t, soon, "the Framework to be refused", func(ctx context.Context) (bool, string, error) {
				err := tryCreate(ctx, client, framework(t, namespace, 1000, tc.refused, ""))
				return apierrors.IsForbidden(err) && strings.Contains(err.Error(), tc.message), fmt.Sprint(err), nil
			})
			if err := tryCreate(t.Context(), client, framework(t, namespace, 1000, tc.allowed, "")); err != nil {
				t.Errorf("the Framework that is allowed: %v", err)
			}
		})
	}
	const container = "containers: [{name: c, image: registry.example.com/i}]"
	for what, tc := range map[string]struct {
		framework *frameworkv1.Framework
		message   string
	}{
		"tasks":             {framework(t, namespace, 1001, container, ""), "a Framework may have 1000 tasks here, and this one has 1001"},
		"the gang's class":  {framework(t, namespace, 1, container, "gang: {priorityClassName: theirs}"), "you may not use the PriorityClass theirs"},
		"a gang's own":      {framework(t, namespace, 1, container, "gang: {priorityClassName: mine}"), ""},
		"no roles are fine": {framework(t, namespace, 0, container, ""), ""},
	} {
		err := tryCreate(t.Context(), client, tc.framework)
		if tc.message == "" && err != nil || tc.message != "" && (err == nil || !strings.Contains(err.Error(), tc.message)) {
			t.Errorf("%s: %v, want %q", what, err, tc.message)
		}
	}

	// What was there before a right was taken away can still be labelled, and goes when it is deleted.
	old := framework(t, namespace, 1, "priorityClassName: theirs, "+container, "")
	old.Name = "old"
	if _, err := cluster.Lockstep.FrameworkcontrollerV1().Frameworks(namespace).Create(t.Context(), old, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	frameworks := client.FrameworkcontrollerV1().Frameworks(namespace)
	if _, err := frameworks.Patch(t.Context(), "old", types.MergePatchType, []byte(`{"metadata": {"labels": {"a": "b"}}}`), metav1.PatchOptions{}); err != nil {
		t.Errorf("labelling: %v", err)
	}
	foreground := metav1.DeletePropagationForeground
	if err := frameworks.Delete(t.Context(), "old", metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
		t.Fatal(err)
	}
	cluster.WaitFrameworkGone(t, namespace, "old")
}

// somebodysNamespace is a namespace in which all policies are on, and a client of somebody who may
// edit what is in it, and use the PriorityClass mine.
func somebodysNamespace(t *testing.T) (string, versioned.Interface) {
	t.Helper()
	namespace := cluster.Namespace(t)
	if out, err := cluster.Kubectl(t.Context(), "label", "namespace", namespace, "policy.lockstep.dev/priorityclasses=true",
		"policy.lockstep.dev/sizes=true", "policy.lockstep.dev/images=true"); err != nil {
		t.Fatal(err, out)
	}
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "somebody"}}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "may-use"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"scheduling.k8s.io"}, Resources: []string{"priorityclasses"}, ResourceNames: []string{"mine"}, Verbs: []string{"use"}}}}
	if _, err := cluster.Kube.RbacV1().Roles(namespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, ref := range []rbacv1.RoleRef{{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"}, {APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name}} {
		binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: ref.Name}, Subjects: subjects, RoleRef: ref}
		if _, err := cluster.Kube.RbacV1().RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	config := rest.CopyConfig(cluster.Config)
	config.Impersonate.UserName = "somebody"
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return namespace, client
}

// tryCreate asks whether a Framework would be created.
func tryCreate(ctx context.Context, client versioned.Interface, fw *frameworkv1.Framework) error {
	_, err := client.FrameworkcontrollerV1().Frameworks(fw.Namespace).Create(ctx, fw, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// framework is one that has not started, with so many tasks and the spec of their Pods, and more
// of its own spec.
func framework(t *testing.T, namespace string, tasks int, pod, more string) *frameworkv1.Framework {
	t.Helper()
	fw := &frameworkv1.Framework{}
	manifest := fmt.Sprintf("{metadata: {name: f, namespace: %s}, spec: {executionType: Create, taskRoles: [{name: image, taskNumber: %d, "+
		"frameworkAttemptCompletionPolicy: {minFailedTaskCount: 1, minSucceededTaskCount: -1}, task: {pod: {spec: {%s}}}}], %s}}", namespace, tasks, pod, more)
	if err := yaml.UnmarshalStrict([]byte(manifest), fw); err != nil {
		t.Fatal(err)
	}
	return fw
}
