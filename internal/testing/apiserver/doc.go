// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver is an API server of Kubernetes in memory, for tests of
// programs that use real clients.
//
//	server := apiserver.New(t)
//	client, err := kubernetes.NewForConfig(server.Config())
//
// It needs no sockets: the client's goroutine does the server's work. In a bubble
// of testing/synctest everything that waits for it is durably blocked, so that time
// passes only when all have done what there is to do. Servers and their clients
// are cheap enough to make one for each of thousands of simulated lives.
//
// # What is modelled
//
//   - Objects: resource versions, UIDs, times of creation by the server's own clock,
//     generations, finalizers, conflicts and preconditions, the subresource status,
//     the rules of names, labels and owner references, classes of priority, bindings.
//     All patches, server-side apply among them. Creations that are a dry run. JSON, protobuf for Kubernetes' own
//     types, and answers with metadata only.
//   - Deletion: in the foreground, in the background, orphaning; of Pods with the time
//     that they have to end. A garbage collector, in steps or by itself.
//   - Watches: with initial events or from a version, with bookmarks if a test asks
//     for them, by labels and fields: an object that stops being selected is seen as
//     deleted.
//   - What goes wrong: see Fault, for single requests, Process, for what a program
//     sees late, loses, or does not live to see, and Server.Restore.
//
// # What is not
//
//   - Nothing runs but the server: no kubelet, scheduler or quota. A test plays their
//     part, with Change, Remove and hooks.
//   - Specs are not validated, and custom resources have no schema: no defaults, no
//     pruning but that of Server.DropFromStatus, and server-side apply takes lists as a whole.
//   - Whoever asks may do everything. Lists come in one piece. Watches last until
//     they are dropped.
package apiserver
