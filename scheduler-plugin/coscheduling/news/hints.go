// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package news

import (
	"slices"
	"time"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/times"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// Some tools make a group wait for Pods that the tool creates only once others of the group run. Such a gang waits for
// ever, and its condition only shows that Pods are missing. The kind of the group's owner shows which tool made the
// group, so the condition names the tool's usual mistake.

// hintAfter is how long no further member must have come before the condition names the likely cause. Pods of one job
// usually come within seconds.
const hintAfter = time.Minute

// likelyCause begins the part of a message that names a likely cause.
const likelyCause = "the likely cause: "

// exclusive and exclusiveJobs are annotations that give a domain of its own to each replica of a LeaderWorkerSet, and
// to each Job of a JobSet. preselected is the annotation that says that JobSet need not find the domain itself.
// roleOfJob is the label by which Kubeflow's operators mark launchers and workers.
const (
	exclusive     = "leaderworkerset.sigs.k8s.io/exclusive-topology"
	exclusiveJobs = "alpha.jobset.sigs.k8s.io/exclusive-topology"
	preselected   = "alpha.jobset.sigs.k8s.io/node-selector"
	roleOfJob     = "training.kubeflow.org/job-role"
)

// orStages is additional advice where members come only after others have run.
const orStages = ". Or have it start in stages, by the annotation " + schedulingv1alpha1.AnnotationStaged + `: "true" on its Pods`

// causes are the likely causes for missing members. The first that fits is named.
var causes = []struct {
	fits   func(g *Gang) bool
	likely string
}{
	{
		fits: func(g *Gang) bool {
			return slices.ContainsFunc(g.Pods, func(p Pod) bool { return p.Pod.Annotations[exclusive] != "" })
		},
		likely: "with exclusive topology LeaderWorkerSet makes workers only once their leader has a node: leave out exclusive topology, or set startupPolicy LeaderReady and ask for the leader alone" + orStages,
	},
	{
		fits: func(g *Gang) bool {
			return slices.ContainsFunc(g.Pods, func(p Pod) bool {
				return p.Pod.Annotations[exclusiveJobs] != "" && p.Pod.Annotations[preselected] == ""
			})
		},
		likely: "with exclusive topology JobSet makes the other Pods of a Job only once the first one has a node: leave out exclusive topology" + orStages,
	},
	{
		fits:   func(g *Gang) bool { return g.Key.Dialect == dialect.Own && g.Group.MadeFor == "Job" },
		likely: "Kubernetes makes all Pods of a Job at once, unless something like a quota keeps it from that: the events of the Job say what. Or some of them have scheduling gates",
	},
	{
		fits: func(g *Gang) bool {
			return g.Group.MadeFor == "MPIJob" && !slices.ContainsFunc(g.Pods, func(p Pod) bool { return p.Pod.Labels[roleOfJob] != "worker" })
		},
		likely: "with launcherCreationPolicy WaitForWorkersReady mpi-operator makes the launcher only once the workers run: set runPolicy.schedulingPolicy.minAvailable to the number of workers" + orStages,
	},
	{
		fits:   func(g *Gang) bool { return g.Group.MadeFor == "TrainJob" },
		likely: "Trainer counts the Pods of all steps, and a step that depends on another, as the nodes on an initializer or an MPI launcher on the nodes, makes its Pods only after that: use a runtime without such steps, or without podGroupPolicy" + orStages,
	},
	{
		fits:   func(g *Gang) bool { return g.Group.MadeFor == "RoleBasedGroup" },
		likely: "RBG counts the Pods of all roles, and makes those of a role with dependencies only once these are ready: leave out dependencies, or gang scheduling" + orStages,
	},
	{
		// KubeRay changes groups of Volcano when it scales a cluster.
		fits:   func(g *Gang) bool { return g.Group.MadeFor == "RayCluster" && g.Key.Dialect != dialect.Volcano },
		likely: "KubeRay does not change the group of a RayCluster that is scaled: delete the PodGroup, and KubeRay makes one of the present size",
	},
}

// likelyHint returns the likely cause for missing members, "" if none is known. wait is how long to wait before the
// cause is reported, 0 if it is to be reported now.
func likelyHint(g *Gang, now time.Time) (likely string, wait time.Duration) {
	if g.Group == nil || g.complete() || g.Group.IsHalted() {
		return "", 0
	}
	var newest time.Time
	for _, p := range g.Pods {
		newest = times.Later(newest, p.Pod.CreationTimestamp.Time)
	}
	if newest.IsZero() {
		return "", 0 // no Pod waits
	}
	for _, cause := range causes {
		if cause.fits(g) {
			return cause.likely, max(0, hintAfter-now.Sub(newest))
		}
	}
	return "", 0
}
