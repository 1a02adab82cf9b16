// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	schedulinglisters "k8s.io/client-go/listers/scheduling/v1"
	"k8s.io/client-go/tools/cache"
)

// classes reads the existing PriorityClasses from an informer of the scheduler. classesOf must be called before the
// scheduler starts the informers.
type classes struct {
	informer cache.SharedIndexInformer
	lister   schedulinglisters.PriorityClassLister
}

func classesOf(informers informers.SharedInformerFactory) classes {
	of := informers.Scheduling().V1().PriorityClasses()
	return classes{informer: of.Informer(), lister: of.Lister()}
}

// value returns the value of a PriorityClass, false if none with the name exists.
func (c classes) value(name string) (int32, bool) {
	class, err := c.lister.Get(name)
	if err != nil {
		return 0, false // the only error of a lister is NotFound
	}
	return class.Value, true
}

// mayPreempt reports whether gangs of a PriorityClass may preempt others.
func (c classes) mayPreempt(name string) bool {
	class, err := c.lister.Get(name)
	return err != nil || class.PreemptionPolicy == nil || *class.PreemptionPolicy != corev1.PreemptNever
}

// watch calls do whenever a PriorityClass is created or deleted.
func (c classes) watch(do func()) error {
	_, err := c.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { do() },
		DeleteFunc: func(any) { do() },
	})
	if err != nil {
		return fmt.Errorf("watching PriorityClasses: %w", err)
	}
	return nil
}

// watchNamespaces calls `changed` for each namespace that was updated and is not being deleted. A new label on a
// namespace may help its Pods, because policies and webhooks that refuse Pods may select namespaces by their labels.
func watchNamespaces(informers informers.SharedInformerFactory, changed func(namespace string)) error {
	_, err := informers.Core().V1().Namespaces().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after any) {
			was, is := before.(*corev1.Namespace), after.(*corev1.Namespace)
			if is.DeletionTimestamp == nil && was.ResourceVersion != is.ResourceVersion {
				changed(is.Name)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watching namespaces: %w", err)
	}
	return nil
}
