// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	schedulingclient "github.com/lockstep-k8s/lockstep/client/clientset/versioned"
	schedulinginformers "github.com/lockstep-k8s/lockstep/client/informers/externalversions"
	"github.com/lockstep-k8s/lockstep/internal/tombstone"
)

// discoveryPeriod is how often the engine looks whether the API server serves
// PodGroups, while it does not.
const discoveryPeriod = 10 * time.Second

// anyPlugin is one of the instances; what belongs to the scheduler as a whole is
// the same in all of them.
func anyPlugin(plugins map[string]*Coscheduling) *Coscheduling {
	for _, c := range plugins {
		return c
	}
	return nil
}

func (e *engine) clientSet() kubernetes.Interface {
	return anyPlugin(e.plugins).handle.ClientSet()
}

func (e *engine) recorder() events.EventRecorderLogger {
	return anyPlugin(e.plugins).handle.EventRecorder()
}

// classValue finds the value of a PriorityClass. It asks for the informer
// before the scheduler starts its informers.
func (e *engine) classValue() func(name string) (int32, bool) {
	classes := anyPlugin(e.plugins).handle.SharedInformerFactory().Scheduling().V1().PriorityClasses().Lister()
	return func(name string) (int32, bool) {
		class, err := classes.Get(name)
		if err != nil {
			return 0, false // the only error of a lister is that there is none
		}
		return class.Value, true
	}
}

// classMayPreempt says whether gangs of a PriorityClass may preempt others.
func (e *engine) classMayPreempt(name string) bool {
	class, err := anyPlugin(e.plugins).handle.SharedInformerFactory().Scheduling().V1().PriorityClasses().Lister().Get(name)
	return err != nil || class.PreemptionPolicy == nil || *class.PreemptionPolicy != corev1.PreemptNever
}

// groupClient makes a client for PodGroups from the scheduler's configuration.
func groupClient(plugins map[string]*Coscheduling) (schedulingclient.Interface, error) {
	config := restclient.CopyConfig(anyPlugin(plugins).handle.KubeConfig())
	// The scheduler speaks protobuf, which the API server has for its own kinds
	// only.
	config.ContentType, config.AcceptContentTypes = "application/json", "application/json"
	client, err := schedulingclient.NewForConfig(restclient.AddUserAgent(config, "coscheduling"))
	if err != nil {
		return nil, fmt.Errorf("making a client for PodGroups: %w", err)
	}
	return client, nil
}

// watchClasses has gangs change their places in line when PriorityClasses come and go.
func (e *engine) watchClasses() error {
	rerank := func(any) { e.gangs.Rerank() }
	_, err := anyPlugin(e.plugins).handle.SharedInformerFactory().Scheduling().V1().PriorityClasses().Informer().
		AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: rerank, DeleteFunc: rerank})
	if err != nil {
		return fmt.Errorf("watching PriorityClasses: %w", err)
	}
	return nil
}

// startWatching tells package gangs what happens. It returns at once; nothing is planned
// before all that existed is known.
func (e *engine) startWatching(groups schedulingclient.Interface) error {
	membersSeen, err := e.watchMembers()
	if err != nil {
		return err
	}
	factory := schedulinginformers.NewSharedInformerFactory(groups, 0)
	podGroups := factory.Scheduling().V1alpha1().PodGroups().Informer()
	if err := podGroups.SetTransform(dropManagedFields); err != nil {
		return fmt.Errorf("watching PodGroups: %w", err)
	}
	groupsSeen, err := podGroups.AddEventHandler(handlers(e.gangs.SetGroup, e.updateGroup, e.gangs.DeleteGroup))
	if err != nil {
		return fmt.Errorf("watching PodGroups: %w", err)
	}
	if err := e.watchClasses(); err != nil {
		return err
	}
	go func() {
		if !e.awaitCRD(groups) {
			return
		}
		go podGroups.RunWithContext(e.ctx)
		if !cache.WaitFor(e.ctx, "", membersSeen, groupsSeen.HasSyncedChecker()) {
			return
		}
		// Whoever does not lead must not write conditions, nor evict.
		select {
		case <-e.begun:
		case <-e.ctx.Done():
			return
		}
		e.gangs.SetSynced()
		// An ordinary Pod may have been denied victims that nobody knew.
		e.sched.RetryAll(klog.FromContext(e.ctx))
	}()
	return nil
}

// updateGroup learns of a PodGroup that has changed.
func (e *engine) updateGroup(_, after *schedulingv1alpha1.PodGroup) {
	e.gangs.SetGroup(after)
}

// awaitCRD waits until the API server serves PodGroups, and says so once if it
// has to. Ordinary Pods are scheduled meanwhile. It returns false when the
// scheduler ends.
func (e *engine) awaitCRD(groups schedulingclient.Interface) bool {
	logger := klog.FromContext(e.ctx)
	told := false
	err := wait.PollUntilContextCancel(e.ctx, discoveryPeriod, true, func(context.Context) (bool, error) {
		served, err := servesPodGroups(groups)
		if served {
			if told {
				e.gangs.SetNoGroups(false)
				logger.Info("PodGroups are served now")
			}
			return true, nil
		}
		if err != nil {
			// It may serve them all the same. Until that is known, gangs wait.
			logger.Error(err, "Finding out whether the API server serves PodGroups failed, trying again", "period", discoveryPeriod)
			return false, nil
		}
		if !told {
			told = true
			e.gangs.SetNoGroups(true)
			go e.tellNoGroups()
			logger.Error(nil, "The API server does not serve PodGroups: install the CustomResourceDefinition podgroups.scheduling.lockstep.dev. "+
				"Until then Pods with the label "+schedulingv1alpha1.LabelPodGroup+" wait; all others are scheduled")
		}
		return false, nil
	})
	return err == nil
}

// tellNoGroups has Pods be told that the API server serves no PodGroups, as soon as the
// scheduler leads.
func (e *engine) tellNoGroups() {
	select {
	case <-e.begun:
		e.gangs.TellNoGroups()
	case <-e.ctx.Done():
	}
}

func servesPodGroups(groups schedulingclient.Interface) (bool, error) {
	list, err := groups.Discovery().ServerResourcesForGroupVersion(schedulingv1alpha1.SchemeGroupVersion.String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking for the resources of %s: %w", schedulingv1alpha1.SchemeGroupVersion, err)
	}
	for i := range list.APIResources {
		if list.APIResources[i].Name == schedulingv1alpha1.PodGroupPlural {
			return true, nil
		}
	}
	return false, nil
}

// handlers call add for what is new, update for what has changed, with what it was
// before, and remove for what is gone.
func handlers[T any](add func(T), update func(before, after T), remove func(T)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if t, ok := obj.(T); ok {
				add(t)
			}
		},
		UpdateFunc: func(before, after any) {
			was, ok1 := before.(T)
			is, ok2 := after.(T)
			if ok1 && ok2 {
				update(was, is)
			}
		},
		DeleteFunc: func(obj any) {
			if t, ok := tombstone.Object(obj).(T); ok {
				remove(t)
			}
		},
	}
}

// dropManagedFields saves the memory of a field that nothing here reads.
func dropManagedFields(obj any) (any, error) {
	switch o := obj.(type) {
	case *corev1.Pod:
		o.ManagedFields = nil
	case *schedulingv1alpha1.PodGroup:
		o.ManagedFields = nil
	}
	return obj, nil
}
