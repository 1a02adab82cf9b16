//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	kubeflowv2beta1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v2beta1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/manifests"
)

// installKubeflowAPI has the API server serve Kubeflow's training jobs of all kinds. They stay
// for the tests that follow.
func installKubeflowAPI(t *testing.T) {
	t.Helper()
	wait := []string{"wait", "--for=condition=Established", "--timeout=" + testbed.Patience.String()}
	for _, plural := range append(kubeflowv1.Plurals(), kubeflowv2beta1.MPIJobPlural) {
		wait = append(wait, "crd/"+plural+"."+kubeflowv1.GroupName)
		manifest, err := manifests.FS.ReadFile("kubeflow/kubeflow.org_" + plural + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		if output, err := cluster.KubectlApply(t.Context(), "default", string(manifest)); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
	}
	output, err := cluster.Kubectl(t.Context(), wait...)
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
}

// kubeflowJob is the manifest of a job. In its spec, @t stands for a good template.
func kubeflowJob(version, kind, name, spec string) string {
	containers := map[string]string{"TFJob": "tensorflow", "PyTorchJob": "pytorch", "XGBoostJob": "xgboost", "PaddleJob": "paddle", "JAXJob": "jax", "MPIJob": "mpi"}
	template := "template: {spec: {containers: [{name: " + containers[kind] + ", image: i}]}}"
	return fmt.Sprintf("apiVersion: kubeflow.org/%s\nkind: %s\nmetadata: {name: %q}\nspec: %s\n", version, kind, name, strings.ReplaceAll(spec, "@t", template))
}

// TestAMarkKeepsByWhichVersionATFJobWasMade does to TFJobs, through both versions of the
// API, what users and clients do.
func TestAMarkKeepsByWhichVersionATFJobWasMade(t *testing.T) {
	installKubeflowAPI(t)
	namespace := cluster.Namespace(t)
	const (
		designed, used = "tfjobs.v1alpha2.kubeflow.org/", "tfjobs.v1.kubeflow.org/"
		spec           = "{runPolicy: {managedBy: kueue.x-k8s.io/multikueue}, tfReplicaSpecs: {Worker: {replicas: 1, @t}}}"
		mark           = "jsonpath={.apiVersion} {.spec.createdAs}"
		refusal        = "a TFJob that was made through kubeflow.org/v1 is changed through v1 only"
	)
	for name, version := range map[string]string{"designed": "v1alpha2", "used": "v1"} {
		if output, err := cluster.KubectlApply(t.Context(), namespace, kubeflowJob(version, "TFJob", name, spec)); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
	}
	for _, step := range []struct {
		args []string
		// want is all of the output, and part what it contains, also of a refusal.
		want, part string
		refused    bool
	}{
		{args: []string{"get", designed + "designed", "-o", mark}, want: "kubeflow.org/v1alpha2 v1alpha2"},
		{args: []string{"get", used + "designed", "-o", mark}, want: "kubeflow.org/v1 v1alpha2"},
		{args: []string{"get", used + "used", "-o", mark}, want: "kubeflow.org/v1 "},
		{args: []string{"get", designed + "used", "-o", mark}, want: "kubeflow.org/v1alpha2 "},

		{args: []string{"label", used + "designed", "a=b"}, part: "labeled"},
		{args: []string{"label", designed + "designed", "c=d"}, part: "labeled"},
		{args: []string{"patch", used + "designed", "--type=merge", "-p", `{"spec":{"tfReplicaSpecs":{"Worker":{"replicas":2}}}}`}, part: "patched"},
		{args: []string{"patch", designed + "designed", "--type=merge", "-p", `{"spec":{"tfReplicaSpecs":{"Worker":{"replicas":3}}}}`}, part: "patched"},
		{args: []string{"get", used + "designed", "-o", "jsonpath={.spec.createdAs} {.spec.tfReplicaSpecs.Worker.replicas} {.metadata.labels}"}, want: `v1alpha2 3 {"a":"b","c":"d"}`},
		{args: []string{"patch", used + "designed", "--type=json", "-p", `[{"op":"remove","path":"/spec/createdAs"}]`}, part: "clients that don't know the field may patch, but not replace", refused: true},

		{args: []string{"label", used + "used", "a=b"}, part: "labeled"},
		{args: []string{"patch", used + "used", "--type=merge", "-p", `{"spec":{"tfReplicaSpecs":{"Worker":{"replicas":2}}}}`}, part: "patched"},
		{args: []string{"patch", designed + "used", "--type=merge", "-p", `{"spec":{"tfReplicaSpecs":{"Worker":{"replicas":3}}}}`}, part: refusal, refused: true},
		{args: []string{"patch", used + "used", "--type=merge", "-p", `{"spec":{"createdAs":"v1alpha2"}}`}, part: refusal, refused: true},

		// A status goes through either version, and takes nothing of the other's away.
		{args: []string{"patch", designed + "used", "--subresource=status", "--type=merge", "-p", `{"status":{"phase":"Running","replicaStatuses":{"Worker":{"active":1}}}}`}, part: "patched"},
		{args: []string{"get", used + "used", "-o", "jsonpath={.spec.createdAs} {.status.phase} {.status.replicaStatuses.Worker.active}"}, want: " Running 1"},
		{args: []string{"patch", used + "designed", "--subresource=status", "--type=merge", "-p", `{"status":{"phase":"Pending","tfReplicaStatuses":{"Worker":{"failed":1}}}}`}, part: "patched"},
		{args: []string{"get", designed + "designed", "-o", "jsonpath={.spec.createdAs} {.status.phase} {.status.tfReplicaStatuses.Worker.failed}"}, want: "v1alpha2 Pending 1"},

		{args: []string{"get", "tfjobs", "used"}, part: "NAME STATE PHASE AGE used Running"},
		{args: []string{"get", "tfjobs.v1alpha2.kubeflow.org", "designed"}, part: "NAME PHASE AGE designed Pending"},
		{args: []string{"delete", designed + "used"}, part: "deleted"},
		{args: []string{"delete", used + "designed"}, part: "deleted"},
	} {
		output, err := cluster.Kubectl(t.Context(), append([]string{"-n", namespace}, step.args...)...)
		shown := strings.Join(strings.Fields(output), " ")
		if refused := err != nil; refused != step.refused {
			t.Errorf("kubectl %v: %v: %s", step.args, err, output)
		}
		if step.part == "" && output != step.want || !strings.Contains(shown, step.part) {
			t.Errorf("kubectl %v: got %q, want %q", step.args, output, step.want+step.part)
		}
	}
}

// TestWrongKubeflowJobsAreRefused by the API server, with the field named.
func TestWrongKubeflowJobsAreRefused(t *testing.T) {
	installKubeflowAPI(t)
	tests := map[string]struct{ version, kind, name, spec, want string }{
		"a name that begins with a digit": {name: "00t", spec: "{tfReplicaSpecs: {Worker: {@t}}}", want: "metadata.name must begin with"},
		"a name of 60 letters":            {name: strings.Repeat("x", 60), spec: "{tfReplicaSpecs: {Worker: {@t}}}", want: "metadata.name must be so short"},
		"no container":                    {spec: "{tfReplicaSpecs: {Worker: {template: {spec: {containers: []}}}}}", want: "spec.tfReplicaSpecs.Worker.template.spec.containers"},
		"an empty image":                  {spec: "{tfReplicaSpecs: {Worker: {template: {spec: {containers: [{name: tensorflow, image: ''}]}}}}}", want: "containers[0].image"},
		"the wrong container":             {spec: "{tfReplicaSpecs: {Worker: {template: {spec: {containers: [{name: x, image: i}]}}}}}", want: "a container named tensorflow"},
		"a chief and a master":            {spec: "{tfReplicaSpecs: {Chief: {@t}, Master: {@t}}}", want: "at most one of Chief and Master"},
		"a wrong restartPolicy":           {spec: "{tfReplicaSpecs: {Worker: {restartPolicy: x, @t}}}", want: "spec.tfReplicaSpecs.Worker.restartPolicy"},
		"two types but for their case":    {spec: "{tfReplicaSpecs: {ps: {@t}, PS: {@t}}}", want: "types must differ in more than upper and lower case"},
		"a chief in v1alpha2":             {version: "v1alpha2", spec: "{tfReplicaSpecs: {Chief: {@t}}}", want: "types of v1alpha2 must be"},
		"a manager that nobody knows":     {spec: "{runPolicy: {managedBy: x/y}, tfReplicaSpecs: {Worker: {@t}}}", want: "spec.runPolicy.managedBy"},
		"two masters":                     {kind: "PyTorchJob", spec: "{pytorchReplicaSpecs: {Master: {replicas: 2, @t}}}", want: "Master needs replicas: 1"},
		"no workers":                      {kind: "PyTorchJob", spec: "{pytorchReplicaSpecs: {Worker: {replicas: 0, @t}}}", want: "Worker needs at least 1 replica"},
		"elasticity without workers":      {kind: "PyTorchJob", spec: "{elasticPolicy: {}, pytorchReplicaSpecs: {Master: {replicas: 1, @t}}}", want: "spec.elasticPolicy"},
		"two numbers of processes":        {kind: "PyTorchJob", spec: "{nprocPerNode: '2', elasticPolicy: {nProcPerNode: 2}, pytorchReplicaSpecs: {Worker: {@t}}}", want: "spec.nprocPerNode"},
		"a type in lower case":            {kind: "PyTorchJob", spec: "{pytorchReplicaSpecs: {worker: {@t}}}", want: "types must be Master or Worker"},
		"an XGBoostJob without a master":  {kind: "XGBoostJob", spec: "{xgbReplicaSpecs: {Worker: {@t}}}", want: "Master decides when the job succeeds, and has to be there"},
		"a PaddleJob of no workers":       {kind: "PaddleJob", spec: "{paddleReplicaSpecs: {Worker: {replicas: 0, @t}}}", want: "needs at least 1 replica"},
		"an MPIJob without a launcher":    {version: "v2beta1", kind: "MPIJob", spec: "{mpiReplicaSpecs: {Worker: {@t}}}", want: "Launcher decides when the job succeeds, and has to be there"},
		"an MPIJob of another operator":   {version: "v2beta1", kind: "MPIJob", spec: "{runPolicy: {managedBy: kubeflow.org/training-operator}, mpiReplicaSpecs: {Launcher: {@t}}}", want: "spec.runPolicy.managedBy"},
		"a JAXJob with a master":          {kind: "JAXJob", spec: "{jaxReplicaSpecs: {Master: {@t}}}", want: "types must be Worker"},
	}
	namespace := cluster.Namespace(t)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			version, kind, object := tc.version, tc.kind, tc.name
			if version == "" {
				version = "v1"
			}
			if kind == "" {
				kind = "TFJob"
			}
			if object == "" {
				object = "refused"
			}
			output, err := cluster.KubectlApply(t.Context(), namespace, kubeflowJob(version, kind, object, tc.spec))
			if err == nil || !strings.Contains(output, tc.want) {
				t.Errorf("kubectl says %q, want %q in it", output, tc.want)
			}
		})
	}
}

