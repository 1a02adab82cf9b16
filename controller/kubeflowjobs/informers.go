// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflowjobs

import (
	"context"
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/adapter"
	"github.com/lockstep-k8s/lockstep/controller/engine"
	"github.com/lockstep-k8s/lockstep/controller/kubeflow"
	"github.com/lockstep-k8s/lockstep/internal/informing"
)

// informers cache what jobs of all kinds are made of. But of Pods and
// PodGroups they have nothing but the metadata.
type informers struct {
	pods, services, podGroups, autoscalers cache.SharedIndexInformer
	// configMaps are those of MPIJobs and of long lists of hosts.
	configMaps cache.SharedIndexInformer
	// start starts them, but for that of PodGroups.
	start []func(context.Context)
}

// newInformers makes the informers. The one of PodGroups is shared with others, who start it.
func newInformers(clients adapter.Clients, podGroups cache.SharedIndexInformer, namespaces informing.Namespaces) (*informers, error) {
	labelled := adapter.Labelled(kubeflowv1.KeyJobName)
	i := &informers{podGroups: podGroups, pods: namespaces.Informer(&corev1.Pod{}, func(namespace string) cache.ListerWatcher {
		return informing.ListWatch(clients.Kube, clients.Kube.CoreV1().Pods(namespace), labelled)
	})}
	if err := i.pods.SetTransform(keepOfPod); err != nil {
		return nil, fmt.Errorf("watching Pods: %w", err)
	}
	if err := i.pods.AddIndexers(engine.OwnerIndex("")); err != nil {
		return nil, fmt.Errorf("watching Pods: %w", err)
	}
	for resource, informer := range map[schema.GroupVersionResource]*cache.SharedIndexInformer{
		corev1.SchemeGroupVersion.WithResource("services"):                        &i.services,
		autoscalingv2.SchemeGroupVersion.WithResource("horizontalpodautoscalers"): &i.autoscalers,
		corev1.SchemeGroupVersion.WithResource("configmaps"):                      &i.configMaps,
	} {
		var err error
		if *informer, err = adapter.MetadataInformer(clients.Metadata, resource, namespaces, labelled, keysRead...); err != nil {
			return nil, fmt.Errorf("watching %s: %w", resource.Resource, err)
		}
	}
	for _, informer := range []cache.SharedIndexInformer{i.pods, i.services, i.autoscalers, i.configMaps} {
		i.start = append(i.start, func(ctx context.Context) { go informer.RunWithContext(ctx) })
	}
	return i, nil
}

// keepOfPod and reducePod keep of a Pod what decisions read.
var keepOfPod, reducePod = informing.Keep(kubeflow.KeepOfPod)

// keysRead are those of the labels and annotations that are read of objects of which nothing but the
// metadata is.
var keysRead = []string{kubeflowv1.KeyJobName, kubeflowv1.KeyOperatorName, kubeflow.KeyStart, kubeflow.KeyServices, kubeflow.KeyContent}

// reduceToMetadata keeps what the informers of metadata would.
var reduceToMetadata = adapter.ReduceToMetadata(keysRead...)
