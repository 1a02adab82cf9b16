//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package beside

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

// upstreams is a CRD as the training operator has it, cut down: v1 alone; no rules, as its
// webhook checks specs; templates whole. Fields that it does not know are dropped.
const upstreams = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: PLURAL.kubeflow.org
spec:
  group: kubeflow.org
  names: {kind: KIND, listKind: KINDList, plural: PLURAL, singular: SINGULAR}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              runPolicy: {type: object, x-kubernetes-preserve-unknown-fields: true}
              FIELD:
                type: object
                additionalProperties: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status:
            type: object
            properties:
              conditions:
                type: array
                items:
                  type: object
                  required: [status, type]
                  properties:
                    lastTransitionTime: {type: string, format: date-time}
                    lastUpdateTime: {type: string, format: date-time}
                    message: {type: string}
                    reason: {type: string}
                    status: {type: string}
                    type: {type: string}
              replicaStatuses:
                type: object
                additionalProperties:
                  type: object
                  properties:
                    active: {type: integer, format: int32}
                    failed: {type: integer, format: int32}
                    succeeded: {type: integer, format: int32}
                    selector: {type: string}
              startTime: {type: string, format: date-time}
              completionTime: {type: string, format: date-time}
              lastReconcileTime: {type: string, format: date-time}
`

// replace has upstream's CRDs take the place of Lockstep's. Jobs stay what they are.
var replace = sync.OnceValue(func() error {
	for _, words := range [][]string{
		{"TFJob", "tfjob", "tfReplicaSpecs"}, {"PyTorchJob", "pytorchjob", "pytorchReplicaSpecs"},
		{"XGBoostJob", "xgboostjob", "xgbReplicaSpecs"}, {"PaddleJob", "paddlejob", "paddleReplicaSpecs"}, {"JAXJob", "jaxjob", "jaxReplicaSpecs"},
	} {
		crd := strings.NewReplacer("KIND", words[0], "PLURAL", words[1]+"s", "SINGULAR", words[1], "FIELD", words[2]).Replace(upstreams)
		// Not by the context of a test: the others go on with it.
		if out, err := cluster.KubectlReplace(context.Background(), crd); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
	}
	return nil
})

// onUpstreamsCRDs waits until the CRDs are upstream's.
func onUpstreamsCRDs(t *testing.T) {
	t.Helper()
	if err := replace(); err != nil {
		t.Fatal(err)
	}
	testbed.Eventually(t, "v1alpha2 not to be served any more", func(ctx context.Context) (bool, string, error) {
		out, err := cluster.Kubectl(ctx, "get", "--raw", "/apis/kubeflow.org/v1alpha2/tfjobs")
		return err != nil && strings.Contains(out, "could not find the requested resource"), out, nil
	})
}
