// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflowjobs

import (
	"context"
	"fmt"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/adapter"
	"github.com/lockstep-k8s/lockstep/controller/engine"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
	"github.com/lockstep-k8s/lockstep/controller/kubeflow"
	"github.com/lockstep-k8s/lockstep/controller/pacing"
)

// Cores are the engine's cores of all kinds of jobs.
type Cores struct {
	informers *informers
	cores     []*Core
}

// Core is the engine's core of one kind of jobs.
type Core struct {
	engine.Defaults[*Job, kubeflowv1.JobStatus]

	kind      kind
	clients   adapter.Clients
	options   kubeflow.Options
	informers *informers

	// decide is kubeflow.Decide.
	decide func(kubeflow.Snapshot, time.Time, plan.Entropy) (plan.Plan[kubeflowv1.JobStatus], kubeflow.Memory)
}

// Owners are jobs of one kind at work.
type Owners = engine.Owners[*Job, kubeflowv1.JobStatus]

// New returns the cores. config must be valid, have its defaults, and enable training jobs. The caller starts the
// informer of PodGroups, which is shared, and adds engine.OwnerIndex to it.
func New(clients adapter.Clients, podGroups cache.SharedIndexInformer, config *configv1alpha1.ControllerConfiguration) (*Cores, error) {
	informers, err := newInformers(clients, podGroups, config.Namespaces)
	if err != nil {
		return nil, err
	}
	all := &Cores{informers: informers}
	for _, k := range kinds() {
		all.cores = append(all.cores, &Core{
			kind: k, clients: clients, options: optionsOf(config), informers: informers, decide: kubeflow.Decide,
		})
	}
	return all, nil
}

// optionsOf returns the settings that decisions depend on.
func optionsOf(config *configv1alpha1.ControllerConfiguration) kubeflow.Options {
	jobs := &config.KubeflowJobs
	options := kubeflow.Options{
		TakeJobs:          kubeflow.TakeJobs(*jobs.TakeJobs),
		Namespaces:        map[string]bool{},
		GangSchedulerName: *config.GangSchedulerName,
		SchedulerNames:    jobs.SchedulerNames,
		ForeignCRDs:       *jobs.ForeignCRDs,
		GangAlways:        *jobs.Gang == configv1alpha1.GangAlways,
		Manager:           engine.FieldManager,
		Services:          kubeflowv1.ServiceMode(*jobs.Services),
		ClusterDomain:     *jobs.CustomClusterDomain,
		InitImage:         *jobs.PyTorchInitImage,
		InitCommand:       jobs.PyTorchInitCommand,
		InitMaxTries:      int(*jobs.PyTorchInitMaxTries),
		ReconcilePeriod:   jobs.ReconcilerSyncLoopPeriod.Duration,
		Keys:              adapter.ECDSAKeys,
	}
	for _, namespace := range jobs.Namespaces {
		options.Namespaces[namespace] = true
	}
	return options
}

// AddTo adds jobs of all kinds to an engine, and returns the Owners of each kind.
func (c *Cores) AddTo(e *engine.Engine) ([]*Owners, error) {
	var all []*Owners
	for _, core := range c.cores {
		owners, err := engine.Add(e, core)
		if err != nil {
			return nil, fmt.Errorf("adding the core of %ss: %w", core.kind.name, err)
		}
		all = append(all, owners)
	}
	return all, nil
}

// Start starts all informers except those of PodGroups and of jobs.
func (c *Cores) Start(ctx context.Context) { c.informers.Start(ctx) }

// Resource describes the API resource of the kind. The resource is optional: other kinds don't wait until the API
// server serves it.
func (c *Core) Resource() engine.Resource {
	return engine.Resource{
		GroupVersionKind: c.kind.version.WithKind(c.kind.name),
		Plural:           c.kind.plural,
		API:              c.kind.client(c.clients.Lockstep),
		Optional:         true,
	}
}

