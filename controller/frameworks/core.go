// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package frameworks

import (
	"context"
	"fmt"
	"iter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	"github.com/lockstep-k8s/lockstep/apis/framework/statuscodec"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/client/clientset/versioned"
	"github.com/lockstep-k8s/lockstep/controller/adapter"
	"github.com/lockstep-k8s/lockstep/controller/engine"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/lifecycle"
	"github.com/lockstep-k8s/lockstep/controller/pacing"
	"github.com/lockstep-k8s/lockstep/controller/spans"
	"github.com/lockstep-k8s/lockstep/controller/tracing"
	"github.com/lockstep-k8s/lockstep/internal/informing"
)

// Core is the engine's core of Frameworks.
type Core struct {
	engine.Defaults[*frameworkv1.Framework, frameworkv1.FrameworkStatus]

	kube     kubernetes.Interface
	lockstep versioned.Interface

	configMaps, pods, podGroups cache.SharedIndexInformer
	// priorityClasses need not be filled: a controller without that right runs.
	priorityClasses cache.SharedIndexInformer
	// frameworks is set once the engine exists.
	frameworks cache.SharedIndexInformer
	// informers starts all except those of PodGroups and Frameworks.
	informers adapter.Informers

	options  lifecycle.Options
	history  historyLog
	tracer   *tracing.Tracer
	compress bool
}

// Owners are Frameworks at work.
type Owners = engine.Owners[*frameworkv1.Framework, frameworkv1.FrameworkStatus]

// New returns the core, from a valid configuration with defaults. The informer of PodGroups is shared, and the caller
// starts it. tracer may be nil.
func New(kube kubernetes.Interface, lockstep versioned.Interface, podGroups cache.SharedIndexInformer,
	config *configv1alpha1.ControllerConfiguration, tracer *tracing.Tracer) (*Core, error) {
	options, err := lifecycleOptions(config)
	if err != nil {
		return nil, err
	}
	classFactory := informers.NewSharedInformerFactoryWithOptions(kube, 0, informers.WithTweakListOptions(informing.WantCurrent))
	c := &Core{
		kube:            kube,
		lockstep:        lockstep,
		podGroups:       podGroups,
		priorityClasses: classFactory.Scheduling().V1().PriorityClasses().Informer(),
		options:         options,
		history:         newHistoryLog(config.LogObjectSnapshot),
		tracer:          tracer,
		compress:        *config.LargeFrameworkCompression,
	}
	if err := c.newInformers(config.Namespaces); err != nil {
		return nil, fmt.Errorf("making the informers: %w", err)
	}
	c.informers.Adopt(c.priorityClasses)
	return c, c.addHistoryHandler()
}

// lifecycleOptions returns the settings that decisions depend on.
func lifecycleOptions(config *configv1alpha1.ControllerConfiguration) (lifecycle.Options, error) {
	rules, err := lifecycle.NewPodFailureRules(config.PodFailureSpec)
	if err != nil {
		return lifecycle.Options{}, err
	}
	return lifecycle.Options{
		GangSchedulerName:       *config.GangSchedulerName,
		Queues:                  *config.Kueue.Enabled,
		CreationTimeout:         configv1alpha1.Seconds(*config.ObjectLocalCacheCreationTimeoutSec),
		CompletedRetention:      configv1alpha1.Seconds(max(0, *config.FrameworkCompletedRetainSec)),
		HistoryLimit:            int(*config.FrameworkHistoryLimit),
		MinConflictDelaySeconds: *config.FrameworkMinRetryDelaySecForTransientConflictFailed,
		MaxConflictDelaySeconds: *config.FrameworkMaxRetryDelaySecForTransientConflictFailed,
		PodFailures:             rules,
	}, nil
}

// AddTo adds Frameworks to an engine.
func (c *Core) AddTo(e *engine.Engine) (*Owners, error) {
	owners, err := engine.Add(e, c)
	if err != nil {
		return nil, err
	}
	c.frameworks = owners.Informer()
	return owners, nil
}

// Start starts all informers except those of PodGroups and of Frameworks.
func (c *Core) Start(ctx context.Context) { c.informers.Start(ctx) }

