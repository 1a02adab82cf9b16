// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// ControllerConfiguration is the controller's configuration file. The keys are those of FrameworkController's
// frameworkcontroller.yaml, which is accepted unchanged, and Lockstep's own below. apiVersion and kind may be left
// out.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ControllerConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// kubeApiServerAddress is the API server, http[s]://host:port. This overrides the server of the kubeconfig. Default:
	// environment variable KUBE_APISERVER_ADDRESS, else empty.
	KubeAPIServerAddress *string `json:"kubeApiServerAddress,omitempty"`

	// kubeConfigFilePath is the kubeconfig. Default: environment variable
	// KUBECONFIG if that file exists, else $HOME/.kube/config if it exists, else
	// the service account of the Pod that the controller runs in.
	KubeConfigFilePath *string `json:"kubeConfigFilePath,omitempty"`

	// kubeClientQps is how many requests a second the controller may send, more than 0 and at most 10000. One budget
	// holds for all requests, reads and writes of any kind; only the leader election has another. Default 1000: the API
	// server's priority and fairness protects the server better than a client can.
	KubeClientQPS *float32 `json:"kubeClientQps,omitempty"`

	// kubeClientBurst is how many requests may be sent at once after a pause, 0 to 10000. 0 sends requests one by one,
	// as 1 does. Default 2000.
	KubeClientBurst *int32 `json:"kubeClientBurst,omitempty"`

	// workerNumber is how many Frameworks are synced at the same time, more than 0. A sync with slow requests goes on
	// without a worker, which takes the next. Default 16: with hundreds, Frameworks that start together go through each
	// step together, and all finish late.
	WorkerNumber *int32 `json:"workerNumber,omitempty"`

	// largeFrameworkCompression stores task statuses of 700 KiB and more
	// compressed. Default true.
	LargeFrameworkCompression *bool `json:"largeFrameworkCompression,omitempty"`

	// crdEstablishedCheckIntervalSec is how often, in seconds, at least 1, the
	// controller looks at start whether the CRDs are there. Default 1.
	CRDEstablishedCheckIntervalSec *int64 `json:"crdEstablishedCheckIntervalSec,omitempty"`

	// crdEstablishedCheckTimeoutSec is how many seconds, at least 10, the controller looks before giving up. Default 60.
	CRDEstablishedCheckTimeoutSec *int64 `json:"crdEstablishedCheckTimeoutSec,omitempty"`

	// objectLocalCacheCreationTimeoutSec is how many seconds, at least 60, a created ConfigMap or Pod may take to be
	// seen before the controller looks for the object; the attempt ends with code -110 or -111 if the object is gone.
	// Default 300.
	ObjectLocalCacheCreationTimeoutSec *int64 `json:"objectLocalCacheCreationTimeoutSec,omitempty"`

	// frameworkCompletedRetainSec is how many seconds a Completed Framework is kept; 0 or less deletes at once. Default
	// 2592000, 30 days.
	FrameworkCompletedRetainSec *int64 `json:"frameworkCompletedRetainSec,omitempty"`

	// frameworkHistoryLimit is how many attempts that are over status.history of a
	// Framework keeps at most, 0 to 20. Each takes 1.5 KiB at most,
	// half a KiB in general. A lower limit counts when the next attempt is over. Default 10.
	FrameworkHistoryLimit *int32 `json:"frameworkHistoryLimit,omitempty"`

	// frameworkMinRetryDelaySecForTransientConflictFailed is the least delay, in
	// seconds, at least 0, before an attempt that failed with Transient and
	// Conflict is retried. Default 60.
	FrameworkMinRetryDelaySecForTransientConflictFailed *int64 `json:"frameworkMinRetryDelaySecForTransientConflictFailed,omitempty"`

	// frameworkMaxRetryDelaySecForTransientConflictFailed is the largest such
	// delay, at least the least one. Default 900.
	FrameworkMaxRetryDelaySecForTransientConflictFailed *int64 `json:"frameworkMaxRetryDelaySecForTransientConflictFailed,omitempty"`

	// logObjectSnapshot says which object snapshots are logged.
	LogObjectSnapshot LogObjectSnapshot `json:"logObjectSnapshot,omitzero"`

	// podFailureSpec classifies failed Pods, in order, after the predefined
	// container codes 200, 201 and 210. Default: see DefaultPodFailureSpec. Even
	// an empty list replaces the default.
	PodFailureSpec []CompletionCodeInfo `json:"podFailureSpec,omitempty"`

	// gangSchedulerName is the scheduler that places PodGroups. A Framework with a role that names this scheduler in the
	// template is a gang. Default "lockstep-scheduler".
	GangSchedulerName *string `json:"gangSchedulerName,omitempty"`

	// unknownFields says what becomes of a Pod template, of jobs of any kind, with fields that the API server does not
	// know: the API server drops such fields in silence, so that "resurces" runs without requests. With Warn the Pods
	// are created, and an event and a condition name the fields. With Refuse no Pods are created from the template until
	// the field is corrected; Pods that run go on. Templates that the API server can't check are used unchanged. Default
	// Warn.
	UnknownFields *UnknownFields `json:"unknownFields,omitempty"`

	// statusCoalesceWindow is how long a change of status that gates nothing waits for others at least, 0s to 1m, in a
	// Framework of up to 200 tasks. A larger one has a proportionally longer window, so that the number of writes hardly
	// grows with the tasks. While changes go on, writes wait longer and longer: for 100 times this at most, or for 20
	// windows of its own in a larger Framework. Default 100ms.
	StatusCoalesceWindow *metav1.Duration `json:"statusCoalesceWindow,omitempty"`

	// podBatchSize is how many Pods of one Framework may be created or deleted at
	// the same time, 1 to 1000. Default 64.
	PodBatchSize *int32 `json:"podBatchSize,omitempty"`

	// volcanoJobs has Volcano Jobs run, beside Frameworks.
	VolcanoJobs VolcanoJobs `json:"volcanoJobs,omitzero"`

	// kubeflowJobs has training jobs of Kubeflow run, beside Frameworks.
	KubeflowJobs KubeflowJobs `json:"kubeflowJobs,omitzero"`

	// kueue has Frameworks wait in queues of Kueue.
	Kueue Kueue `json:"kueue,omitzero"`

	// namespaces are those in which anything is run: Frameworks, jobs and PodGroups of others
	// are never read. In each the controller needs a Role, and in the cluster very little. At
	// most 100, each once, each a DNS label. Default none, which is all.
	Namespaces []string `json:"namespaces,omitempty"`

	// tracing sends traces of Frameworks to a collector.
	Tracing Tracing `json:"tracing,omitzero"`

	// leaderElection lets several replicas run, one of which is active.
	LeaderElection LeaderElection `json:"leaderElection,omitzero"`
}