// TestAPyTorchJobIsScaled by its subresource.
func TestAPyTorchJobIsScaled(t *testing.T) {
	installKubeflowAPI(t)
	namespace := cluster.Namespace(t)
	// Nobody runs it: it is another cluster's.
	const spec = "{runPolicy: {managedBy: kueue.x-k8s.io/multikueue}, pytorchReplicaSpecs: {Worker: {replicas: 2, @t}}}"
	if output, err := cluster.KubectlApply(t.Context(), namespace, kubeflowJob("v1", "PyTorchJob", "j", spec)); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	for _, step := range []struct{ args, want string }{
		{"patch pytorchjob j --subresource=status --type=merge -p {\"status\":{\"replicaStatuses\":{\"Worker\":{\"active\":2,\"selector\":\"a=b\"}}}}", "patched"},
		{"scale pytorchjob j --replicas=3", "scaled"},
		{"get pytorchjob j -o jsonpath={.spec.pytorchReplicaSpecs.Worker.replicas}", "3"},
		{"get pytorchjob j --subresource=scale -o jsonpath={.spec.replicas},{.status.replicas},{.status.selector}", "3,2,a=b"},
		{"get pytorchjobs", "NAME STATE AGE"},
	} {
		output, err := cluster.Kubectl(t.Context(), append([]string{"-n", namespace}, strings.Fields(step.args)...)...)
		if shown := strings.Join(strings.Fields(output), " "); err != nil || !strings.Contains(shown, step.want) {
			t.Errorf("kubectl %s: %v: got %q, want %q in it", step.args, err, shown, step.want)
		}
	}
}

