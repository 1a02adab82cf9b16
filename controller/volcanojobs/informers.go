// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcanojobs

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/adapter"
	"github.com/lockstep-k8s/lockstep/controller/engine"
	"github.com/lockstep-k8s/lockstep/controller/volcano"
	"github.com/lockstep-k8s/lockstep/internal/informing"
)

// newInformers creates all informers except the informer of Jobs. The informer of PodGroups is shared, and started
// elsewhere.
func (c *Core) newInformers(namespaces informing.Namespaces) error {
	labelled := adapter.Labelled(batchv1alpha1.KeyJobName)
	made, kube := &c.informers, c.clients.Kube
	made.Namespaces = namespaces
	var err error
	if c.pods, err = made.Objects(&corev1.Pod{}, keepOfPod, engine.OwnerIndex(""), func(namespace string) cache.ListerWatcher {
		return informing.ListWatch(kube, kube.CoreV1().Pods(namespace), labelled)
	}); err != nil {
		return err
	}
	if c.configMaps, err = made.Objects(&corev1.ConfigMap{}, keepOfConfigMap, engine.OwnerIndex(""), func(namespace string) cache.ListerWatcher {
		return informing.ListWatch(kube, kube.CoreV1().ConfigMaps(namespace), labelled)
	}); err != nil {
		return err
	}
	c.metadataOf = map[string]cache.SharedIndexInformer{}
	for kind, resource := range map[string]schema.GroupVersionResource{
		volcano.KindService:       corev1.SchemeGroupVersion.WithResource("services"),
		volcano.KindNetworkPolicy: networkingv1.SchemeGroupVersion.WithResource("networkpolicies"),
	} {
		if c.metadataOf[kind], err = made.Metadata(c.clients.Metadata, resource, labelled, batchv1alpha1.KeyJobName); err != nil {
			return err
		}
	}
	// Users name claims of their own, which have no label.
	if c.metadataOf[volcano.KindClaim], err = made.Metadata(c.clients.Metadata, corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), informing.WantCurrent, batchv1alpha1.KeyJobName); err != nil {
		return err
	}
	volcanoGroups, err := made.Metadata(c.clients.Metadata, volcanoGroupResource, informing.WantCurrent, batchv1alpha1.KeyJobName)
	if err != nil {
		return err
	}
	if c.volcanoGroups, err = newServedOrNot(volcanoGroups); err != nil {
		return fmt.Errorf("watching PodGroups of Volcano: %w", err)
	}
	if c.commands, err = newCommandInformer(c.clients.Dynamic, namespaces); err != nil {
		return fmt.Errorf("watching Commands: %w", err)
	}
	if err := informing.Quietly(c.commands, c.commands.HasSynced); err != nil {
		return fmt.Errorf("watching Commands: %w", err)
	}
	made.Adopt(c.commands)
	return nil
}

// volcanoGroupResource are Volcano's own PodGroups: a Job that controls one is run by
// Volcano.
var volcanoGroupResource = schema.GroupVersionResource{Group: "scheduling.volcano.sh", Version: "v1beta1", Resource: "podgroups"}

// Reductions of objects to what decisions read, for informers and for objects that are read otherwise.
var (
	keepOfPod, reducePod             = informing.Keep(volcano.KeepOfPod)
	keepOfConfigMap, reduceConfigMap = informing.Keep(volcano.KeepOfConfigMap)
	_, reduceCommand                 = informing.Keep(volcano.KeepOfCommand)
	reduceToMetadata                 = adapter.ReduceToMetadata(batchv1alpha1.KeyJobName)
)