// Kueue says whether Frameworks wait in queues of Kueue.
type Kueue struct {
	// enabled lets a Framework with the label kueue.x-k8s.io/queue-name wait until Kueue admits it, and give way after
	// an eviction. Default false: the label means nothing.
	Enabled *bool `json:"enabled,omitempty"`
}

// Tracing says where traces of Frameworks go.
type Tracing struct {
	// endpoint is the URL at which a collector of OpenTelemetry takes traces, OTLP over HTTP: http[s]://host:port/path,
	// with at most 1024 characters; the path is v1/traces for most. Headers and certificates come from the environment of the
	// controller, OTEL_EXPORTER_OTLP_HEADERS, OTEL_EXPORTER_OTLP_CERTIFICATE and so on. Default none:
	// there are no traces.
	Endpoint *string `json:"endpoint,omitempty"`
}

// VolcanoJobs says whether Jobs of batch.volcano.sh are run, and which.
type VolcanoJobs struct {
	// enabled runs these Jobs. Default false.
	Enabled *bool `json:"enabled,omitempty"`

	// schedulerNames are those of the Jobs that are run. The name of a Job is spec.schedulerName; if that is empty, the
	// common name of all templates; else empty. Other Jobs are never touched. Pods of these Jobs are placed by
	// gangSchedulerName, whichever of these names they have. At least one and at most 16, each once, each empty or a DNS
	// subdomain of at most 63 characters. Required if enabled: gangSchedulerName alone if Volcano runs in the cluster,
	// too; also "volcano" and "" if not, so that Jobs written for Volcano run unchanged.
	SchedulerNames []string `json:"schedulerNames,omitempty"`

	// topologyTiers maps tiers of the network, by number or name as in networkTopology of a Job, to labels of nodes:
	// {"1": example.com/rack}. At most 64. Default none: then a Job that asks for a tier strictly is not placed.
	TopologyTiers map[string]string `json:"topologyTiers,omitempty"`
}