// TestAKubeflowJobNeverChangesHands: whose it is, its managedBy says for good. The webhook of the
// training operator compared a PyTorchJob with itself, and let any change through.
func TestAKubeflowJobNeverChangesHands(t *testing.T) {
	installKubeflowAPI(t)
	namespace := cluster.Namespace(t)
	const (
		field    = "spec.runPolicy.managedBy"
		refusal  = "is immutable: a job never changes hands"
		ours     = `{"spec":{"runPolicy":{"managedBy":"lockstep.dev/kubeflow"}}}`
		operator = `{"spec":{"runPolicy":{"managedBy":"kubeflow.org/training-operator"}}}`
		unset    = `{"spec":{"runPolicy":{"managedBy":null}}}`
		same     = `{"spec":{"runPolicy":{"managedBy":"kueue.x-k8s.io/multikueue","suspend":true}}}`
	)
	for kind, replicas := range map[string]string{"TFJob": "tfReplicaSpecs", "PyTorchJob": "pytorchReplicaSpecs"} {
		for name, policy := range map[string]string{"given": "{managedBy: kueue.x-k8s.io/multikueue}", "without": "{suspend: true}"} {
			spec := "{runPolicy: " + policy + ", " + replicas + ": {Worker: {@t}}}"
			if output, err := cluster.KubectlApply(t.Context(), namespace, kubeflowJob("v1", kind, name, spec)); err != nil {
				t.Fatalf("%v: %s", err, output)
			}
		}
		for _, step := range []struct {
			name, patch string
			refused     bool
		}{
			{name: "given", patch: ours, refused: true},
			{name: "given", patch: unset, refused: true},
			{name: "given", patch: same},
			{name: "without", patch: ours, refused: true},
			{name: "without", patch: operator, refused: true},
			{name: "without", patch: unset},
		} {
			output, err := cluster.Kubectl(t.Context(), "-n", namespace, "patch", kind, step.name, "--type=merge", "-p", step.patch)
			if refused := err != nil; refused != step.refused || refused && (!strings.Contains(output, field) || !strings.Contains(output, refusal)) {
				t.Errorf("%s %s is patched with %s: %v: %s", kind, step.name, step.patch, err, output)
			}
		}
	}
}
