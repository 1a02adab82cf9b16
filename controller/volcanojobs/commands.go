// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcanojobs

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/volcano"
	"github.com/lockstep-k8s/lockstep/internal/informing"
)

// byTarget is the index of Commands by the key of the Job that they name.
const byTarget = "target"

var commandResource = busv1alpha1.SchemeGroupVersion.WithResource(busv1alpha1.CommandPlural)

// newCommandInformer returns an informer of Commands. Each Command is decoded separately, because the CRD is Volcano's,
// and one invalid Command must not prevent the others from being listed.
func newCommandInformer(client dynamic.Interface, namespaces informing.Namespaces) (cache.SharedIndexInformer, error) {
	informer := namespaces.Dynamic(client, commandResource, informing.WantCurrent)
	if err := informer.AddIndexers(cache.Indexers{byTarget: indexByTarget}); err != nil {
		return nil, err
	}
	return informer, informer.SetTransform(decodeCommand)
}

// decodeCommand decodes a Command from the API server. An invalid Command gets no target, so it belongs to no Job and
// is left alone.
func decodeCommand(object any) (any, error) {
	raw, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	command := &busv1alpha1.Command{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw.Object, command); err != nil {
		command = &busv1alpha1.Command{ObjectMeta: metav1.ObjectMeta{
			Namespace: raw.GetNamespace(), Name: raw.GetName(), UID: raw.GetUID(), ResourceVersion: raw.GetResourceVersion(),
		}}
	}
	return volcano.KeepOfCommand(command), nil
}

func indexByTarget(object any) ([]string, error) {
	command, ok := object.(*busv1alpha1.Command)
	if !ok {
		return nil, fmt.Errorf("indexing a Command: got a %T", object)
	}
	if job := volcano.TargetOf(command); job != "" {
		return []string{cache.NewObjectName(command.Namespace, job).String()}, nil
	}
	return nil, nil
}

// jobOfCommand returns the name of the Job that a Command is for.
func jobOfCommand(object metav1.Object) []string {
	if command, ok := object.(*busv1alpha1.Command); ok {
		return []string{volcano.TargetOf(command)}
	}
	return nil
}