// KubeflowJobs says whether training jobs of kubeflow.org are run, which, and how.
type KubeflowJobs struct {
	// enabled runs these jobs. Default false.
	Enabled *bool `json:"enabled,omitempty"`

	// takeJobs says which jobs are run. Managed: jobs with runPolicy.managedBy lockstep.dev/kubeflow. Scheduler: also
	// jobs of the training operator, with managedBy absent, empty or kubeflow.org/training-operator, that have a
	// template with one of schedulerNames. All: those, and all that are the training operator's. All others are never
	// touched. Default Managed. The other two are only for namespaces in which no training operator runs.
	TakeJobs *TakeJobs `json:"takeJobs,omitempty"`

	// foreignCRDs also runs jobs with a CRD that is not Lockstep's and does not keep all of the status, as the training
	// operator's: restarts and what has ended are known then as long as the Pods are there. Otherwise such jobs are left
	// alone, and an event says so. Default false.
	ForeignCRDs *bool `json:"foreignCRDs,omitempty"`

	// namespaces are the namespaces with jobs to run. At most 1000, each once, each a DNS label. Default none, which is
	// all.
	Namespaces []string `json:"namespaces,omitempty"`

	// schedulerNames are those by which a template shows, with takeJobs: Scheduler, that the job is Lockstep's. At least
	// one and at most 16, each once, each a DNS subdomain of at most 63 characters. Default: gangSchedulerName.
	SchedulerNames []string `json:"schedulerNames,omitempty"`

	// gang says which jobs are gangs, with Pods that start together. Auto: jobs with a runPolicy.schedulingPolicy, or
	// with a template that names gangSchedulerName. Always: all. Default Auto.
	Gang *GangMode `json:"gang,omitempty"`

	// services says by how many headless Services the Pods of a job are reached. PerReplica: each by a separate Service,
	// as with the training operator. PerJob: by one of the job, which is far less work for jobs of hundreds of Pods;
	// such names are longer. The annotation kubeflow.lockstep.dev/services of a job takes precedence. A change counts
	// from the next start of a job on. TFJobs of v1alpha2 and MPIJobs are not affected. Default PerReplica.
	Services *ServiceMode `json:"services,omitempty"`

	// customClusterDomain follows .svc in the addresses of TF_CONFIG and of the arguments of
	// v1alpha2, as cluster.local does. Empty, or a DNS subdomain. Default empty.
	CustomClusterDomain *string `json:"customClusterDomain,omitempty"`

	// pytorchInitImage is the image of the init container in which workers of a PyTorchJob wait until the master's name
	// can be looked up: the image frameworkbarrier that you have pushed. All nodes must be able to pull the image. 1 to
	// 1024 characters without spaces. Default "lockstep.dev/frameworkbarrier:dev".
	PyTorchInitImage *string `json:"pytorchInitImage,omitempty"`

	// pytorchInitCommand takes the place of the program of the image, for another image. The variables
	// MASTER_ADDR and MAX_TRIES have the name and pytorchInitMaxTries. At most 16 strings, of at most
	// 4096 bytes each. Default none: the image is run with the arguments resolve --tries={tries} {name}.
	PyTorchInitCommand []string `json:"pytorchInitCommand,omitempty"`

	// pytorchInitMaxTries is how often workers look, 2 seconds apart, before a failure: 1 to 1000000. Default 100.
	PyTorchInitMaxTries *int32 `json:"pytorchInitMaxTries,omitempty"`

	// reconcilerSyncLoopPeriod is the time between comparisons of a TFJob of v1alpha2 with the Pods and Services, 1s to
	// 5m. Each time that finds nothing to do the wait doubles, up to 5m. Default 15s.
	ReconcilerSyncLoopPeriod *metav1.Duration `json:"reconcilerSyncLoopPeriod,omitempty"`
}

// UnknownFields says what becomes of Pod templates with fields that the API server does not know.
type UnknownFields string

// Values of UnknownFields.
const (
	UnknownFieldsWarn   UnknownFields = "Warn"
	UnknownFieldsRefuse UnknownFields = "Refuse"
)

// TakeJobs says which training jobs of Kubeflow are run.
type TakeJobs string

// Values of TakeJobs.
const (
	TakeJobsManaged   TakeJobs = "Managed"
	TakeJobsScheduler TakeJobs = "Scheduler"
	TakeJobsAll       TakeJobs = "All"
)

// GangMode says which training jobs of Kubeflow are gangs.
type GangMode string

// Values of GangMode.
const (
	GangAuto   GangMode = "Auto"
	GangAlways GangMode = "Always"
)

// ServiceMode says by how many Services the Pods of a training job are reached.
type ServiceMode string

// Values of ServiceMode.
const (
	ServicesPerReplica ServiceMode = "PerReplica"
	ServicesPerJob     ServiceMode = "PerJob"
)

// LogObjectSnapshot says which object snapshots are logged, all by default, and what is masked there.
type LogObjectSnapshot struct {
	// framework snapshots.
	Framework LogFrameworkSnapshot `json:"framework,omitzero"`
	// task snapshots.
	Task LogTaskSnapshot `json:"task,omitzero"`
	// pod snapshots.
	Pod LogPodSnapshot `json:"pod,omitzero"`
	// maskEnv says which values of environment variables are masked.
	MaskEnv MaskEnv `json:"maskEnv,omitzero"`
}

