// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapifilters "k8s.io/apiserver/pkg/endpoints/filters"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
	"k8s.io/client-go/kubernetes/scheme"
)

// shutdownTime is how long answers have that are under way when the program ends.
const shutdownTime = 2 * time.Second

// Authorizer says what users may do, by asking the API server. Nil if the program does not ask.
func (i *Instance) Authorizer() authorizer.UnconditionalAuthorizer {
	return i.config.Authorization.Authorizer
}

// ServeAnswers serves a handler on --answers-address, with the certificate and the authentication of
// --secure-port, until ctx ends. What users may do is for the handler to ask. It listens when it returns.
// Without the flag it does nothing; with it and without --secure-port, which has the certificate, it fails.
//
// It is a port of its own because kube-scheduler's Run has no place for more paths.
func (i *Instance) ServeAnswers(ctx context.Context, handler http.Handler) error {
	address := i.program.answersAddress
	if address == "" {
		return nil
	}
	if i.config.SecureServing == nil || i.config.Authentication.Authenticator == nil {
		return fmt.Errorf("--%s needs --secure-port, whose certificate and authentication it shares", answersAddress)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("--%s %s: %w", answersAddress, address, err)
	}
	resolver := &apirequest.RequestInfoFactory{}
	handler = genericapifilters.WithAuthentication(handler, i.config.Authentication.Authenticator, genericapifilters.Unauthorized(scheme.Codecs), nil, nil)
	handler = genericapifilters.WithRequestInfo(handler, resolver)
	handler = genericapifilters.WithCacheControl(handler)
	handler = genericfilters.WithPanicRecovery(handler, resolver)
	serving := *i.config.SecureServing
	serving.Listener = listener
	if _, _, err := serving.Serve(handler, shutdownTime, ctx.Done()); err != nil {
		return fmt.Errorf("serving --%s: %w", answersAddress, err)
	}
	return nil
}
