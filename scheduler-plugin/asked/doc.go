// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package asked answers questions about gangs over HTTP:
//
//	GET  /lockstep/v1/line[?namespace=NS]           who is next, answers.Line
//	GET  /lockstep/v1/why/{namespace}/{podgroup}    why a gang is not running, answers.Why
//	POST /lockstep/v1/simulate                      where a gang would go: answers.Question, answers.Simulation
//
// Nothing is changed by any of them. Who asks is known already when a request comes here
// (request.UserFrom); what he may read is asked of the API server, for each answer (rights.go):
// whoever may get a PodGroup is told about it, and what he may not list is a count in the answer.
//
// # Bounds
//
// One answer is worked out at a time, beside the scheduling goroutine and on a Snapshot that nobody
// changes. A few more requests are read, ask what their users may read, and wait for their turn; others are
// answered 429, unread. In its turn a request waits for nobody. A request has a size and a time at most; a client that is told that it took too long leaves an answer that
// is still worked out, and the next one waits for it.
package asked