// MaskEnv says which values of environment variables are masked.
type MaskEnv struct {
	// policy is ByName, All or None. Default ByName.
	Policy *MaskEnvPolicy `json:"policy,omitempty"`
	// nameFragments choose the variables of policy ByName: variables with one of these in the name, in upper or lower
	// case. At least one, none empty, and only with that policy. Default: see DefaultMaskedNameFragments.
	NameFragments []string `json:"nameFragments,omitempty"`
}

// MaskEnvPolicy is a way to choose the environment variables that are masked.
type MaskEnvPolicy string

const (
	// MaskEnvByName masks variables with names that look like those of secrets.
	MaskEnvByName MaskEnvPolicy = "ByName"
	// MaskEnvAll masks every variable.
	MaskEnvAll MaskEnvPolicy = "All"
	// MaskEnvNone masks no variable.
	MaskEnvNone MaskEnvPolicy = "None"
)

// LogFrameworkSnapshot says when a Framework is logged.
type LogFrameworkSnapshot struct {
	// onFrameworkRetry logs the Framework before a retry.
	OnFrameworkRetry *bool `json:"onFrameworkRetry,omitempty"`
	// onFrameworkDeletion logs the Framework when it was, or is about to be, deleted.
	OnFrameworkDeletion *bool `json:"onFrameworkDeletion,omitempty"`
}

// LogTaskSnapshot says when a task is logged.
type LogTaskSnapshot struct {
	// onTaskRetry logs the task before a retry.
	OnTaskRetry *bool `json:"onTaskRetry,omitempty"`
	// onTaskDeletion logs the task when a rescale deletes it.
	OnTaskDeletion *bool `json:"onTaskDeletion,omitempty"`
}

// LogPodSnapshot says when a Pod is logged.
type LogPodSnapshot struct {
	// onPodDeletion logs the Pod after its deletion.
	OnPodDeletion *bool `json:"onPodDeletion,omitempty"`
}

// LeaderElection lets several replicas run, one of which is active.
type LeaderElection struct {
	// enabled turns the election on. Default true in a Pod, as a Deployment may run several, and false elsewhere.
	Enabled *bool `json:"enabled,omitempty"`
	// namespace of the Lease. Default the namespace of the controller's Pod, if the API server is reached by the service
	// account, else "lockstep-system".
	Namespace *string `json:"namespace,omitempty"`
	// name of the Lease. Default "lockstep-controller".
	Name *string `json:"name,omitempty"`
}

// CompletionCodeInfo names a kind of Pod failure and the matching Pods.
type CompletionCodeInfo struct {
	// code of the failure: at most -1000, 1 to 199, or at least 220. Unique.
	Code *frameworkv1.CompletionCode `json:"code"`
	// phrase is the name of the failure.
	Phrase string `json:"phrase,omitempty"`
	// type is the known nature of the failure. The name is Failed, also if left out.
	Type frameworkv1.CompletionType `json:"type,omitzero"`
	// podPatterns match if any of the patterns does. At least one.
	PodPatterns []*PodPattern `json:"podPatterns,omitempty"`
}

// PodPattern matches a failed Pod if all parts do. An empty one fits every failed Pod. Regular expressions are RE2
// and search anywhere.
type PodPattern struct {
	// nameRegex fits the Pod's name.
	NameRegex string `json:"nameRegex,omitempty"`
	// reasonRegex fits status.reason.
	ReasonRegex string `json:"reasonRegex,omitempty"`
	// messageRegex fits status.message.
	MessageRegex string `json:"messageRegex,omitempty"`
	// containers each fit some container, init containers too.
	Containers []*ContainerPattern `json:"containers,omitempty"`
}

// ContainerPattern matches a terminated container if all parts do.
type ContainerPattern struct {
	// nameRegex fits the container's name.
	NameRegex string `json:"nameRegex,omitempty"`
	// reasonRegex matches the reason of the end.
	ReasonRegex string `json:"reasonRegex,omitempty"`
	// messageRegex matches the message of the end.
	MessageRegex string `json:"messageRegex,omitempty"`
	// signalRange contains the signal of the end.
	SignalRange Int32Range `json:"signalRange,omitzero"`
	// codeRange contains the exit code.
	CodeRange Int32Range `json:"codeRange,omitzero"`
}

// Int32Range is a range of numbers, both ends inclusive. An omitted end is no bound; without both the range is unset.
type Int32Range struct {
	// min is the least number.
	Min *int32 `json:"min,omitempty"`
	// max is the largest number, at least min.
	Max *int32 `json:"max,omitempty"`
}
