// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcanojobs

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/adapter"
	"github.com/lockstep-k8s/lockstep/controller/engine"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/pacing"
	"github.com/lockstep-k8s/lockstep/controller/volcano"
)

// Core is the engine's core of Volcano Jobs.
type Core struct {
	engine.Defaults[*Job, batchv1alpha1.JobStatus]

	clients adapter.Clients
	options volcano.Options

	pods, podGroups, configMaps, commands cache.SharedIndexInformer
	// volcanoGroups need not be served.
	volcanoGroups *servedOrNot
	// metadataOf are informers, by kind, that cache only metadata.
	metadataOf map[string]cache.SharedIndexInformer
	// jobs is set once the engine has it.
	jobs cache.SharedIndexInformer
	// informers starts all informers except those of PodGroups and Jobs.
	informers adapter.Informers

	// decide is volcano.Decide.
	decide func(volcano.Snapshot, time.Time) (plan.Plan[batchv1alpha1.JobStatus], volcano.Memory)
}

// Owners are Jobs at work.
type Owners = engine.Owners[*Job, batchv1alpha1.JobStatus]

// New returns the core. config must be valid, have its defaults, and enable Volcano Jobs. The caller starts the
// informer of PodGroups, which is shared, and adds engine.OwnerIndex to it.
func New(clients adapter.Clients, podGroups cache.SharedIndexInformer, config *configv1alpha1.ControllerConfiguration) (*Core, error) {
	c := &Core{
		clients: clients,
		options: volcano.Options{
			GangSchedulerName: *config.GangSchedulerName,
			SchedulerNames:    config.VolcanoJobs.SchedulerNames,
			Manager:           engine.FieldManager,
			Tiers:             config.VolcanoJobs.TopologyTiers,
			Keys:              adapter.RSAKeys,
		},
		podGroups: podGroups,
		decide:    volcano.Decide,
	}
	return c, c.newInformers(config.Namespaces)
}

// byClaim is the index of Jobs by the keys of the PersistentVolumeClaims that they use.
const byClaim = "claim"

// AddTo adds Jobs to an engine.
func (c *Core) AddTo(e *engine.Engine) (*Owners, error) {
	owners, err := engine.Add(e, c)
	if err != nil {
		return nil, err
	}
	c.jobs = owners.Informer()
	return owners, c.jobs.AddIndexers(cache.Indexers{byClaim: indexByClaim})
}

// indexByClaim has Jobs by the claims that they name.
func indexByClaim(object any) ([]string, error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return nil, err
	}
	job, ok := accessor.(*Job)
	if !ok {
		return nil, fmt.Errorf("indexing a Job: got a %T", accessor)
	}
	var keys []string
	for _, name := range claimsNamedBy(job) {
		keys = append(keys, cache.NewObjectName(job.Namespace, name).String())
	}
	return keys, nil
}

// Start starts all informers except those of PodGroups and Jobs.
func (c *Core) Start(ctx context.Context) { c.informers.Start(ctx) }

// Resource describes the API resource of Jobs. The resource is optional: Frameworks don't wait until the API server
// serves it.
func (c *Core) Resource() engine.Resource {
	return engine.Resource{
		GroupVersionKind: batchv1alpha1.JobGroupVersionKind,
		Plural:           batchv1alpha1.JobPlural,
		API:              c.clients.Lockstep.BatchV1alpha1().RESTClient(),
		Optional:         true,
	}
}

// Kinds returns the kinds of objects of a Job, and Commands. The engine has to remember the objects that it wrote
// (Kind.Remembers), because the status records no UIDs.
func (c *Core) Kinds() []engine.Kind {
	kube := c.clients.Kube
	kinds := []engine.Kind{
		{Name: volcano.KindPod, Client: adapter.Pods(kube), Informer: c.pods, Delay: pacing.EventDelay, Reduce: reducePod},
		{Name: volcano.KindPodGroup, Client: adapter.PodGroups(c.clients.Lockstep), Informer: c.podGroups, Delay: pacing.EventDelay},
		{Name: volcano.KindConfigMap, Client: adapter.ConfigMaps(kube), Informer: c.configMaps, Reduce: reduceConfigMap},
		{Name: volcano.KindService, Client: adapter.Services(kube), Informer: c.metadataOf[volcano.KindService], Reduce: reduceToMetadata},
		{
			Name:     volcano.KindNetworkPolicy,
			Client:   engine.ClientOf[*networkingv1.NetworkPolicy, *networkingv1.NetworkPolicyList](kube.NetworkingV1().NetworkPolicies),
			Informer: c.metadataOf[volcano.KindNetworkPolicy], Reduce: reduceToMetadata,
		},
		{
			Name:     volcano.KindClaim,
			Client:   engine.ClientOf[*corev1.PersistentVolumeClaim, *corev1.PersistentVolumeClaimList](kube.CoreV1().PersistentVolumeClaims),
			Informer: c.metadataOf[volcano.KindClaim], OwnersOf: c.jobsOfClaim, Reduce: reduceToMetadata,
		},
		{
			Name:     volcano.KindCommand,
			Client:   engine.ClientOf[*busv1alpha1.Command, *busv1alpha1.CommandList](c.clients.Lockstep.BusV1alpha1().Commands),
			Informer: c.commands, OwnersOf: jobOfCommand, Reduce: reduceCommand,
		},
	}
	secrets := adapter.Secrets(kube, c.clients.Metadata)
	secrets.Reduce = reduceToMetadata
	return append(adapter.Remembered(kinds, jobsOf), secrets, engine.Kind{Name: "PodGroup of Volcano", Informer: c.volcanoGroups, OwnersOf: jobsOf, Optional: true})
}

