// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// Kinds of objects in actions. The job itself has its own kind, for instance TFJob.
const (
	KindPod        = "Pod"
	KindService    = "Service"
	KindPodGroup   = "PodGroup"
	KindAutoscaler = "HorizontalPodAutoscaler"
	KindConfigMap  = "ConfigMap"
	KindSecret     = "Secret"
)

// Snapshot is the whole input of a decision about one job. Decide does not change it.
type Snapshot struct {
	// Job gives metadata and spec.
	Job *Job
	plan.Known[kubeflowv1.JobStatus]
	// Memory is the Memory that the last decision returned. It may be empty.
	Memory Memory

	// Pods, Services, PodGroups and Autoscalers are the objects that the job controls, by name. Pods have what
	// KeepOfPod keeps. Of Services and Autoscalers nothing but the metadata is read.
	Pods        map[string]*corev1.Pod
	Services    map[string]metav1.Object
	PodGroups   map[string]*schedulingv1alpha1.PodGroup
	Autoscalers map[string]metav1.Object

	// ConfigMaps with lists of hosts, and Secrets of an MPIJob, are also objects that the job controls. Only their
	// metadata is read. Nil for kinds that have none.
	ConfigMaps, Secrets map[string]metav1.Object

	Options Options
}

// Options are the controller's settings that decisions depend on.
type Options struct {
	// TakeJobs says which jobs are taken.
	TakeJobs TakeJobs
	// Namespaces are the namespaces with jobs that are taken. Empty for all.
	Namespaces map[string]bool
	// GangSchedulerName is the scheduler that places PodGroups.
	GangSchedulerName string
	// SchedulerNames are the scheduler names by which a template shows that this controller runs the job.
	SchedulerNames []string
	// GangAlways makes a gang of every job.
	GangAlways bool
	// ForeignCRDs allows jobs to begin although the API server does not store their whole status, because their CRD is
	// another product's.
	ForeignCRDs bool
	// Manager is the name under which the controller writes statuses.
	Manager string
	// Services is the ServiceMode for jobs that do not choose one themselves. Empty means one Service for each Pod.
	Services kubeflowv1.ServiceMode
	// ClusterDomain follows .svc in addresses. Empty for none.
	ClusterDomain string
	// InitImage is the image of the container in which PyTorch workers wait for the master, and InitMaxTries is how
	// often that container looks the master up. InitCommand, if set, replaces the command of the image.
	InitImage    string
	InitCommand  []string
	InitMaxTries int
	// ReconcilePeriod is the first and shortest period between two lists of a v1alpha2 job's objects.
	ReconcilePeriod time.Duration
	// MaxInline is the length, in bytes, of the longest list of addresses that is written into each Pod. A longer list
	// is kept in a ConfigMap. 0 means DefaultMaxInline.
	MaxInline int
	// Keys makes the keys by which Pods of an MPIJob log into each other.
	Keys jobpods.KeyMaker
}

// TakeJobs selects the jobs that a controller takes, in addition to jobs whose managedBy names Lockstep.
type TakeJobs string

const (
	// TakeManaged takes no others.
	TakeManaged TakeJobs = "Managed"
	// TakeScheduler also takes jobs of the training operator with a template that names one of Options.SchedulerNames.
	TakeScheduler TakeJobs = "Scheduler"
	// TakeAll takes all of the training operator's.
	TakeAll TakeJobs = "All"
)

// Defaults of Options.
const (
	DefaultInitImage       = "lockstep.dev/frameworkbarrier:dev"
	DefaultInitMaxTries    = 100
	DefaultReconcilePeriod = 15 * time.Second
	// maxReconcilePeriod is the longest, for a job without any event.
	maxReconcilePeriod = 5 * time.Minute
)

// Memory prevents repeated reports about a job, and holds facts that no object shows. It is empty when a controller
// starts.
type Memory struct {
	// Told are the reported events that still hold.
	Told plan.Told
	// Awaited are the names of new Pods that replace others and have not run yet; nil if this controller does not know.
	Awaited map[string]bool
	// Missing are the names of Pods and Services that were to be created, and Going the names of Pods and Services that
	// were to be deleted.
	Missing, Going map[objectKey]bool
	// looked reports that the job's Pods were listed from the API server before the job was begun.
	looked bool
	// crd is when the controller checks again whether the CRD stores the whole status.
	crd crdLook
	// reconciler is when a job of v1alpha2 is looked at.
	reconciler reconciler
	// hostsTold is when the list of running workers of an MPIJob was last rewritten.
	hostsTold time.Time
	// missingClass is the PriorityClass of the schedulingPolicy, if it was found not to exist.
	missingClass string
	// ahead has, for times in the status (in seconds since 1970) that were in the future when first seen, when that
	// was.
	ahead map[int64]time.Time
	// reading is what the spec means.
	reading *reading
	// keys are those of the Secret of an MPIJob, until it is there.
	keys jobpods.KeyMaker
}

// objectKey is a kind and a name.
type objectKey struct{ kind, name string }
