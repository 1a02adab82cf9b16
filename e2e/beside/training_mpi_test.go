//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package beside

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

const mpiJobOfTheTrainingOperator = `
apiVersion: kubeflow.org/v1
kind: MPIJob
metadata: {name: NAME, namespace: NAMESPACE}
spec:
  mpiReplicaSpecs:
    Launcher: {replicas: 1, template: {spec: {containers: [{name: mpi, image: x}]}}}
`

// TestMPIJobsOfTheTrainingOperatorMakeRoom follows the documented steps where the training operator's CRD of
// MPIJobs is, with a job that is stored: new ones are refused by the policy, or the CRD gives way to Lockstep's.
func TestMPIJobsOfTheTrainingOperatorMakeRoom(t *testing.T) {
	namespace := cluster.Namespace(t)
	job := func(name string) string {
		return strings.NewReplacer("NAMESPACE", namespace, "NAME", name).Replace(mpiJobOfTheTrainingOperator)
	}
	file := func(name, content string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	must := func(args ...string) {
		t.Helper()
		if out, err := cluster.Kubectl(t.Context(), args...); err != nil {
			t.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, out)
		}
	}
	const crd, policy, ours = "mpijobs.kubeflow.org", "../../manifests/policies/mpijob-v1.yaml", "../../manifests/kubeflow/kubeflow.org_mpijobs.yaml"
	must("delete", "crd", crd)
	must("create", "-f", file("crd.yaml", strings.NewReplacer("KIND", "MPIJob", "PLURAL", "mpijobs", "SINGULAR", "mpijob", "FIELD", "mpiReplicaSpecs").Replace(upstreams)))
	must("wait", "--for=condition=Established", "crd/"+crd)
	first := file("first.yaml", job("first"))
	testbed.Eventually(t, "an MPIJob v1 to be stored", func(ctx context.Context) (bool, string, error) {
		out, err := cluster.Kubectl(ctx, "apply", "-f", first)
		return err == nil, out, nil
	})

	must("apply", "-f", policy)
	later := file("later.yaml", job("later"))
	testbed.Eventually(t, "a new MPIJob v1 to be refused", func(ctx context.Context) (bool, string, error) {
		out, err := cluster.Kubectl(ctx, "create", "--dry-run=server", "-f", later)
		return err != nil && strings.Contains(out, "kubeflow.org/v2beta1"), out, nil
	})
	must("delete", "-f", policy)

	if out, err := cluster.Kubectl(t.Context(), "replace", "-f", ours); err == nil || !strings.Contains(out, "status.storedVersions[0]") {
		t.Errorf("replacing the CRD: %v: %s, want it refused as documented", err, out)
	}
	must("delete", "crd", crd)
	must("create", "-f", ours)
	must("wait", "--for=condition=Established", "crd/"+crd)
	testbed.Eventually(t, "an MPIJob v2beta1 to be taken", func(ctx context.Context) (bool, string, error) {
		out, err := cluster.Kubectl(ctx, "get", "--raw", "/apis/kubeflow.org/v2beta1/mpijobs")
		return err == nil, out, nil
	})
}
