// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// Name is the name of the plugin in a KubeSchedulerConfiguration.
const Name = "Coscheduling"

// Coscheduling is the plugin. Each profile has one instance. Attach gives all instances of a scheduler the same engine.
type Coscheduling struct {
	handle framework.Framework
	args   *configv1alpha1.CoschedulingArgs
	binds  *slots  // one for each bind that runs
	engine *engine // nil before Attach
}

var (
	_ fwk.PreEnqueuePlugin  = &Coscheduling{}
	_ fwk.EnqueueExtensions = &Coscheduling{}
	_ fwk.PreFilterPlugin   = &Coscheduling{}
	_ fwk.FilterPlugin      = &Coscheduling{}
	_ fwk.SignPlugin        = &Coscheduling{}
)

// New returns the plugin for a profile. It returns an error if the arguments are not CoschedulingArgs, or out of range.
func New(_ context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	args, err := decodeArgs(obj)
	if err != nil {
		return nil, err
	}
	// The framework passes itself to plugins as their handle. Cycles of gangs need more than a Handle has:
	// RunPreFilterPlugins and the bind phases.
	full, ok := handle.(framework.Framework)
	if !ok {
		return nil, fmt.Errorf("plugin %s needs the scheduler's own framework as its handle, got %T", Name, handle)
	}
	return &Coscheduling{
		handle: full,
		args:   args,
		binds:  newSlots(int(*args.BindParallelism)),
	}, nil
}

// CheckArgs returns an error if arguments of the plugin are invalid.
func CheckArgs(obj runtime.Object) error {
	_, err := decodeArgs(obj)
	return err
}

func decodeArgs(obj runtime.Object) (*configv1alpha1.CoschedulingArgs, error) {
	args, err := configv1alpha1.DecodeCoschedulingArgs(obj)
	if err != nil {
		return nil, fmt.Errorf("arguments of plugin %s: %w", Name, err)
	}
	return args, nil
}

// Name returns the name of the plugin.
func (c *Coscheduling) Name() string {
	return Name
}

// PreEnqueue lets ordinary Pods pass. Members of gangs normally never reach kube-scheduler's queue; PreEnqueue refuses
// any that does.
func (c *Coscheduling) PreEnqueue(_ context.Context, pod *corev1.Pod) *fwk.Status {
	if !c.isMember(pod) {
		return c.awaitLink(pod)
	}
	if c.engine == nil {
		return fwk.NewStatus(fwk.Error, fmt.Sprintf("plugin %s is not attached to its scheduler: the program must call coscheduling.Attach", Name))
	}
	if !c.engine.places(pod) {
		return nil
	}
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "members of a pod group are placed together")
}

// awaitLink makes a Pod that names no PodGroup wait, if the profile has the name of Volcano's scheduler and the
// configuration says so. kube-scheduler calls awaitLink again when the Pod changes.
func (c *Coscheduling) awaitLink(pod *corev1.Pod) *fwk.Status {
	volcano := &c.args.PodGroupAPIs.Volcano
	if volcano.UnlinkedPods != configv1alpha1.UnlinkedWait || c.handle.ProfileName() != volcanoProfile || c.engine == nil || !c.engine.links.AreOn(dialect.Volcano) {
		return nil
	}
	if _, named := c.engine.gangs.KeyOf(pod); named {
		return nil // the Pod names a loose gang
	}
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "the Pod waits until it names a PodGroup: a controller of Volcano's is to write the annotation")
}

// SignPod makes members of gangs share no scheduling results, and adds nothing to the signatures of other Pods. A
// plugin without this method would turn signatures, and so the batching of ordinary Pods, off for its whole profile.
func (c *Coscheduling) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	if c.isMember(pod) {
		return nil, fwk.NewStatus(fwk.Unschedulable, "members of a pod group are placed together")
	}
	return nil, nil
}

// isMember reports whether a Pod is a member of a gang that is placed together. Before Attach, only Lockstep's own
// PodGroups count.
func (c *Coscheduling) isMember(pod *corev1.Pod) bool {
	if c.engine == nil {
		_, named := (*dialect.Links)(nil).KeyOf(pod)
		return named
	}
	return c.engine.gangs.KeepsOut(pod)
}
