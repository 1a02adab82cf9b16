// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflowjobs

import (
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

// informers cache the objects of jobs of all kinds. Except for Pods and PodGroups, they cache only metadata.
type informers struct {
	pods, services, podGroups, autoscalers cache.SharedIndexInformer
	// configMaps are those of MPIJobs and of long lists of hosts.
	configMaps cache.SharedIndexInformer
	// Informers starts all informers except that of PodGroups.
	adapter.Informers
}

// newInformers creates the informers. The informer of PodGroups is shared, and the caller starts it.
func newInformers(clients adapter.Clients, podGroups cache.SharedIndexInformer, namespaces informing.Namespaces) (*informers, error) {
	labelled := adapter.Labelled(kubeflowv1.KeyJobName)
	i := &informers{podGroups: podGroups, Informers: adapter.Informers{Namespaces: namespaces}}
	var err error
	if i.pods, err = i.Objects(&corev1.Pod{}, keepOfPod, engine.OwnerIndex(""), func(namespace string) cache.ListerWatcher {
		return informing.ListWatch(clients.Kube, clients.Kube.CoreV1().Pods(namespace), labelled)
	}); err != nil {
		return nil, err
	}
	for resource, informer := range map[schema.GroupVersionResource]*cache.SharedIndexInformer{
		corev1.SchemeGroupVersion.WithResource("services"):                        &i.services,
		autoscalingv2.SchemeGroupVersion.WithResource("horizontalpodautoscalers"): &i.autoscalers,
		corev1.SchemeGroupVersion.WithResource("configmaps"):                      &i.configMaps,
	} {
		if *informer, err = i.Metadata(clients.Metadata, resource, labelled, keysRead...); err != nil {
			return nil, fmt.Errorf("watching %s: %w", resource.Resource, err)
		}
	}
	return i, nil
}

// keepOfPod and reducePod keep of a Pod what decisions read.
var keepOfPod, reducePod = informing.Keep(kubeflow.KeepOfPod)

// keysRead are the keys of labels and annotations that are read of objects with metadata only.
var keysRead = []string{kubeflowv1.KeyJobName, kubeflowv1.KeyOperatorName, kubeflow.KeyStart, kubeflow.KeyServices, kubeflow.KeyContent}

// reduceToMetadata keeps what the informers of metadata would.
var reduceToMetadata = adapter.ReduceToMetadata(keysRead...)
