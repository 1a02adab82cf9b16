//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package beside

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
	"github.com/lockstep-k8s/lockstep/manifests"
)

// mark is a label that the CRDs of the tests have, by which they are known.
const mark = "tests.lockstep.dev/volcanos"

// podGroups is what else of Volcano is there: a kind of PodGroups.
const podGroups = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: podgroups.scheduling.volcano.sh}
spec:
  group: scheduling.volcano.sh
  names: {plural: podgroups, singular: podgroup, kind: PodGroup, listKind: PodGroupList}
  scope: Namespaced
  versions:
  - {name: v1beta1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

// installVolcano installs CRDs as Volcano's are: of the same fields as Lockstep's, without rules,
// as its webhook checks specs, which is not there.
func installVolcano(ctx context.Context) error {
	for _, file := range []string{"batch.volcano.sh_jobs.yaml", "bus.volcano.sh_commands.yaml"} {
		content, err := manifests.FS.ReadFile("volcano/" + file)
		if err != nil {
			return err
		}
		manifest, err := localenv.EditManifest(content, func(crd *unstructured.Unstructured) error {
			dropRules(crd.Object)
			crd.SetLabels(map[string]string{mark: "true"})
			return nil
		})
		if err != nil {
			return err
		}
		if out, err := cluster.KubectlApply(ctx, "default", manifest); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
	}
	rights, err := manifests.FS.ReadFile("volcano/rbac.yaml")
	if err != nil {
		return err
	}
	for _, manifest := range []string{podGroups, string(rights)} {
		if out, err := cluster.KubectlApply(ctx, "default", manifest); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
	}
	if out, err := cluster.Kubectl(ctx, "wait", "--for=condition=Established", "crd/jobs.batch.volcano.sh", "crd/commands.bus.volcano.sh", "crd/podgroups.scheduling.volcano.sh"); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// dropRules takes everything out of a schema that refuses a spec for more than its types.
func dropRules(value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, rule := range []string{"x-kubernetes-validations", "maxItems", "minItems", "maxLength", "minLength", "maxProperties", "maximum", "pattern"} {
			// A field may have the name of a rule; its schema is an object.
			if _, isSchema := value[rule].(map[string]any); !isSchema {
				delete(value, rule)
			}
		}
		for _, child := range value {
			dropRules(child)
		}
	case []any:
		for _, child := range value {
			dropRules(child)
		}
	}
}

// given makes a Job j of Lockstep's scheduler in a namespace of its own.
func given(t *testing.T, spec string) *testbed.VolcanoJob {
	t.Helper()
	return cluster.GivenVolcanoJob(t, "{schedulerName: "+testbed.GangScheduler+", "+strings.TrimPrefix(spec, "{"))
}

func TestVolcanosCRDsStay(t *testing.T) {
	for _, name := range []string{"jobs.batch.volcano.sh", "commands.bus.volcano.sh"} {
		out, err := cluster.Kubectl(t.Context(), "get", "crd", name, "-o", "json", "--show-managed-fields")
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		var crd unstructured.Unstructured
		if err := json.Unmarshal([]byte(out), &crd.Object); err != nil {
			t.Fatal(err)
		}
		if crd.GetLabels()[mark] == "" || strings.Contains(out, "x-kubernetes-validations") || strings.Contains(out, `"manager": "lockstep-controller"`) {
			t.Errorf("the CRD %s is not what it was:\n%s", name, out)
		}
	}
}

func TestJobsRunOnVolcanosCRDs(t *testing.T) {
	t.Parallel()
	j := given(t, "{plugins: {svc: [], env: [], ssh: []}, tasks: [{name: a, replicas: 1, @3→0}, {name: b, replicas: 2, @∞}]}")
	j.Passes(batchv1alpha1.JobPending, batchv1alpha1.JobRunning).Do(busv1alpha1.ActionRestartJob).
		Passes(batchv1alpha1.JobRestarting, batchv1alpha1.JobPending, batchv1alpha1.JobRunning).
		Counts(testbed.VolcanoTally{Running: 2, Succeeded: 1, Retries: 1})
	j.Do(busv1alpha1.ActionCompleteJob).Passes(batchv1alpha1.JobCompleting, batchv1alpha1.JobCompleted).Counts(testbed.VolcanoTally{Succeeded: 1, Retries: 1})
}

func TestASpecThatMakesNoSenseIsTold(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ spec, want string }{
		"a minimum above all replicas": {"{minAvailable: 5, tasks: [{name: a, replicas: 4, @∞}]}", "job 'minAvailable' should not be greater than total replicas"},
		"two tasks of one name":        {"{tasks: [{name: a, replicas: 1, @∞}, {name: a, replicas: 1, @∞}]}", "duplicated task name"},
		"no tasks":                     {"{tasks: []}", "No task specified in job spec"},
		"an unknown plugin":            {"{plugins: {foo: []}, tasks: [{name: a, replicas: 1, @∞}]}", "unable to find job plugin"},
		"an event in two policies":     {"{policies: [{event: PodFailed, action: AbortJob}, {event: PodFailed, action: RestartJob}], tasks: [{name: a, replicas: 1, @∞}]}", "duplicate"},
		"too many Pods":                {"{tasks: [{name: a, replicas: 20000, @∞}]}", "at most 10000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := given(t, tc.spec).Passes(batchv1alpha1.JobPending)
			j.Is("say why", func(s *batchv1alpha1.JobStatus) bool {
				return s.State.Reason == "InvalidJob" && strings.Contains(s.State.Message, tc.want)
			}).Tells(corev1.EventTypeWarning, "InvalidJob", tc.want).HasPods()
		})
	}
}