// jobsOf returns the names of the Jobs to which an object belongs, by its controller, its label and an annotation.
// These may differ, because users may change them.
func jobsOf(object metav1.Object) []string {
	names := []string{object.GetLabels()[batchv1alpha1.KeyJobName], object.GetAnnotations()[batchv1alpha1.KeyJobName]}
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil && owner.Kind == batchv1alpha1.JobKind {
		names = append(names, owner.Name)
	}
	return names
}

// jobsOfClaim returns the names of the Jobs for which a PersistentVolumeClaim was created, or which use it.
func (c *Core) jobsOfClaim(object metav1.Object) []string {
	names := jobsOf(object)
	naming, err := c.jobs.GetIndexer().ByIndex(byClaim, cache.MetaObjectToName(object).String())
	if err != nil {
		return names
	}
	for _, job := range naming {
		if accessor, err := meta.Accessor(job); err == nil {
			names = append(names, accessor.GetName())
		}
	}
	return names
}

// DecodeStatus reads a stored status.
func (c *Core) DecodeStatus(stored []byte) (*batchv1alpha1.JobStatus, error) {
	return adapter.DecodeStatus[batchv1alpha1.JobStatus](stored)
}

// Size returns the number of Pods in the spec or in the status, whichever is larger. Even for an invalid spec, the
// result is at most the number of Pods that a Job may have.
func (c *Core) Size(job *Job, status *batchv1alpha1.JobStatus) int {
	wanted, count := 0, 0
	for i := range job.Spec.Tasks {
		wanted += int(max(0, job.Spec.Tasks[i].Replicas))
	}
	if status != nil {
		for _, n := range []int32{status.Pending, status.Running, status.Succeeded, status.Failed, status.Terminating, status.Unknown} {
			count += int(n)
		}
		count = max(count, int(status.MinAvailable))
	}
	return min(max(wanted, count), batchv1alpha1.MaxReplicas)
}

// Templates are those of the tasks.
func (c *Core) Templates(job *Job, status *batchv1alpha1.JobStatus) []engine.Template {
	if volcano.IsFinal(status) {
		return nil
	}
	templates := make([]engine.Template, len(job.Spec.Tasks))
	for i := range job.Spec.Tasks {
		task := &job.Spec.Tasks[i]
		templates[i] = engine.Template{
			Group: volcano.TaskName(task, i), Path: fmt.Sprintf("spec.tasks[%d].template", i), JSON: task.Template.Raw,
		}
	}
	return templates
}

// Unwatched returns the Secret of the plugin ssh. Unwatched does so for a Job that is over, too, because the Secret is
// deleted then.
func (c *Core) Unwatched(job *Job, _ *batchv1alpha1.JobStatus) (kind, name string) {
	return volcano.KindSecret, volcano.SSHSecretOf(job.Job)
}

// State returns the label under which metrics count a Job. Jobs that this controller does not run are not counted.
func (c *Core) State(status *batchv1alpha1.JobStatus) string { return volcano.KnownPhase(status) }

// Turns are those of package volcano.
func (c *Core) Turns(job *Job, before, after *batchv1alpha1.JobStatus, _ time.Time) []plan.Turn {
	return volcano.Turns(job.CreationTimestamp.Time, before, after)
}

// NewDecider begins to decide on a Job.
func (c *Core) NewDecider() engine.Decider[*Job, batchv1alpha1.JobStatus] {
	return adapter.NewDecider(c.snapshot, func(s volcano.Snapshot, now time.Time, _ plan.Entropy) (plan.Plan[batchv1alpha1.JobStatus], volcano.Memory) {
		return c.decide(s, now)
	})
}
