// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// Request is one that the API server has answered.
type Request struct {
	// User is who asked.
	User, Verb string
	// Group and Resource are what it was about, such as pods, with a slash and its subresource if
	// it was about that. Both are empty if it was about no object; then Path says what.
	Group, Resource, Namespace, Name string
	// Path is that of the URL.
	Path string
	// Code is the status code of the answer.
	Code int32
	// Denied says that the user had no right to ask for it.
	Denied bool
}

// IsRead says that the request was to change nothing.
func (r Request) IsRead() bool {
	return r.Verb == "get" || r.Verb == "list" || r.Verb == "watch"
}

// Audited are the requests that have changed something, or were to, and that the API server has
// answered until now. Options.Audit has to ask for that.
func (c *Cluster) Audited(t testing.TB) []Request {
	t.Helper()
	return slices.DeleteFunc(c.AuditedAll(t), Request.IsRead)
}

// AuditedAll are those of Audited, and besides those by which Lockstep's programs have read. A
// watch is there twice, when it begins and when it ends.
func (c *Cluster) AuditedAll(t testing.TB) []Request {
	t.Helper()
	file, err := os.Open(c.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	requests, err := readAudit(bufio.NewScanner(file))
	if err != nil {
		t.Fatal(err)
	}
	return requests
}

// readAudit reads requests, a line each, in the form of audit.k8s.io/v1. A last line that is not
// whole is left out: it is being written.
func readAudit(lines *bufio.Scanner) ([]Request, error) {
	const longest = 1 << 20
	lines.Buffer(nil, longest)
	var requests []Request
	var broken error
	for lines.Scan() {
		if broken != nil {
			return nil, broken
		}
		var line struct {
			Verb        string
			User        struct{ Username string }
			ObjectRef   struct{ APIGroup, Resource, Subresource, Namespace, Name string }
			RequestURI  string
			Annotations map[string]string
			// ResponseStatus is there once the request is answered.
			ResponseStatus struct{ Code int32 }
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			broken = fmt.Errorf("reading the audit log: %w: %s", err, lines.Bytes())
			continue
		}
		r := Request{
			User: line.User.Username, Verb: line.Verb,
			Group: line.ObjectRef.APIGroup, Resource: line.ObjectRef.Resource, Namespace: line.ObjectRef.Namespace, Name: line.ObjectRef.Name,
			Code: line.ResponseStatus.Code, Denied: line.Annotations["authorization.k8s.io/decision"] == "forbid",
		}
		r.Path, _, _ = strings.Cut(line.RequestURI, "?")
		if line.ObjectRef.Subresource != "" {
			r.Resource += "/" + line.ObjectRef.Subresource
		}
		requests = append(requests, r)
	}
	return requests, lines.Err()
}
