// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"net/url"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxEndpoint is how long the URL of a collector may be.
const maxEndpoint = 1024

func validateTracing(t Tracing, path *field.Path) field.ErrorList {
	if t.Endpoint == nil || *t.Endpoint == "" {
		return nil
	}
	u, err := url.Parse(*t.Endpoint)
	if err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && len(u.Path) > 1 &&
		u.User == nil && u.RawQuery == "" && u.Fragment == "" && len(*t.Endpoint) <= maxEndpoint {
		return nil
	}
	shown := *t.Endpoint
	if err == nil {
		shown = u.Redacted() // A password in it is nothing for the log.
	}
	return field.ErrorList{field.Invalid(path.Child("endpoint"), shown,
		"must be http[s]://host[:port]/path, without user, query and fragment, of at most 1024 characters")}
}