// TestNoPodGetsATemplateThatHasChanged: nobody refuses the change, as Volcano's webhook would.
func TestNoPodGetsATemplateThatHasChanged(t *testing.T) {
	t.Parallel()
	j := given(t, "{minAvailable: 1, tasks: [{name: a, replicas: 2, @∞}]}").Passes(batchv1alpha1.JobRunning).Counts(testbed.VolcanoTally{Running: 2})
	change := func(image string) {
		t.Helper()
		patch := fmt.Sprintf(`[{"op": "replace", "path": "/spec/tasks/0/template/spec/containers/0/image", "value": %q}]`, image)
		if _, err := cluster.Lockstep.BatchV1alpha1().Jobs(j.Namespace).Patch(t.Context(), j.Name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	change("another")
	j.Tells(corev1.EventTypeWarning, "SpecChanged", "no Pods are created until it is changed back").Kill("j-a-1").HasPods("j-a-0")
	testbed.Consistently(t, "no Pod of the other image", 3*time.Second, func(context.Context) (bool, string, error) {
		for name, pod := range j.Pods() {
			if pod.Spec.Containers[0].Image != "i" {
				return false, name, nil
			}
		}
		return true, "", nil
	})
	j.HasPods("j-a-0")
	change("i")
	j.HasPods("j-a-0", "j-a-1").Counts(testbed.VolcanoTally{Running: 2})
}

func TestJobsOfVolcanoAreLeftToIt(t *testing.T) {
	t.Parallel()
	namespace := cluster.Namespace(t)
	for name, scheduler := range map[string]string{"named": "schedulerName: volcano, ", "unnamed": ""} {
		cluster.CreateVolcanoJob(t, namespace, name, "{"+scheduler+"tasks: [{name: a, replicas: 1, @∞}]}", nil)
	}
	cluster.CreateVolcanoJob(t, namespace, "ours", "{schedulerName: "+testbed.GangScheduler+", tasks: [{name: a, replicas: 1, @∞}]}", nil).
		Passes(batchv1alpha1.JobRunning)
	for _, name := range []string{"named", "unnamed"} {
		job, err := cluster.Lockstep.BatchV1alpha1().Jobs(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || job.Status.State.Phase != "" {
			t.Errorf("Job %s is %q (%v)", name, job.Status.State.Phase, err)
		}
	}
}

// TestAJobWithAPodGroupOfVolcanoIsLeftAlone although it names our scheduler: Volcano runs it.
func TestAJobWithAPodGroupOfVolcanoIsLeftAlone(t *testing.T) {
	t.Parallel()
	j := given(t, "{tasks: [{name: a, replicas: 1, @∞}]}").Passes(batchv1alpha1.JobRunning)
	group := fmt.Sprintf(`
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata:
  name: j-%[1]s
  ownerReferences: [{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: j, uid: %[1]s, controller: true}]
`, j.UID)
	if out, err := cluster.KubectlApply(t.Context(), j.Namespace, group); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	j.Tells(corev1.EventTypeWarning, "ForeignStatus", "PodGroup").Kill("j-a-0").HasPods()
	testbed.Consistently(t, "no Pod is made", 2*time.Second, func(context.Context) (bool, string, error) {
		pods := j.Pods()
		return len(pods) == 0, fmt.Sprint(len(pods)), nil
	})
}
