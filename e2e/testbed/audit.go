// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

// Request is one that has changed something, or was to.
type Request struct {
	// User is who asked.
	User, Verb string
	// Resource is what it was about, such as pods, with a slash and its subresource if it was
	// about that.
	Resource, Namespace, Name string
	// Code is the status code of the answer.
	Code int32
}

// Audited are the requests that the API server has answered until now. Options.Audit has to ask
// for that.
func (c *Cluster) Audited(t testing.TB) []Request {
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
			Verb      string
			User      struct{ Username string }
			ObjectRef struct{ Resource, Subresource, Namespace, Name string }
			// ResponseStatus is there once the request is answered.
			ResponseStatus struct{ Code int32 }
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			broken = fmt.Errorf("reading the audit log: %w: %s", err, lines.Bytes())
			continue
		}
		r := Request{
			User: line.User.Username, Verb: line.Verb,
			Resource: line.ObjectRef.Resource, Namespace: line.ObjectRef.Namespace, Name: line.ObjectRef.Name,
			Code: line.ResponseStatus.Code,
		}
		if line.ObjectRef.Subresource != "" {
			r.Resource += "/" + line.ObjectRef.Subresource
		}
		requests = append(requests, r)
	}
	return requests, lines.Err()
}