// Kinds returns the kinds of objects of a job. The engine has to remember the objects that it wrote (Kind.Remembers),
// because the status records no UIDs.
func (c *Core) Kinds() []engine.Kind {
	kube, informers := c.clients.Kube, c.informers
	all := []engine.Kind{
		{Name: kubeflow.KindPod, Client: adapter.Pods(kube), Informer: informers.pods, Delay: pacing.EventDelay, Reduce: reducePod},
		{Name: kubeflow.KindService, Client: adapter.Services(kube), Informer: informers.services, Delay: pacing.EventDelay, Reduce: reduceToMetadata},
		{Name: kubeflow.KindPodGroup, Client: adapter.PodGroups(c.clients.Lockstep), Informer: informers.podGroups, Delay: pacing.EventDelay},
		{
			Name:     kubeflow.KindAutoscaler,
			Client:   engine.ClientOf[*autoscalingv2.HorizontalPodAutoscaler, *autoscalingv2.HorizontalPodAutoscalerList](kube.AutoscalingV2().HorizontalPodAutoscalers),
			Informer: informers.autoscalers, Reduce: reduceToMetadata,
		},
	}
	if c.kind.configMaps {
		all = append(all, engine.Kind{Name: kubeflow.KindConfigMap, Client: adapter.ConfigMaps(kube), Informer: informers.configMaps, Reduce: reduceToMetadata})
	}
	all = adapter.Remembered(all, c.jobsOf)
	if c.kind.secrets {
		secrets := adapter.Secrets(kube, c.clients.Metadata)
		secrets.Reduce = reduceToMetadata
		all = append(all, secrets)
	}
	return all
}

// jobsOf returns the names of the jobs of this kind to which an object belongs, by its controller and by its labels.
// These may differ, because users may change either.
func (c *Core) jobsOf(object metav1.Object) []string {
	var names []string
	if labels := object.GetLabels(); labels[kubeflowv1.KeyOperatorName] == c.kind.operator {
		names = append(names, labels[kubeflowv1.KeyJobName])
	}
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil && owner.Kind == c.kind.name {
		names = append(names, owner.Name)
	}
	return names
}

// Kept returns what the API server keeps of a status.
func (c *Core) Kept(status, stored *kubeflowv1.JobStatus) *kubeflowv1.JobStatus {
	return kubeflow.Kept(status, stored)
}

// DecodeStatus reads a stored status.
func (c *Core) DecodeStatus(stored []byte) (*kubeflowv1.JobStatus, error) {
	return adapter.DecodeStatus[kubeflowv1.JobStatus](stored)
}

// Size returns the number of Pods in the spec or in the status, whichever is larger. Even for an invalid spec, the
// result is at most the number of Pods that a job may have.
func (c *Core) Size(job *Job, status *kubeflowv1.JobStatus) int {
	wanted, count := 0, 0
	for _, replicas := range job.Spec.Replicas {
		wanted += int(max(0, ptr.Deref(replicas.Replicas, 1)))
	}
	if status != nil {
		for _, statuses := range []map[string]kubeflowv1.ReplicaStatus{status.ReplicaStatuses, status.TFReplicaStatuses} {
			for _, s := range statuses {
				count += int(s.Active) + int(s.Succeeded) + int(s.Failed)
			}
		}
	}
	return min(max(wanted, count), kubeflowv1.MaxReplicas)
}

// Unwatched returns the Secret of an MPIJob that has not ended.
func (c *Core) Unwatched(job *Job, status *kubeflowv1.JobStatus) (kind, name string) {
	if !c.kind.secrets || kubeflow.IsFinished(status) {
		return "", ""
	}
	return kubeflow.KindSecret, kubeflow.SecretName(job.Job)
}

// Templates are those of all types of replicas.
func (c *Core) Templates(job *Job, status *kubeflowv1.JobStatus) []engine.Template {
	if kubeflow.IsFinished(status) {
		return nil
	}
	var templates []engine.Template
	for _, name := range jobpods.SortedKeys(job.Spec.Replicas) {
		templates = append(templates, engine.Template{
			Group: kubeflow.GroupOf(name), Path: fmt.Sprintf("spec.%s.%s.template", c.kind.replicas, name), JSON: job.Spec.Replicas[name].Template.Raw,
		})
	}
	return templates
}

// RefusesForGood reports whether the API server will never accept a Pod or a Service, so that the job, or its index,
// fails. That is so only if the error means that the object is invalid. After other refusals the job waits, because a
// user may fix the cause, and no retry policy would start the job again. A Service of an existing Pod never fails the
// job.
func (c *Core) RefusesForGood(action plan.Action, err error) bool {
	return (action.Kind == kubeflow.KindPod || action.Kind == kubeflow.KindService) && action.Tag != kubeflow.TriedAgain &&
		plan.RefusalOf(err) == plan.RefusedAsWrong
}

// State returns the label under which metrics count a job. Jobs that this controller does not run are not counted.
func (c *Core) State(status *kubeflowv1.JobStatus) string { return kubeflow.KnownState(status) }

// Turns are those of package kubeflow.
func (c *Core) Turns(job *Job, before, after *kubeflowv1.JobStatus, _ time.Time) []plan.Turn {
	return kubeflow.Turns(job.CreationTimestamp.Time, before, after)
}

// NewDecider begins to decide on a job.
func (c *Core) NewDecider() engine.Decider[*Job, kubeflowv1.JobStatus] {
	return adapter.NewDecider(c.snapshot, c.decide)
}
