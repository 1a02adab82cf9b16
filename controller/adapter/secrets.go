// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package adapter

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/lockstep-k8s/lockstep/controller/engine"
)

// Secrets returns the kind of Secrets. Its client writes Secrets, and reads only the metadata of a Secret by its name.
// It neither lists nor watches, because the rights for that would let the controller read all Secrets of the cluster.
func Secrets(client kubernetes.Interface, metadata metadata.Interface) engine.Kind {
	return engine.Kind{
		Name:      "Secret",
		Client:    secretClient{metadata: metadata, Client: engine.ClientOf[*corev1.Secret, *corev1.SecretList](client.CoreV1().Secrets)},
		Unwatched: true,
	}
}

type secretClient struct {
	engine.Client
	metadata metadata.Interface
}

// Get reads the metadata of a Secret. If the controller lacks the right, the error names the role that grants it.
func (c secretClient) Get(ctx context.Context, namespace, name string) (metav1.Object, error) {
	object, err := c.metadata.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("%w. Plugin ssh of Volcano Jobs and MPIJobs need the role in manifests/secrets (with Helm: integrations.secrets)", err)
	case err != nil:
		return nil, err
	default:
		return object, nil
	}
}
