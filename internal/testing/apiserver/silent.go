// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import "net/http"

// Silent is the transport of clients of an API server that never answers.
type Silent struct{}

// RoundTrip implements http.RoundTripper. RoundTrip never answers, but returns the error of the request's context once
// that has ended.
func (Silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}
