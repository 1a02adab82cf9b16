//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	kubeflowv2beta1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v2beta1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

// documentedTraining finds where the comments of an example of Kubeflow's jobs say that it gets
// to, and documentedSuccess the parts of its middle:
//
//	# End: PHASE[, N TYPE succeeded]…[, N restart(s)].
var (
	documentedTraining = regexp.MustCompile(`(?m)^# End: (\w+)((?:, \d+ \w+ succeeded)*)(?:, (\d+) restarts?)?\.$`)
	documentedSuccess  = regexp.MustCompile(`, (\d+) (\w+) succeeded`)
)

// trainingEnding is where the job of an example gets to.
type trainingEnding struct {
	phase    kubeflowv1.JobPhase
	restarts int32
	// succeeded are the successes of each type that the comments name.
	succeeded map[string]int32
}

func parseTrainingEnding(manifest []byte) (trainingEnding, error) {
	found := documentedTraining.FindSubmatch(manifest)
	if found == nil {
		return trainingEnding{}, fmt.Errorf("no comment matches %s", documentedTraining)
	}
	number := func(digits []byte) int32 {
		n, err := strconv.ParseInt(string(digits), 10, 32)
		if err != nil {
			return 0 // There is none.
		}
		return int32(n)
	}
	e := trainingEnding{phase: kubeflowv1.JobPhase(found[1]), restarts: number(found[3]), succeeded: map[string]int32{}}
	for _, part := range documentedSuccess.FindAllSubmatch(found[2], -1) {
		e.succeeded[string(part[2])] = number(part[1])
	}
	return e, nil
}

// reached says whether a job is there.
func (e trainingEnding) reached(s *kubeflowv1.JobStatus) bool {
	of := s.ReplicaStatuses
	if len(s.TFReplicaStatuses) > 0 {
		of = s.TFReplicaStatuses
	}
	restarts := int32(0)
	for _, r := range of {
		restarts += r.Restarts
	}
	for replicas, n := range e.succeeded {
		if of[replicas].Succeeded != n {
			return false
		}
	}
	return s.Phase == e.phase && restarts == e.restarts
}

// trainingStatuses are those of the training jobs of a namespace, whatever their kinds.
func trainingStatuses(ctx context.Context, namespace string) ([]kubeflowv1.JobStatus, error) {
	var all []kubeflowv1.JobStatus
	resources := map[string]rest.Interface{kubeflowv2beta1.MPIJobPlural: cluster.Lockstep.KubeflowV2beta1().RESTClient()}
	for _, plural := range kubeflowv1.Plurals() {
		resources[plural] = cluster.Lockstep.KubeflowV1().RESTClient()
	}
	for plural, client := range resources {
		var list struct {
			Items []struct {
				Status kubeflowv1.JobStatus `json:"status"`
			} `json:"items"`
		}
		data, err := client.Get().Namespace(namespace).Resource(plural).DoRaw(ctx)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(data, &list); err != nil {
			return nil, err
		}
		for _, job := range list.Items {
			all = append(all, job.Status)
		}
	}
	return all, nil
}

// TestExamplesOfTrainingJobs runs every manifest of examples/kubeflow to its documented end.
func TestExamplesOfTrainingJobs(t *testing.T) {
	files, err := filepath.Glob("../../examples/kubeflow/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d examples (%v)", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want, err := parseTrainingEnding(content)
			if err != nil {
				t.Fatal(err)
			}
			manifest, _, err := testbed.ReplaceImages(content)
			if err != nil {
				t.Fatal(err)
			}
			namespace := apply(t, manifest)
			testbed.Eventually(t, fmt.Sprintf("the job to get to %+v", want), func(ctx context.Context) (bool, string, error) {
				statuses, err := trainingStatuses(ctx, namespace)
				return err == nil && len(statuses) == 1 && want.reached(&statuses[0]), fmt.Sprintf("%+v", statuses), err
			})
		})
	}
}

// TestProgramsTrainWhoseListOfHostsIsKeptOnce runs tfjob.yaml with names so long that TF_CONFIG refers to
// a ConfigMap: the kubelet puts both together.
func TestProgramsTrainWhoseListOfHostsIsKeptOnce(t *testing.T) {
	content, err := os.ReadFile("../../examples/kubeflow/tfjob.yaml")
	if err != nil {
		t.Fatal(err)
	}
	name := strings.Repeat("long", 11)
	manifest := string(content)
	for old, long := range map[string]string{
		"name: tf-config\n": "name: " + name + "\n  annotations: {kubeflow.lockstep.dev/services: PerJob}\n",
		"replicas: 2":       "replicas: 15",
		"-steps=100":        "-steps=5",
	} {
		if !strings.Contains(manifest, old) {
			t.Fatalf("the example has no %q", old)
		}
		manifest = strings.Replace(manifest, old, long, 1)
	}
	namespace := apply(t, manifest)
	testbed.Eventually(t, "the job to succeed", func(ctx context.Context) (bool, string, error) {
		statuses, err := trainingStatuses(ctx, namespace)
		return err == nil && len(statuses) == 1 && statuses[0].Phase == kubeflowv1.JobSucceeded, fmt.Sprintf("%+v", statuses), err
	})
	configs, err := cluster.Kube.CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: kubeflowv1.KeyJobName + "=" + name})
	if err != nil || len(configs.Items) != 1 {
		t.Errorf("%d ConfigMaps of the job (%v), want the one with the list", len(configs.Items), err)
	}
}

// TestProgramsThatAreToldByArgumentsTrain looks into what the workers of the example
// tfjob-v1alpha2.yaml say.
func TestProgramsThatAreToldByArgumentsTrain(t *testing.T) {
	content, err := os.ReadFile("../../examples/kubeflow/tfjob-v1alpha2.yaml")
	if err != nil {
		t.Fatal(err)
	}
	namespace := apply(t, string(content))
	jobs, err := cluster.Lockstep.KubeflowV1().TFJobs(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(jobs.Items) != 1 {
		t.Fatalf("%d jobs (%v)", len(jobs.Items), err)
	}
	job := &jobs.Items[0]
	log := waitLog(t, namespace, fmt.Sprintf("%s-worker-1-%s", job.Name, job.UID[:8]), "trained 100 steps")
	for _, want := range []string{"worker 0 of 3, attempt 0: all peers found\n", "loss"} {
		if !strings.Contains(log, want) {
			t.Errorf("the first worker does not say %q:\n%s", want, log)
		}
	}
}
