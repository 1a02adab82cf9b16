// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/lockstep-k8s/lockstep/client/clientset/versioned"
)

// pageSize is how many objects one request lists.
const pageSize = 500

// Reader reads with the rights of its clients.
type Reader struct {
	Lockstep versioned.Interface
	Kube     kubernetes.Interface
	Dynamic  dynamic.Interface
	// AsksAboutFields makes Why ask the API server which fields of Pod templates it does not know, by dry-run creations
	// of Pods.
	AsksAboutFields bool
}

// New makes a Reader of clients with a configuration. No request is sent.
func New(config *rest.Config) (*Reader, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	var r Reader
	if r.Lockstep, err = versioned.NewForConfigAndClient(config, client); err != nil {
		return nil, err
	}
	// Thousands of Pods and nodes are read sooner so.
	compact := rest.CopyConfig(config)
	compact.AcceptContentTypes, compact.ContentType = runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON, runtime.ContentTypeProtobuf
	if r.Kube, err = kubernetes.NewForConfigAndClient(compact, client); err != nil {
		return nil, err
	}
	r.Dynamic, err = dynamic.NewForConfigAndClient(config, client)
	return &r, err
}

// IsUnserved reports whether a request failed because the API server does not serve the kind, and not because the
// object does not exist.
//
// If the API server does not know the group, it answers in plain text, and the client adds a cause. If it serves the
// group itself, but not the version, it answers a Status that names no object.
func IsUnserved(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsNotFound(err) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == "" || apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// Unread says for people what could not be read, without a full stop.
func Unread(what string, err error) string {
	if apierrors.IsForbidden(err) {
		return what + " can't be shown: you may not read them"
	}
	return fmt.Sprintf("%s can't be shown: %v", what, err)
}
