//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/client/clientset/versioned"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

// TestThePoliciesRefuseWhatTheyAreToRefuse, with a message that says what to do, and nothing else:
// each has a Framework that is allowed beside one that is refused.
func TestThePoliciesRefuseWhatTheyAreToRefuse(t *testing.T) {
	switchOnPolicies(t)
	namespace, config := somebodysNamespace(t)
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
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
			message: "a template must not have the field priority: name a PriorityClass",
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
			message: "the Pods of a job may take 67108864 bytes here, and those of this one take 10",
		},
		"a size of what is neither argument nor variable": {
			allowed: "containers: [{name: c, image: registry.example.com/i, livenessProbe: {exec: {command: [" + strings.Repeat("é", 30_000) + "]}}}]",
			refused: "containers: [{name: c, image: registry.example.com/i, livenessProbe: {exec: {command: [" + strings.Repeat("é", 50_000) + "]}}}]",
			message: "the Pods of a job may take 67108864 bytes here, and those of this one take 10",
		},
		"a size of many containers, of which each gets variables": {
			allowed: "containers: [" + containers(20) + "]",
			refused: "containers: [" + containers(20) + "], initContainers: [" + containers(10) + "]",
			message: "the Pods of a job may take 67108864 bytes here",
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
			testbed.EventuallyWithin(t, soon, "the Framework that is allowed to be taken", func(ctx context.Context) (bool, string, error) {
				return true, "", tryCreate(ctx, client, framework(t, namespace, 1000, tc.allowed, ""))
			})
		})
	}
	const container = "containers: [{name: c, image: registry.example.com/i}]"
	for what, tc := range map[string]struct {
		framework *frameworkv1.Framework
		message   string
	}{
		"tasks":             {framework(t, namespace, 1001, container, ""), "a job may have 1000 tasks here, and this one has 1001"},
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
	stop := func() error {
		_, err := frameworks.Patch(t.Context(), "old", types.MergePatchType, []byte(`{"spec": {"executionType": "Stop"}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	if err := stop(); err != nil {
		t.Errorf("stopping: %v", err)
	}
	foreground := metav1.DeletePropagationForeground
	if err := frameworks.Delete(t.Context(), "old", metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
		t.Fatal(err)
	}
	cluster.WaitFrameworkGone(t, namespace, "old")

	// A namespace without the labels has no policies.
	const foreign = "containers: [{name: c, image: evil.example/i}]"
	elsewhere := cluster.Namespace(t)
	if err := tryCreate(t.Context(), cluster.Lockstep, framework(t, elsewhere, 1001, foreign, "")); err != nil {
		t.Errorf("where there is no label: %v", err)
	}
	// Without the limits, nothing is taken where they are asked for.
	if out, err := cluster.Kubectl(t.Context(), "delete", "configmap", "lockstep-policies", "-n", system); err != nil {
		t.Fatal(err, out)
	}
	for _, label := range []string{"sizes", "images"} {
		namespace := cluster.Namespace(t)
		if out, err := cluster.Kubectl(t.Context(), "label", "namespace", namespace, "policy.lockstep.dev/"+label+"=true"); err != nil {
			t.Fatal(err, out)
		}
		testbed.EventuallyWithin(t, soon, "the policy about "+label+" to refuse everything", func(ctx context.Context) (bool, string, error) {
			err := tryCreate(ctx, cluster.Lockstep, framework(t, namespace, 1, container, ""))
			return err != nil && strings.Contains(err.Error(), "no params found"), fmt.Sprint(err), nil
		})
	}
}

// TestThePoliciesHoldForEveryKindOfJob: for those of Volcano and Kubeflow as for Frameworks.
func TestThePoliciesHoldForEveryKindOfJob(t *testing.T) {
	switchOnPolicies(t)
	namespace, config := somebodysNamespace(t)
	somebody, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	pytorch := kubeflowJob("v1", "pytorchjobs", "pytorch", "pytorchReplicaSpecs: {Worker: %s}")
	for name, kind := range map[string]jobKind{
		"Framework": {frameworkv1.SchemeGroupVersion.WithResource("frameworks"), "c", `{executionType: Create, taskRoles: [{name: a, taskNumber: %d,
			frameworkAttemptCompletionPolicy: {minFailedTaskCount: 1, minSucceededTaskCount: -1}, task: {pod: {spec: {%s}}}}], gang: {priorityClassName: "%s"}}`},
		"Job":               {batchv1alpha1.SchemeGroupVersion.WithResource("jobs"), "c", `{tasks: [{name: a, replicas: %d, template: {spec: {%s}}}], priorityClassName: "%s"}`},
		"TFJob":             kubeflowJob("v1", "tfjobs", "tensorflow", "tfReplicaSpecs: {Worker: %s}"),
		"TFJob of v1alpha2": kubeflowJob("v1alpha2", "tfjobs", "tensorflow", "tfReplicaSpecs: {Worker: %s}"),
		"PyTorchJob":        pytorch,
		"XGBoostJob":        kubeflowJob("v1", "xgboostjobs", "xgboost", "xgbReplicaSpecs: {Master: {replicas: 1, template: {spec: {containers: [{name: xgboost, image: registry.example.com/i}]}}}, Worker: %s}"),
		"PaddleJob":         kubeflowJob("v1", "paddlejobs", "paddle", "paddleReplicaSpecs: {Worker: %s}"),
		"JAXJob":            kubeflowJob("v1", "jaxjobs", "jax", "jaxReplicaSpecs: {Worker: %s}"),
		"MPIJob":            kubeflowJob("v2beta1", "mpijobs", "mpi", "mpiReplicaSpecs: {Launcher: {replicas: 1, template: {spec: {containers: [{name: mpi, image: registry.example.com/i}]}}}, Worker: %s}"),
	} {
		t.Run(name, func(t *testing.T) {
			container := kind.containerOf("registry.example.com/i")
			for what, refused := range map[string]struct {
				job     *unstructured.Unstructured
				message string
			}{
				"a class of its Pods":   {kind.job(t, namespace, 1, "priorityClassName: theirs, "+container, ""), "you may not use the PriorityClass theirs"},
				"a class of its gang":   {kind.job(t, namespace, 1, container, "theirs"), "you may not use the PriorityClass theirs"},
				"a priority":            {kind.job(t, namespace, 1, "priority: 7, "+container, ""), "a template must not have the field priority"},
				"an image":              {kind.job(t, namespace, 1, kind.containerOf("evil.example/i"), ""), "the image evil.example/i is not from here"},
				"too many tasks":        {kind.job(t, namespace, 1001, container, ""), "a job may have 1000 tasks here, and this one has 100"},
				"Pods that are too big": {kind.job(t, namespace, 900, "nodeName: "+strings.Repeat("x", 100_000)+", "+container, ""), "the Pods of a job may take 67108864 bytes here"},
			} {
				// Policies are in force some time after they have come.
				testbed.EventuallyWithin(t, soon, "the job to be refused for "+what, func(ctx context.Context) (bool, string, error) {
					err := kind.tryCreate(ctx, somebody, refused.job)
					return apierrors.IsForbidden(err) && strings.Contains(err.Error(), refused.message), fmt.Sprint(err), nil
				})
			}
			for what, allowed := range map[string]*unstructured.Unstructured{
				"a class that may be used": kind.job(t, namespace, 999, "priorityClassName: mine, "+container, "mine"),
				"no class":                 kind.job(t, namespace, 1, container, ""),
			} {
				if err := kind.tryCreate(t.Context(), somebody, allowed); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}

	// What others than its user change, such as Kueue, which lets it begin, or an autoscaler.
	container := pytorch.containerOf("registry.example.com/i")
	job := pytorch.job(t, namespace, 1, container, "theirs")
	if err := unstructured.SetNestedField(job.Object, true, "spec", "runPolicy", "suspend"); err != nil {
		t.Fatal(err)
	}
	if _, err := objects.Resource(pytorch.resource).Namespace(namespace).Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	patch := func(by dynamic.Interface, body string, subresources ...string) error {
		_, err := by.Resource(pytorch.resource).Namespace(namespace).Patch(t.Context(), job.GetName(), types.MergePatchType, []byte(body), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, subresources...)
		return err
	}
	if err := patch(somebody, `{"spec": {"runPolicy": {"suspend": false}}}`); err != nil {
		t.Errorf("to let a job begin that has its class already: %v", err)
	}
	if err := patch(objects, `{"spec": {"replicas": 1000}}`, "scale"); err != nil {
		t.Errorf("to scale: %v", err)
	}
	if err := patch(objects, `{"spec": {"replicas": 1001}}`, "scale"); err == nil || !strings.Contains(err.Error(), "a job may have 1000 tasks here, and this one has 1001") {
		t.Errorf("to scale beyond the limit: %v", err)
	}
	elastic := pytorch.job(t, namespace, 1, container, "")
	if err := unstructured.SetNestedField(elastic.Object, int64(1001), "spec", "elasticPolicy", "maxReplicas"); err != nil {
		t.Fatal(err)
	}
	if err := pytorch.tryCreate(t.Context(), somebody, elastic); err == nil || !strings.Contains(err.Error(), "and this one has 1001") {
		t.Errorf("a job that may grow beyond the limit: %v", err)
	}
}

// jobKind is a kind of jobs: the name that a container has to have, and the form of a spec, with how many Pods, their
// spec, and the PriorityClass of the gang.
type jobKind struct {
	resource        schema.GroupVersionResource
	container, spec string
}

// kubeflowJob is a kind of Kubeflow's jobs. The replicas are in a field of their own in each, where its workers have the
// place of %s.
func kubeflowJob(version, resource, container, replicas string) jobKind {
	workers := "{replicas: %d, template: {spec: {%s}}}"
	return jobKind{schema.GroupVersionResource{Group: "kubeflow.org", Version: version, Resource: resource}, container,
		"{" + fmt.Sprintf(replicas, workers) + `, runPolicy: {schedulingPolicy: {priorityClass: "%s"}}}`}
}

// containers are the specs of n containers.
func containers(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("{name: c%d, image: registry.example.com/i}", i))
	}
	return strings.Join(all, ", ")
}

// containerOf is the container of a Pod with an image.
func (k jobKind) containerOf(image string) string {
	return fmt.Sprintf("containers: [{name: %s, image: %s}]", k.container, image)
}

// job is one of a kind.
func (k jobKind) job(t *testing.T, namespace string, pods int, pod, class string) *unstructured.Unstructured {
	t.Helper()
	var spec map[string]any
	if err := yaml.Unmarshal(fmt.Appendf(nil, k.spec, pods, pod, class), &spec); err != nil {
		t.Fatal(err)
	}
	job := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	kind, err := cluster.Kube.Discovery().ServerResourcesForGroupVersion(k.resource.GroupVersion().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range kind.APIResources {
		if of.Name == k.resource.Resource {
			job.SetGroupVersionKind(k.resource.GroupVersion().WithKind(of.Kind))
		}
	}
	job.SetNamespace(namespace)
	job.SetName("j")
	return job
}

// tryCreate asks whether a job would be created.
func (k jobKind) tryCreate(ctx context.Context, client dynamic.Interface, job *unstructured.Unstructured) error {
	_, err := client.Resource(k.resource).Namespace(job.GetNamespace()).Create(ctx, job, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// switchOnPolicies has the policies be there until the test ends.
func switchOnPolicies(t *testing.T) {
	t.Helper()
	if out, err := cluster.Kubectl(t.Context(), "apply", "-k", "../../manifests/policies"); err != nil {
		t.Fatal(err, out)
	}
	t.Cleanup(func() {
		if out, err := cluster.Kubectl(context.WithoutCancel(t.Context()), "delete", "--ignore-not-found", "-k", "../../manifests/policies"); err != nil {
			t.Error(err, out)
		}
	})
}

// somebodysNamespace is a namespace in which all policies are on, and the access of somebody who may
// edit what is in it, and use the PriorityClass mine.
func somebodysNamespace(t *testing.T) (string, *rest.Config) {
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
	return namespace, config
}

// tryCreate asks whether a Framework would be created.
func tryCreate(ctx context.Context, client versioned.Interface, fw *frameworkv1.Framework) error {
	_, err := client.FrameworkcontrollerV1().Frameworks(fw.Namespace).Create(ctx, fw, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// framework is one that has not started, with a number of tasks and the spec of their Pods, and more
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
