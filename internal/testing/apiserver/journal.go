// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"slices"
	"time"
)

// Entry is a request in the journal.
type Entry struct {
	Request
	// At is when the request was sent, by the clients' clock, from which the server's may differ.
	At time.Time
	// Code is the HTTP status of the answer, even if the client never got the answer; 0 if the request was neither
	// carried out nor refused.
	Code int
	// Answered says that the client got the answer.
	Answered bool
}

// String returns the entry in a line.
func (e Entry) String() string {
	text := fmt.Sprintf("%s %s: %d", e.At.UTC().Format(time.RFC3339Nano), &e.Request, e.Code)
	if !e.Answered {
		text += ", not answered"
	}
	return text
}

// Journal returns the requests so far, in the order in which they ended; a watch counts when it begins. Bodies and
// objects are left out.
func (s *Server) Journal() []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.journal)
}

// Writes are those of the journal that may have changed an object.
func (s *Server) Writes() []Entry {
	return slices.DeleteFunc(s.Journal(), func(e Entry) bool { return !e.Verb.Writes() })
}

// ClearJournal begins a new journal.
func (s *Server) ClearJournal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.journal = nil
}

func (s *Server) record(c *call, at time.Time, code int, answered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := Entry{Request: c.Request, At: at, Code: code, Answered: answered}
	e.Object, e.Body = nil, nil
	s.journal = append(s.journal, e)
}
