// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rights makes a server read for a visitor only what the visitor may read. The server itself has more rights,
// so for each request it first asks the API server about the visitor's rights (SubjectAccessReview). If a right is
// missing, the visitor gets the same message as from the API server.
package rights

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// Transport sends only requests that the visitor may send himself. It never sends a request that changes something.
type Transport struct {
	// User is the visitor.
	User user.Info
	// Asks says what he may do.
	Asks authorizer.UnconditionalAuthorizer
	// Next sends requests, with the rights of the server.
	Next http.RoundTripper
}

// resolver reads from a request what is requested, as API servers do.
var resolver = &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// reads are the verbs that pass.
var reads = sets.New("get", "list", "watch")

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := t.refusal(r); err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		var status *apierrors.StatusError
		if !errors.As(err, &status) {
			return nil, err
		}
		return response(r, status)
	}
	return t.Next.RoundTrip(r)
}

// refusal returns why a request is not sent: an *apierrors.StatusError if the visitor lacks the right, or an error if
// the API server could not be asked. Nil if the request may be sent.
func (t *Transport) refusal(r *http.Request) error {
	info, err := resolver.NewRequestInfo(r)
	if err != nil {
		return fmt.Errorf("reading a request of its own: %w", err)
	}
	of := schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
	if !reads.Has(info.Verb) {
		return apierrors.NewForbidden(of, info.Name, errors.New("this server only reads"))
	}
	decision, reason, err := t.Asks.Authorize(r.Context(), authorizer.AttributesRecord{
		User: t.User, Verb: info.Verb, Namespace: info.Namespace, APIGroup: info.APIGroup, APIVersion: info.APIVersion,
		Resource: info.Resource, Subresource: info.Subresource, Name: info.Name, ResourceRequest: info.IsResourceRequest, Path: info.Path,
	})
	switch {
	case decision == authorizer.DecisionAllow:
		return nil
	case err != nil:
		return fmt.Errorf("asking what %s may read: %w", t.User.GetName(), err)
	}
	if info.Subresource != "" {
		of.Resource += "/" + info.Subresource
	}
	message := fmt.Sprintf("User %q cannot %s it", t.User.GetName(), info.Verb)
	if info.Namespace != "" {
		message += fmt.Sprintf(" in the namespace %q", info.Namespace)
	}
	if reason != "" {
		message += ": " + reason
	}
	return apierrors.NewForbidden(of, info.Name, errors.New(message))
}

// response returns the answer of an API server that refuses a request.
func response(r *http.Request, refused *apierrors.StatusError) (*http.Response, error) {
	status := refused.Status()
	status.Kind, status.APIVersion = "Status", "v1"
	body, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		Status: strconv.Itoa(int(status.Code)) + " " + http.StatusText(int(status.Code)), StatusCode: int(status.Code),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}
