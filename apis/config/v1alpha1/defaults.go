// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// SetDefaults fills what a configuration leaves out. Times, counts and log
// switches default to FrameworkController's values; client rate, workers and
// compression deliberately do not, see the fields. What depends on the machine is
// left to SetConnectionDefaults, how to reach the API server, and to
// SetElectionDefaults.
func SetDefaults(c *ControllerConfiguration) {
	setDefault(&c.KubeClientQPS, 1000)
	setDefault(&c.KubeClientBurst, 2000)
	setDefault(&c.WorkerNumber, 16)
	setDefault(&c.LargeFrameworkCompression, true)

	setDefault(&c.CRDEstablishedCheckIntervalSec, 1)
	setDefault(&c.CRDEstablishedCheckTimeoutSec, 60)
	setDefault(&c.ObjectLocalCacheCreationTimeoutSec, 300)
	setDefault(&c.FrameworkCompletedRetainSec, 30*24*3600)
	setDefault(&c.FrameworkHistoryLimit, 10)
	setDefault(&c.FrameworkMinRetryDelaySecForTransientConflictFailed, 60)
	setDefault(&c.FrameworkMaxRetryDelaySecForTransientConflictFailed, 900)

	setDefault(&c.LogObjectSnapshot.Framework.OnFrameworkRetry, true)
	setDefault(&c.LogObjectSnapshot.Framework.OnFrameworkDeletion, true)
	setDefault(&c.LogObjectSnapshot.Task.OnTaskRetry, true)
	setDefault(&c.LogObjectSnapshot.Task.OnTaskDeletion, true)
	setDefault(&c.LogObjectSnapshot.Pod.OnPodDeletion, true)
	setMaskEnvDefaults(&c.LogObjectSnapshot.MaskEnv)

	if c.PodFailureSpec == nil {
		c.PodFailureSpec = DefaultPodFailureSpec()
	}
	for i := range c.PodFailureSpec {
		if c.PodFailureSpec[i].Type.Name == "" {
			c.PodFailureSpec[i].Type.Name = frameworkv1.CompletionTypeFailed
		}
	}

	setDefault(&c.GangSchedulerName, defaultGangScheduler)
	setDefault(&c.UnknownFields, UnknownFieldsWarn)
	setDefault(&c.StatusCoalesceWindow, metav1.Duration{Duration: 100 * time.Millisecond})
	setDefault(&c.PodBatchSize, 64)

	setDefault(&c.VolcanoJobs.Enabled, false)

	setKubeflowJobsDefaults(&c.KubeflowJobs, *c.GangSchedulerName)

	setDefault(&c.Kueue.Enabled, false)

	setDefault(&c.Tracing.Endpoint, "")
}

const defaultGangScheduler = "lockstep-scheduler"

func setKubeflowJobsDefaults(jobs *KubeflowJobs, gangScheduler string) {
	setDefault(&jobs.Enabled, false)
	setDefault(&jobs.TakeJobs, TakeJobsManaged)
	setDefault(&jobs.ForeignCRDs, false)
	if jobs.SchedulerNames == nil {
		jobs.SchedulerNames = []string{gangScheduler}
	}
	setDefault(&jobs.Gang, GangAuto)
	setDefault(&jobs.Services, ServicesPerReplica)
	setDefault(&jobs.CustomClusterDomain, "")
	setDefault(&jobs.PyTorchInitImage, "lockstep.dev/frameworkbarrier:dev")
	setDefault(&jobs.PyTorchInitMaxTries, 100)
	setDefault(&jobs.ReconcilerSyncLoopPeriod, metav1.Duration{Duration: 15 * time.Second})
}

func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = ptr.To(value)
	}
}
