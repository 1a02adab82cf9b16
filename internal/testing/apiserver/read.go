// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (s *Server) get(c *call) (*revision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current(c)
}

// current returns the object that is asked for, as it is.
func (s *Server) current(c *call) (*revision, error) {
	if r := c.table.objects[c.key()]; r != nil {
		return r, nil
	}
	return nil, apierrors.NewNotFound(c.table.GroupResource(), c.Name)
}

// list returns the selected objects, in order of their names, and their version.
func (s *Server) list(c *call) (uint64, []*revision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.query.version > s.version {
		return 0, nil, tooLarge(c.query.version, s.version)
	}
	index, version := s.readable(c)
	if c.query.versionMatch == metav1.ResourceVersionMatchExact {
		if c.query.version < c.table.forgotten {
			return 0, nil, apierrors.NewResourceExpired("the version is too old")
		}
		index, version = c.table.since(c.query.version), c.query.version
	}
	var found []*revision
	for _, r := range c.table.state(index) {
		if c.query.sees(r) {
			found = append(found, r)
		}
	}
	return version, found, nil
}
