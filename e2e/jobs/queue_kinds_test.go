//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

// workloads are Kueue's. serveKueue sets them once, before any test.
var workloads dynamic.NamespaceableResourceInterface

// serveKueue has the API server serve the kinds of Kueue that Lockstep uses, with a flavor of which
// the simulated nodes are.
func serveKueue(ctx context.Context, c *testbed.Cluster) error {
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	workloads = client.Resource(schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "workloads"})
	if err := c.ApplyManifests(ctx, "kueue/rbac.yaml"); err != nil {
		return err
	}
	if out, err := c.KubectlApply(ctx, "default", kueueKinds); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	if out, err := c.Kubectl(ctx, "wait", "--for=condition=Established", "crd/workloads.kueue.x-k8s.io", "crd/resourceflavors.kueue.x-k8s.io"); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	if err := c.ApplyOnceServed(ctx, "default", spot); err != nil {
		return err
	}
	if out, err := c.Kubectl(ctx, "label", "nodes", "--all", "flavour=spot"); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// spot is a flavor of quota.
const spot = `
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: spot}
spec:
  nodeLabels: {flavour: spot}
  tolerations: [{key: spot, operator: Exists}]
`

// kueueKinds are those of Kueue that Lockstep uses, with any fields.
const kueueKinds = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: workloads.kueue.x-k8s.io}
spec:
  group: kueue.x-k8s.io
  names: {plural: workloads, singular: workload, kind: Workload, shortNames: [wl]}
  scope: Namespaced
  versions:
  - name: v1beta2
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: resourceflavors.kueue.x-k8s.io}
spec:
  group: kueue.x-k8s.io
  names: {plural: resourceflavors, singular: resourceflavor, kind: ResourceFlavor, shortNames: [rf]}
  scope: Cluster
  versions:
  - name: v1beta2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`