// Resource returns how the API server knows Frameworks.
func (c *Core) Resource() engine.Resource {
	return engine.Resource{
		GroupVersionKind: frameworkv1.SchemeGroupVersion.WithKind(frameworkv1.FrameworkKind),
		Plural:           frameworkv1.FrameworkPlural,
		API:              c.lockstep.FrameworkcontrollerV1().RESTClient(),
	}
}

// Kinds returns what Frameworks are made of.
func (c *Core) Kinds() []engine.Kind {
	return []engine.Kind{
		{
			Name:     lifecycle.KindConfigMap,
			Client:   adapter.ConfigMaps(c.kube),
			Informer: c.configMaps, OwnersOf: frameworksOf,
		},
		{
			Name:     lifecycle.KindPodGroup,
			Client:   adapter.PodGroups(c.lockstep),
			Informer: c.podGroups, OwnersOf: frameworksOf, Delay: pacing.EventDelay, Remembers: true,
		},
		{
			Name:     lifecycle.KindPod,
			Client:   adapter.Pods(c.kube),
			Informer: c.pods, OwnersOf: frameworksOf, Delay: pacing.EventDelay, Reduce: reducePod,
		},
		{Name: "PriorityClass", Informer: c.priorityClasses, Unawaited: true},
	}
}

// frameworksOf returns the names of the Frameworks to which an object belongs: the name in its label, and the name in
// an annotation of older versions. They may differ, because users may change either.
func frameworksOf(object metav1.Object) []string {
	return []string{object.GetLabels()[frameworkv1.KeyFrameworkName], object.GetAnnotations()[frameworkv1.KeyFrameworkName]}
}

// DecodeOwner makes a Framework of what the API server has sent.
func (c *Core) DecodeOwner(kind metav1.TypeMeta, metadata metav1.ObjectMeta, spec []byte) (*frameworkv1.Framework, error) {
	metadata.ManagedFields = nil
	framework := &frameworkv1.Framework{TypeMeta: kind, ObjectMeta: metadata}
	if len(spec) == 0 {
		return framework, nil
	}
	err := utiljson.Unmarshal(spec, &framework.Spec)
	if err != nil {
		err = fmt.Errorf("spec does not decode: %w", err)
	} else {
		err = lifecycle.CheckSpec(&framework.Spec)
	}
	if err != nil {
		framework.Spec = frameworkv1.FrameworkSpec{}
	}
	return framework, err
}

// DecodeStatus reads a stored status, which may be compressed.
func (c *Core) DecodeStatus(stored []byte) (*frameworkv1.FrameworkStatus, error) {
	return statuscodec.Decode(stored)
}

// Rests reports whether a Framework is Completed and has no objects, so that it only waits for the end of its
// retention.
func (c *Core) Rests(framework *frameworkv1.Framework, stored []byte, now time.Time) (state string, until time.Time, rests bool) {
	var status struct {
		ObservedGeneration int64                      `json:"observedGeneration"`
		State              frameworkv1.FrameworkState `json:"state"`
		TransitionTime     metav1.Time                `json:"transitionTime"`
		AttemptStatus      struct {
			ConfigMapUID types.UID `json:"configMapUID"`
		} `json:"attemptStatus"`
	}
	if err := utiljson.Unmarshal(stored, &status); err != nil {
		return "", until, false
	}
	until = status.TransitionTime.Add(c.options.CompletedRetention)
	rests = status.State == frameworkv1.FrameworkCompleted && status.ObservedGeneration == framework.Generation &&
		!status.TransitionTime.After(now) && until.After(now) && !c.isAnythingLeft(framework, status.AttemptStatus.ConfigMapUID)
	return string(status.State), until, rests
}

// isAnythingLeft reports whether the caches have Pods of a Framework, or a ConfigMap with its name.
func (c *Core) isAnythingLeft(framework *frameworkv1.Framework, configMap types.UID) bool {
	for _, owner := range []types.UID{framework.UID, configMap} {
		keys, err := c.pods.GetIndexer().IndexKeys(engine.ByOwner, engine.OwnerKey(framework.Namespace, owner))
		if err != nil || len(keys) > 0 {
			return true
		}
	}
	name := cache.NewObjectName(framework.Namespace, frameworkv1.AttemptName(framework.Name))
	_, exists, err := c.configMaps.GetIndexer().GetByKey(name.String())
	return err != nil || exists
}

