// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kueue

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/controller/lifecycle"
)

// Kueue's integration of Pods makes a Workload of every Pod that has no owner which it knows, where a namespace has a
// LocalQueue named default, or the administrator says so. The Pods of a Framework belong to a ConfigMap. So they
// would be counted twice. A Pod with the annotation kueue.x-k8s.io/pod-suspending-parent is gated, too,
// but gets no Workload, and Kueue never removes its gates. This controller removes the gates while the Framework is
// admitted. Until then the Pods have a label, so that the controller watches no other Pods.

// Scheduling gates and the finalizer of Kueue's integration of Pods.
const (
	gateAdmission = "kueue.x-k8s.io/admission"
	gateTopology  = "kueue.x-k8s.io/topology"
	podFinalizer  = "kueue.x-k8s.io/managed"
)

// byFramework indexes Pods by the Framework that their label names.
const byFramework = "framework"

func indexByFramework(object any) ([]string, error) {
	pod, ok := object.(metav1.Object)
	if !ok {
		return nil, nil
	}
	return []string{cache.ObjectName{Namespace: pod.GetNamespace(), Name: pod.GetLabels()[frameworkv1.KeyFrameworkName]}.String()}, nil
}

// isGated reports whether Kueue gates single Pods in a namespace as jobs of their own. It finds out by a dry-run
// creation of a Pod. If the API server refuses that Pod, isGated returns true: at worst, the controller then looks for
// gates that do not exist.
func (c *Controller) isGated(ctx context.Context, namespace string, now time.Time) (bool, error) {
	return lookUp(&c.mu, c.gated, namespace, now, func() (bool, error) {
		ctx, cancel := aRequest(ctx)
		defer cancel()
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(trial)
		if err != nil {
			return false, err
		}
		made, err := c.client.Resource(pods).Namespace(namespace).
			Create(ctx, &unstructured.Unstructured{Object: fields}, metav1.CreateOptions{FieldManager: FieldManager, DryRun: []string{metav1.DryRunAll}})
		switch {
		case isRefusal(err):
			return true, nil
		case err != nil:
			return false, fmt.Errorf("trying whether Kueue gates Pods: %w", err)
		}
		gates, _, _ := unstructured.NestedSlice(made.Object, "spec", "schedulingGates")
		return slices.ContainsFunc(gates, func(gate any) bool {
			fields, _ := gate.(map[string]any)
			return fields["name"] == gateAdmission
		}), nil
	})
}

// trial is a Pod that even restricted namespaces take, and those with a quota.
var trial = &corev1.Pod{
	TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
	ObjectMeta: metav1.ObjectMeta{GenerateName: "lockstep-kueue-trial-"},
	Spec: corev1.PodSpec{
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](65534), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		AutomountServiceAccountToken: ptr.To(false),
		Containers: []corev1.Container{{
			Name: "none", Image: "none", Resources: corev1.ResourceRequirements{Requests: little, Limits: little},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}},
	},
}

var little = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m"), corev1.ResourceMemory: resource.MustParse("1Mi")}

// maxUngated is how many Pods of a Framework are ungated beside each other.
const maxUngated = 16

// ungate removes the gates of Pods that belong to the attempt of an admitted Framework, and of Pods that are being
// deleted. framework is nil if the Framework is in no queue or gone; then ungate asks the API server which of the two.
func (c *Controller) ungate(ctx context.Context, key cache.ObjectName, framework *frameworkv1.Framework) error {
	objects, err := c.pods.GetIndexer().ByIndex(byFramework, key.String())
	if err != nil || len(objects) == 0 {
		return err
	}
	if framework == nil {
		if framework, err = c.read(ctx, key); err != nil {
			return err
		}
	}
	group := errgroup.Group{}
	group.SetLimit(maxUngated)
	for _, object := range objects {
		pod, ok := object.(*metav1.PartialObjectMetadata)
		if !ok || pod.DeletionTimestamp == nil && !mayRun(framework, pod) {
			continue
		}
		group.Go(func() error { return c.patchPod(ctx, pod) })
	}
	return group.Wait()
}

// read reads a Framework. It is nil if there is none.
func (c *Controller) read(ctx context.Context, key cache.ObjectName) (*frameworkv1.Framework, error) {
	ctx, cancel := aRequest(ctx)
	defer cancel()
	object, err := c.client.Resource(frameworks).Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return nil, ignoreGone(err)
	}
	kept, err := keepOfFramework(object)
	framework, _ := kept.(*frameworkv1.Framework)
	return framework, err
}

// mayRun reports whether a Pod is of the attempt that a Framework has begun, and the Framework is admitted or in no
// queue.
func mayRun(framework *frameworkv1.Framework, pod metav1.Object) bool {
	if framework == nil || framework.Status == nil {
		return false
	}
	owner, attempt := metav1.GetControllerOf(pod), framework.Status.AttemptStatus.ConfigMapUID
	if owner == nil || attempt == nil || owner.UID != *attempt {
		return false
	}
	admission := lifecycle.AdmissionOf(framework)
	return framework.Labels[frameworkv1.LabelQueue] == "" || admission != nil && admission.Framework == string(framework.UID)
}

// patchPod removes what Kueue has added to a Pod, and the label by which this controller finds the Pod.
func (c *Controller) patchPod(ctx context.Context, pod *metav1.PartialObjectMetadata) error {
	return c.patch(ctx, pods, pod, types.StrategicMergePatchType, map[string]any{
		"metadata": map[string]any{
			"uid": pod.UID, "labels": map[string]any{frameworkv1.LabelGated: nil},
			"$deleteFromPrimitiveList/finalizers": []string{podFinalizer},
		},
		"spec": map[string]any{"schedulingGates": []map[string]any{
			{"$patch": "delete", "name": gateAdmission}, {"$patch": "delete", "name": gateTopology},
		}},
	})
}
