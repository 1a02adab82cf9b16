//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

// documentedJob finds where the comments of an example of Volcano Jobs say that it gets to:
//
//	# End: PHASE[, N running][, N succeeded][, N restart(s)][, with TASK-INDEX].
var documentedJob = regexp.MustCompile(`(?m)^# End: (\w+)(?:, (\d+) running)?(?:, (\d+) succeeded)?(?:, (\d+) restarts?)?(?:, with (\w+-\d+))?\.$`)

// jobEnding is where each Job of an example gets to.
type jobEnding struct {
	phase                         batchv1alpha1.JobPhase
	running, succeeded, restarted int32
	// runs is a Pod that runs then, without the name of its Job. Empty if none is told of.
	runs string
}

func parseJobEnding(manifest []byte) (jobEnding, error) {
	found := documentedJob.FindSubmatch(manifest)
	if found == nil {
		return jobEnding{}, fmt.Errorf("no comment matches %s", documentedJob)
	}
	var numbers [5]int32
	for _, i := range []int{2, 3, 4} {
		if len(found[i]) == 0 {
			continue
		}
		n, err := strconv.ParseInt(string(found[i]), 10, 32)
		if err != nil {
			return jobEnding{}, err
		}
		numbers[i] = int32(n)
	}
	return jobEnding{
		phase: batchv1alpha1.JobPhase(found[1]), running: numbers[2], succeeded: numbers[3], restarted: numbers[4], runs: string(found[5]),
	}, nil
}

// reached says whether a Job is there.
func (e jobEnding) reached(s *batchv1alpha1.JobStatus) bool {
	return s.State.Phase == e.phase && s.Running == e.running && s.Succeeded == e.succeeded && s.RetryCount == e.restarted
}

// TestExamplesThatNeedTheNodeForThemselves show who is placed where there is no room for all.
func TestExamplesThatNeedTheNodeForThemselves(t *testing.T) {
	for _, name := range []string{"task-priority.yaml", "sharing.yaml"} {
		t.Run(name, func(t *testing.T) { runJobs(t, "../../examples/volcano/"+name) })
	}
}

// TestExamplesOfVolcanoJobs runs every manifest of examples/volcano to its documented end.
func TestExamplesOfVolcanoJobs(t *testing.T) {
	files, err := filepath.Glob("../../examples/volcano/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d examples (%v)", len(files), err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		if name == "task-priority.yaml" || name == "sharing.yaml" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runJobs(t, file)
		})
	}
}

// runJobs runs the Jobs of an example to its documented end.
func runJobs(t *testing.T, file string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want, err := parseJobEnding(content)
	if err != nil {
		t.Fatal(err)
	}
	manifest, _, err := testbed.ReplaceImages(content)
	if err != nil {
		t.Fatal(err)
	}
	namespace := cluster.Namespace(t)
	if out, err := cluster.KubectlApply(t.Context(), namespace, manifest); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() { removeClasses(t, manifest) })
	bindClaims(t, namespace)
	jobs, err := cluster.Lockstep.BatchV1alpha1().Jobs(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(jobs.Items) == 0 {
		t.Fatalf("%d Jobs (%v)", len(jobs.Items), err)
	}
	for i := range jobs.Items {
		name := jobs.Items[i].Name
		cluster.WaitJob(t, namespace, name, fmt.Sprintf("get to %+v", want), func(job *batchv1alpha1.Job) bool { return want.reached(&job.Status) })
		if want.runs == "" {
			continue
		}
		pod, err := cluster.Kube.CoreV1().Pods(namespace).Get(t.Context(), name+"-"+want.runs, metav1.GetOptions{})
		if err != nil || pod.Status.Phase != corev1.PodRunning {
			t.Errorf("Pod %s-%s is %+v (%v), want one that runs", name, want.runs, pod.Status.Phase, err)
		}
	}
}

// bindClaims makes volumes for the claims of the Jobs of a namespace, as a provisioner would.
func bindClaims(t *testing.T, namespace string) {
	t.Helper()
	jobs, err := cluster.Lockstep.BatchV1alpha1().Jobs(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wanted := 0
	for _, job := range jobs.Items {
		wanted += len(job.Spec.Volumes)
	}
	if wanted == 0 {
		return
	}
	var claims []string
	testbed.Eventually(t, "the claims of the Jobs", func(ctx context.Context) (bool, string, error) {
		list, err := cluster.Kube.CoreV1().PersistentVolumeClaims(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, "", err
		}
		claims = nil
		for _, claim := range list.Items {
			claims = append(claims, claim.Name)
		}
		return len(claims) == wanted, strings.Join(claims, " "), nil
	})
	for _, claim := range claims {
		cluster.BindClaim(t, namespace, claim, t.TempDir())
	}
}

// removeClasses removes the PriorityClasses of a manifest, which are in no namespace.
func removeClasses(t *testing.T, manifest string) {
	for _, document := range strings.Split(manifest, "---\n") {
		if !strings.Contains(document, "kind: PriorityClass\n") {
			continue
		}
		name := regexp.MustCompile(`(?m)^  name: (\S+)$`).FindStringSubmatch(document)
		if err := cluster.Kube.SchedulingV1().PriorityClasses().Delete(context.WithoutCancel(t.Context()), name[1], metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}
}

// TestPodsLogInToEachOther looks into what the master of the example mpi.yaml says.
func TestPodsLogInToEachOther(t *testing.T) {
	content, err := os.ReadFile("../../examples/volcano/mpi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	namespace := apply(t, string(content))
	log := waitLog(t, namespace, "mpi-job-mpimaster-0", "all 2 hosts have called each other")
	for _, want := range []string{"logged in to mpi-job-mpiworker-0\n", "logged in to mpi-job-mpiworker-1\n"} {
		if !strings.Contains(log, want) {
			t.Errorf("the master does not say %q:\n%s", want, log)
		}
	}
	cluster.WaitJobPhase(t, namespace, "mpi-job", batchv1alpha1.JobCompleted)
}