// Size returns the number of tasks, including tasks that a rescale removes.
func (c *Core) Size(_ *frameworkv1.Framework, status *frameworkv1.FrameworkStatus) int {
	count := 0
	if status != nil {
		for _, role := range status.AttemptStatus.TaskRoleStatuses {
			count += len(role.TaskStatuses)
		}
	}
	return count
}

// UIDs are those of the ConfigMap and the Pods.
func (c *Core) UIDs(status *frameworkv1.FrameworkStatus) iter.Seq[types.UID] {
	return func(yield func(types.UID) bool) {
		if uid := status.AttemptStatus.ConfigMapUID; uid != nil && !yield(*uid) {
			return
		}
		for _, role := range status.AttemptStatus.TaskRoleStatuses {
			for _, task := range role.TaskStatuses {
				if uid := task.AttemptStatus.PodUID; uid != nil && !yield(*uid) {
					return
				}
			}
		}
	}
}

// WithOthers takes conditions of others from a stored status.
func (c *Core) WithOthers(status, stored *frameworkv1.FrameworkStatus) *frameworkv1.FrameworkStatus {
	changed := *status
	changed.Conditions = lifecycle.MergeConditions(status.Conditions, stored.Conditions)
	return &changed
}

// Kept returns a status as the API server would store it, given a stored status: an older CRD drops unknown fields.
// Otherwise the controller would mistake its own writes for another client's.
func (c *Core) Kept(status, stored *frameworkv1.FrameworkStatus) *frameworkv1.FrameworkStatus {
	return statuscodec.Kept(status, stored)
}

// RefusesForGood reports whether the refusal of a Pod ends the task's attempt.
func (c *Core) RefusesForGood(action plan.Action, err error) bool {
	return action.Kind == lifecycle.KindPod && lifecycle.PodRefusal(err) != nil
}

// Templates are those of the roles.
func (c *Core) Templates(framework *frameworkv1.Framework, status *frameworkv1.FrameworkStatus) []engine.Template {
	if status != nil && status.State == frameworkv1.FrameworkCompleted {
		return nil
	}
	templates := make([]engine.Template, len(framework.Spec.TaskRoles))
	for i := range framework.Spec.TaskRoles {
		role := &framework.Spec.TaskRoles[i]
		templates[i] = engine.Template{Group: role.Name, Path: frameworkv1.PodTemplatePath(i), JSON: role.Task.Pod.Raw}
	}
	return templates
}

// FateOf returns Leftover for Pods of the Framework that were orphaned when their ConfigMap was deleted. The PodGroup
// of such an attempt is deleted.
func (c *Core) FateOf(framework *frameworkv1.Framework, kind string, object metav1.Object) engine.Fate {
	if object.GetAnnotations()[frameworkv1.KeyFrameworkUID] != string(framework.UID) {
		return engine.Foreign
	}
	switch kind {
	case lifecycle.KindPod:
		return engine.Leftover
	case lifecycle.KindPodGroup:
		return engine.Removable
	default:
		return engine.Foreign
	}
}

// State returns the state of the status, if it is a known one.
func (c *Core) State(status *frameworkv1.FrameworkStatus) string {
	if status == nil {
		return "New"
	}
	return lifecycle.KnownState(status.State)
}

// Turns are those of package lifecycle.
func (c *Core) Turns(framework *frameworkv1.Framework, before, after *frameworkv1.FrameworkStatus, now time.Time) []plan.Turn {
	return lifecycle.Turns(framework.CreationTimestamp.Time, before, after, now)
}

// StatusWritten sends the spans of what has ended.
func (c *Core) StatusWritten(framework *frameworkv1.Framework, before, after *frameworkv1.FrameworkStatus) {
	if c.tracer != nil {
		c.tracer.Send(spans.Ended(framework, before, after))
	}
}

// OwnerDeleted logs a Framework that is gone.
func (c *Core) OwnerDeleted(framework *frameworkv1.Framework, stored []byte) {
	c.logFrameworkDeletion(framework, stored)
}

// NewDecider begins to decide on a Framework.
func (c *Core) NewDecider() engine.Decider[*frameworkv1.Framework, frameworkv1.FrameworkStatus] {
	return &decider{core: c}
}
