// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package news

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// memberSince is a member that was created so long after start.
func memberSince(after time.Duration, change ...func(*corev1.Pod)) func(*Gang) {
	return func(g *Gang) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(start.Add(after))}}
		for _, c := range change {
			c(pod)
		}
		g.Pods = append(g.Pods, Pod{Pod: pod})
	}
}

// madeFor has the group be of another dialect, and an object of this kind own it.
func madeFor(kind string) func(*Gang) {
	return func(g *Gang) { g.Key.Dialect, g.Group.MadeFor = dialect.SchedulerPlugins, kind }
}

func inRoleOfJob(role string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Labels = map[string]string{"training.kubeflow.org/job-role": role} }
}

func annotatedWith(keys ...string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Annotations = map[string]string{}
		for _, key := range keys {
			pod.Annotations[key] = "rack"
		}
	}
}

func exclusiveTopology(pod *corev1.Pod) {
	pod.Annotations = map[string]string{"leaderworkerset.sigs.k8s.io/exclusive-topology": "rack"}
}

// TestAGangThatCanNeverBeCompleteIsToldWhy: by the tool that has made it, a minute after its last
// member came.
func TestAGangThatCanNeverBeCompleteIsToldWhy(t *testing.T) {
	const soon = 70 * time.Second
	tests := map[string]struct {
		change []func(*Gang)
		at     time.Duration
		want   string // part of the message, "" for no likely cause
	}{
		"a TrainJob with initializers":                    {[]func(*Gang){madeFor("TrainJob"), memberSince(0)}, soon, "a step that depends on another"},
		"a TrainJob whose Pods may still come":            {[]func(*Gang){madeFor("TrainJob"), memberSince(0)}, 59 * time.Second, ""},
		"a TrainJob of which one has just come":           {[]func(*Gang){madeFor("TrainJob"), memberSince(0), memberSince(50 * time.Second)}, soon, ""},
		"a TrainJob of which no Pod has come":             {[]func(*Gang){madeFor("TrainJob"), nobody}, soon, ""},
		"a TrainJob that is complete":                     {[]func(*Gang){madeFor("TrainJob"), memberSince(0), memberSince(0), complete, refused}, soon, ""},
		"an MPIJob whose launcher waits for the workers":  {[]func(*Gang){madeFor("MPIJob"), memberSince(0, inRoleOfJob("worker"))}, soon, "minAvailable"},
		"an MPIJob that has a launcher":                   {[]func(*Gang){madeFor("MPIJob"), memberSince(0, inRoleOfJob("launcher"))}, soon, ""},
		"roles that depend on each other":                 {[]func(*Gang){madeFor("RoleBasedGroup"), memberSince(0)}, soon, "role with dependencies"},
		"a RayCluster that was scaled down":               {[]func(*Gang){madeFor("RayCluster"), memberSince(0)}, soon, "delete the PodGroup"},
		"whose group KubeRay changes":                     {[]func(*Gang){madeFor("RayCluster"), memberSince(0), func(g *Gang) { g.Key.Dialect = dialect.Volcano }}, soon, ""},
		"the same when it ran before":                     {[]func(*Gang){madeFor("RayCluster"), memberSince(0), wasBound}, soon, "delete the PodGroup"},
		"a leader whose workers wait for it":              {[]func(*Gang){madeFor("Pod"), memberSince(0, exclusiveTopology)}, soon, "LeaderReady"},
		"a Job of a JobSet whose Pods wait for its first": {[]func(*Gang){memberSince(0, annotatedWith(exclusiveJobs))}, soon, "JobSet makes the other Pods"},
		"the same where nodes say whose they are":         {[]func(*Gang){memberSince(0, annotatedWith(exclusiveJobs, preselected))}, soon, ""},
		"a Job of which a quota allows few Pods":          {[]func(*Gang){madeFor("Job"), func(g *Gang) { g.Key.Dialect = dialect.Own }, memberSince(0)}, soon, "the events of the Job"},
		"a group of a tool of which nothing is known":     {[]func(*Gang){madeFor("TFJob"), memberSince(0)}, soon, ""},
		"a group of Volcano's for a Job of Volcano's":     {[]func(*Gang){madeFor("Job"), memberSince(0), func(g *Gang) { g.Key.Dialect = dialect.Volcano }}, soon, ""},
		"a group of Lockstep's":                           {[]func(*Gang){memberSince(0)}, soon, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			g := gangOf(tc.change...)
			conditions, _ := g.News(start.Add(tc.at), "id")
			if len(conditions) == 0 {
				t.Fatal("nothing is told")
			}
			_, likely, told := strings.Cut(conditions[0].Message, "; the likely cause: ")
			if told != (tc.want != "") || !strings.Contains(likely, tc.want) {
				t.Errorf("it is told %q, want a likely cause with %q", conditions[0].Message, tc.want)
			}
			// More Pods never come by themselves to the group of a cluster that was scaled down, or to a Job.
			if stages := strings.Contains(likely, `scheduling.lockstep.dev/staged: "true"`); stages != (told && g.Group.MadeFor != "RayCluster" && g.Group.MadeFor != "Job") {
				t.Errorf("it is told %q, and whether stages would help is %t", likely, !stages)
			}
		})
	}
}

// TestTheLikelyCauseIsToldInTime: nothing happens to a gang that waits for members, so it is asked
// again when the minute is over, and once it is told, it is not asked for ever.
func TestTheLikelyCauseIsToldInTime(t *testing.T) {
	g := gangOf(madeFor("TrainJob"), memberSince(0))
	first, again := g.News(start.Add(10*time.Second), "id")
	if first == nil || again != 50*time.Second {
		t.Fatalf("first %v is told, and it is asked again in %v, want in 50 s", first, again)
	}
	g.Record.Conditions, g.Record.At = first, start.Add(10*time.Second)
	if nothing, again := g.News(start.Add(20*time.Second), "id"); nothing != nil || again != 40*time.Second {
		t.Errorf("then %v is told, and it is asked again in %v, want nothing and 40 s", nothing, again)
	}
	if nothing, again := g.News(start.Add(time.Minute), "id"); nothing != nil || again != 10*time.Second {
		t.Errorf("a minute after it came %v is told, and it is asked again in %v, want nothing and 10 s: the message changes once a minute", nothing, again)
	}
	second, again := g.News(start.Add(70*time.Second), "id")
	if second == nil || again != 0 {
		t.Fatalf("after a minute %v is told, and it is asked again in %v, want the cause, and never", second, again)
	}
	g.Record.Conditions, g.Record.At = second, start.Add(time.Minute)
	if more, again := g.News(start.Add(2*time.Minute), "id"); more != nil || again != 0 {
		t.Errorf("after that %v is told, and it is asked again in %v, want nothing and never", more, again)
	}
}
