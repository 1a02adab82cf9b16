// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Hook is called for each request before it is carried out, and returns the fault that the request meets. Calls do not
// overlap. A Hook may change stored objects, but must not send requests.
type Hook func(*Request) Fault

// Fault is what befalls a request. The zero Fault is nothing.
type Fault struct {
	// Refusal is the answer in place of carrying the request out. An error that is no apierrors.StatusError acts as a
	// broken connection.
	Refusal error
	// Before is how long the request takes to reach the server, After how long the answer takes. A client that gives up
	// during After gets no answer, but the request was carried out. If it gives up during Before, the request is not
	// carried out, unless Late is set.
	Before, After time.Duration
	// Late makes the server carry the request out after Before even if the client has given up or was killed.
	Late bool
	// LoseAnswer says that the connection breaks when the request was carried out.
	LoseAnswer bool
}

// SetHook makes the hook see all requests from now on. It replaces an earlier hook; nil removes it.
func (s *Server) SetHook(hook Hook) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = hook
}

func (s *Server) fault(r *Request) Fault {
	s.mu.Lock()
	hook := s.hook
	s.mu.Unlock()
	if hook == nil {
		return Fault{}
	}
	s.looking.Lock()
	defer s.looking.Unlock()
	return hook(r)
}

// QuotaExceeded returns how an exhausted ResourceQuota refuses a Pod.
func QuotaExceeded(pod, quota string) *apierrors.StatusError {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, pod,
		fmt.Errorf("exceeded quota: %s, requested: pods=1, used: pods=10, limited: pods=10", quota))
}

// ServiceAccountMissing returns the error with which the creation of a Pod is refused while its ServiceAccount does
// not exist.
func ServiceAccountMissing(pod string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, pod,
		errors.New(`error looking up service account ns/trainer: serviceaccount "trainer" not found`))
}

// NoRight is how a request is refused that its sender has no right to.
func NoRight(verb, resource, namespace string) error {
	message := fmt.Sprintf("User %q cannot %s resource %q in API group %q in the namespace %q",
		"system:serviceaccount:lockstep-system:lockstep-controller", verb, resource, "", namespace)
	return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New(message))
}

// WebhookDenied returns how an admission webhook refuses a request.
func WebhookDenied(webhook, reason string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusBadRequest,
		Message: fmt.Sprintf("admission webhook %q denied the request: %s", webhook, reason),
	}}
}

// WebhookFailed returns the failure of a request when its admission webhook does not answer.
func WebhookFailed(webhook string) *apierrors.StatusError {
	return apierrors.NewInternalError(fmt.Errorf("failed calling webhook %q: failed to call webhook: context deadline exceeded", webhook))
}

// TooManyRequests returns the error of an overloaded server. It asks the client to wait for retryAfterSeconds.
func TooManyRequests(retryAfterSeconds int) *apierrors.StatusError {
	return apierrors.NewTooManyRequests("too many requests, please try again later", retryAfterSeconds)
}

// Unavailable returns how a server refuses a request that can't reach its storage.
func Unavailable() *apierrors.StatusError {
	return apierrors.NewServiceUnavailable("etcdserver: no leader")
}

// ConnectionLost is a connection that breaks before the request was carried out.
func ConnectionLost() error { return errLost }

// statusOf returns an error as it is sent.
func statusOf(err error) *metav1.Status {
	known := asStatus(err)
	if known == nil {
		known = apierrors.NewInternalError(err)
	}
	status := known.Status()
	status.APIVersion, status.Kind = "v1", "Status"
	return &status
}

// asStatus returns err as an APIStatus, or nil if it is no error of an API server.
func asStatus(err error) apierrors.APIStatus {
	var known apierrors.APIStatus
	if errors.As(err, &known) {
		return known
	}
	return nil
}
