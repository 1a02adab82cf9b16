// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Labels and annotations of the Pods of a Job. Volcano's clients read them: they never
// change.
const (
	KeyJobName       = "volcano.sh/job-name"
	KeyJobNamespace  = "volcano.sh/job-namespace"
	KeyJobVersion    = "volcano.sh/job-version"
	KeyJobRetryCount = "volcano.sh/job-retry-count"
	// KeyTaskName is the name of the Pod's task.
	KeyTaskName  = "volcano.sh/task-spec"
	KeyTaskIndex = "volcano.sh/task-index"
	KeyQueueName = "volcano.sh/queue-name"
	// KeyPartitionID is the number of the Pod's partition in its task, from 0.
	KeyPartitionID  = "volcano.sh/partition-id"
	KeyTemplateUID  = "volcano.sh/template-uid"
	KeyNumaTopology = "volcano.sh/numa-topology-policy"
	// KeyGroupName names the gang of the Job's Pods as Volcano would.
	KeyGroupName = "scheduling.k8s.io/group-name"
)

// Labels and annotations that Pods take over from their Job.
const (
	KeyPreemptable       = "volcano.sh/preemptable"
	KeyCooldownTime      = "volcano.sh/cooldown-time"
	KeyRevocableZone     = "volcano.sh/revocable-zone"
	KeyJDBMinAvailable   = "volcano.sh/jdb-min-available"
	KeyJDBMaxUnavailable = "volcano.sh/jdb-max-unavailable"
)

// Plugins of a Job, in the order in which they change its Pods.
const (
	PluginEnv        = "env"
	PluginSvc        = "svc"
	PluginSSH        = "ssh"
	PluginTensorflow = "tensorflow"
	PluginPytorch    = "pytorch"
	PluginMPI        = "mpi"
	PluginRay        = "ray"
	PluginHcclrank   = "hcclrank"
)
