// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	kubeflowv2beta1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v2beta1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
	"github.com/lockstep-k8s/lockstep/internal/podend"
)

// An MPIJob follows its launcher: the job runs when the launcher and all workers do, and ends with the launcher. Failed
// workers do not end the job, unless one was evicted. The launcher is retried like the batch/v1 Job that the MPI
// operator would create: as often as backoffLimit says, by default defaultTries times.
const defaultTries = 6

// validateMPI looks at what only MPIJobs have.
func validateMPI(spec *Spec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, replicas := range spec.Replicas {
		if policy := replicas.RestartPolicy; policy == kubeflowv1.RestartAlways || policy == kubeflowv1.RestartExitCode {
			errs = append(errs, field.Invalid(path.Child("mpiReplicaSpecs"), nil, "restartPolicy must be Never or OnFailure"))
			break
		}
	}
	mpi := spec.MPI
	if mpi == nil {
		return append(errs, field.Required(path, "nothing is said of MPI"))
	}
	errs = append(errs, jobpods.AtLeast(path.Child("slotsPerWorker"), int64(mpi.SlotsPerWorker), 0)...)
	if n := len(mpi.SSHAuthMountPath); n > maxMountPath {
		errs = append(errs, field.TooLong(path.Child("sshAuthMountPath"), "", maxMountPath))
	}
	errs = append(errs, jobpods.OneOf(path.Child("launcherCreationPolicy"), mpi.LauncherCreationPolicy,
		kubeflowv2beta1.LauncherCreationPolicyAtStartup, kubeflowv2beta1.LauncherCreationPolicyWaitForWorkersReady)...)
	return append(errs, jobpods.OneOf(path.Child("mpiImplementation"), mpi.Implementation,
		kubeflowv2beta1.MPIImplementationOpenMPI, kubeflowv2beta1.MPIImplementationIntel, kubeflowv2beta1.MPIImplementationMPICH)...)
}

// maxMountPath bounds the folder of the keys, as in the CRD.
const maxMountPath = 1024

// isLauncher reports whether a Pod of this name would be the launcher of an MPIJob.
func (d *decision) isLauncher(name string) bool {
	t, _ := d.kind.placeNamed(d.Job, name)
	return t != "" && d.kind.isUnnumbered(t)
}

// launchesLater reports whether the launcher is created only once all workers are ready. Then the launcher is no member
// of the gang: otherwise each would wait for the other.
func (b *builder) launchesLater() bool {
	mpi := b.job.Spec.MPI
	return mpi != nil && mpi.LauncherCreationPolicy == kubeflowv2beta1.LauncherCreationPolicyWaitForWorkersReady
}

// waitsForWorkers reports whether the launcher has to wait for workers. The launcher does not wait for a worker that
// has ended.
func (d *decision) waitsForWorkers() bool {
	if !d.builder.launchesLater() {
		return false
	}
	for _, r := range d.replicas {
		for index := range r.number {
			if !r.launches && !r.record.ended(index) && !isReady(r.pods[index]) {
				return true
			}
		}
	}
	return false
}

// isReady reports whether a Pod runs and is ready.
func isReady(pod *corev1.Pod) bool {
	return runs(pod) && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// allRun reports whether the launcher and all workers run.
func (d *decision) allRun() bool {
	return !slices.ContainsFunc(d.replicas, func(r *replicas) bool { return r.counts.active < r.number })
}

// isLaunchedAnew reports whether a failed Pod of an MPIJob is replaced: a launcher if it has tries left, a worker if
// its restart policy allows it and the worker was not evicted.
func (d *decision) isLaunchedAnew(r *replicas, pod *corev1.Pod) bool {
	if r.launches {
		return int64(r.record.restarts)+int64(jobpods.Restarts(pod))+int64(failuresOf(podend.Of(pod))) <= int64(d.tries())
	}
	return r.policy == kubeflowv1.RestartOnFailure && !isEvicted(pod)
}

// tries returns how often the launcher may fail and be tried again.
func (d *decision) tries() int32 { return ptr.Deref(d.Job.Spec.RunPolicy.BackoffLimit, defaultTries) }

func isEvicted(pod *corev1.Pod) bool { return podend.Of(pod).Cause == podend.CauseEvicted }

// noteLostWorker records that a worker has failed for good. If the worker was evicted, the job fails.
func (d *decision) noteLostWorker(pod *corev1.Pod) {
	if d.evicted == "" && isEvicted(pod) {
		d.evicted = "Worker " + pod.Name + " was evicted"
	}
}

// overTries returns a message if the kubelet has restarted the launcher's containers too often; otherwise "".
func (d *decision) overTries() string {
	for _, r := range d.replicas {
		if !r.launches || r.policy == kubeflowv1.RestartNever {
			continue
		}
		n := int64(r.record.restarts)
		if pod := r.pods[0]; pod != nil && !jobpods.HasEnded(pod) && !r.record.restarting.Has(0) && !r.record.ended(0) {
			n += int64(jobpods.Restarts(pod))
		}
		if n > 0 && n >= int64(d.tries()) {
			return fmt.Sprintf("%sthe launcher was restarted %d times, backoffLimit is %d", limitReached, n, d.tries())
		}
	}
	return ""
}

// configName is the name of the ConfigMap that all Pods of an MPIJob share, and SecretName that of the Secret.
func configName(job *Job) string { return job.Name + "-config" }
func SecretName(job *Job) string { return job.Name + "-ssh" }
