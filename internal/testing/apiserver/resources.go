// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"reflect"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	kubeflowv2beta1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v2beta1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// Resource is a kind of objects that a server stores.
type Resource struct {
	schema.GroupVersionResource
	Kind string
	// Cluster says that the objects have no namespace.
	Cluster bool
	// NoStatus means that the resource has no subresource status: the status is written with the rest of the object.
	NoStatus bool
	// Type is a nil pointer of the Go type in which tests get the objects. It may be nil for a custom resource, whose
	// objects are then unstructured.
	Type runtime.Object
}

// resources returns the resources of every server.
func resources() []Resource {
	core := corev1.SchemeGroupVersion
	return []Resource{
		{GroupVersionResource: core.WithResource("pods"), Kind: "Pod", Type: (*corev1.Pod)(nil)},
		{GroupVersionResource: core.WithResource("configmaps"), Kind: "ConfigMap", NoStatus: true, Type: (*corev1.ConfigMap)(nil)},
		{GroupVersionResource: core.WithResource("events"), Kind: "Event", NoStatus: true, Type: (*corev1.Event)(nil)},
		{GroupVersionResource: core.WithResource("nodes"), Kind: "Node", Cluster: true, Type: (*corev1.Node)(nil)},
		{GroupVersionResource: core.WithResource("namespaces"), Kind: "Namespace", Cluster: true, Type: (*corev1.Namespace)(nil)},
		{GroupVersionResource: core.WithResource("serviceaccounts"), Kind: "ServiceAccount", Type: (*corev1.ServiceAccount)(nil), NoStatus: true},
		{GroupVersionResource: core.WithResource("resourcequotas"), Kind: "ResourceQuota", Type: (*corev1.ResourceQuota)(nil)},
		{GroupVersionResource: eventsv1.SchemeGroupVersion.WithResource("events"), Kind: "Event", NoStatus: true, Type: (*eventsv1.Event)(nil)},
		{GroupVersionResource: coordinationv1.SchemeGroupVersion.WithResource("leases"), Kind: "Lease", NoStatus: true, Type: (*coordinationv1.Lease)(nil)},
		{GroupVersionResource: schedulingv1.SchemeGroupVersion.WithResource("priorityclasses"), Kind: "PriorityClass", Cluster: true, NoStatus: true, Type: (*schedulingv1.PriorityClass)(nil)},
		{GroupVersionResource: policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"), Kind: "PodDisruptionBudget", Type: (*policyv1.PodDisruptionBudget)(nil)},
		{GroupVersionResource: schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, Kind: "CustomResourceDefinition", Cluster: true},
		{GroupVersionResource: frameworkv1.SchemeGroupVersion.WithResource(frameworkv1.FrameworkPlural), Kind: "Framework", Type: (*frameworkv1.Framework)(nil)},
		{GroupVersionResource: core.WithResource("services"), Kind: "Service", Type: (*corev1.Service)(nil)},
		{GroupVersionResource: core.WithResource("secrets"), Kind: "Secret", NoStatus: true, Type: (*corev1.Secret)(nil)},
		{GroupVersionResource: core.WithResource("persistentvolumeclaims"), Kind: "PersistentVolumeClaim", Type: (*corev1.PersistentVolumeClaim)(nil)},
		{GroupVersionResource: networkingv1.SchemeGroupVersion.WithResource("networkpolicies"), Kind: "NetworkPolicy", NoStatus: true, Type: (*networkingv1.NetworkPolicy)(nil)},
		{GroupVersionResource: batchv1alpha1.SchemeGroupVersion.WithResource(batchv1alpha1.JobPlural), Kind: batchv1alpha1.JobKind, Type: (*batchv1alpha1.Job)(nil)},
		{GroupVersionResource: busv1alpha1.SchemeGroupVersion.WithResource(busv1alpha1.CommandPlural), Kind: busv1alpha1.CommandKind, NoStatus: true, Type: (*busv1alpha1.Command)(nil)},
		{GroupVersionResource: kubeflowv1.SchemeGroupVersion.WithResource(kubeflowv1.TFJobPlural), Kind: kubeflowv1.TFJobKind, Type: (*kubeflowv1.TFJob)(nil)},
		{GroupVersionResource: kubeflowv1.SchemeGroupVersion.WithResource(kubeflowv1.PyTorchJobPlural), Kind: kubeflowv1.PyTorchJobKind, Type: (*kubeflowv1.PyTorchJob)(nil)},
		{GroupVersionResource: kubeflowv1.SchemeGroupVersion.WithResource(kubeflowv1.XGBoostJobPlural), Kind: kubeflowv1.XGBoostJobKind, Type: (*kubeflowv1.XGBoostJob)(nil)},
		{GroupVersionResource: kubeflowv1.SchemeGroupVersion.WithResource(kubeflowv1.PaddleJobPlural), Kind: kubeflowv1.PaddleJobKind, Type: (*kubeflowv1.PaddleJob)(nil)},
		{GroupVersionResource: kubeflowv1.SchemeGroupVersion.WithResource(kubeflowv1.JAXJobPlural), Kind: kubeflowv1.JAXJobKind, Type: (*kubeflowv1.JAXJob)(nil)},
		{GroupVersionResource: kubeflowv2beta1.SchemeGroupVersion.WithResource(kubeflowv2beta1.MPIJobPlural), Kind: kubeflowv2beta1.MPIJobKind, Type: (*kubeflowv2beta1.MPIJob)(nil)},
		{GroupVersionResource: autoscalingv2.SchemeGroupVersion.WithResource("horizontalpodautoscalers"), Kind: "HorizontalPodAutoscaler", Type: (*autoscalingv2.HorizontalPodAutoscaler)(nil)},
		{GroupVersionResource: schedulingv1alpha1.SchemeGroupVersion.WithResource("podgroups"), Kind: "PodGroup", Type: (*schedulingv1alpha1.PodGroup)(nil)},
	}
}

// resource is a Resource with what follows from it.
type resource struct {
	Resource
	kind schema.GroupVersionKind
	// custom means that objects are stored as the JSON that clients sent. Objects of other resources are stored as
	// Kubernetes' Go types.
	custom bool
	// generation says that metadata.generation counts changes of what is desired.
	generation bool
	goType     reflect.Type
}

func newResource(r Resource) *resource {
	kind := r.GroupVersion().WithKind(r.Kind)
	custom := !scheme.Scheme.Recognizes(kind)
	known := &resource{Resource: r, kind: kind, custom: custom}
	if r.Type != nil {
		known.goType = reflect.TypeOf(r.Type)
	}
	known.generation = custom
	if !custom {
		switch r.Kind {
		case "Pod", "PodDisruptionBudget":
			known.generation = true
		}
	}
	return known
}

// newObject returns an empty object.
func (r *resource) newObject() runtime.Object {
	if r.custom {
		return &customObject{}
	}
	object, err := scheme.Scheme.New(r.kind)
	if err != nil {
		panic(err) // The scheme was asked before.
	}
	return object
}

// stamp says on an object what it is.
func (r *resource) stamp(object runtime.Object) {
	object.GetObjectKind().SetGroupVersionKind(r.kind)
}

// metaOf returns the metadata of an object, to be read and written.
func metaOf(object runtime.Object) *metav1.ObjectMeta {
	return object.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta)
}
