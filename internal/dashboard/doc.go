// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dashboard is a web page of jobs: what jobs do, why they wait, what happened. The server only reads.
//
// A Server is an http.Handler. For each request it identifies the Visitor, and reads with the Visitor's Reader: on
// loopback that has the user's kubeconfig; in a cluster the visitor's rights are checked for each request. So nothing
// here decides on rights, and what may not be read is said on the page.
//
// Pages are made on the server: html/template, and SVG. A page is live if its browser runs scripts: a page opens the
// same address as a stream of server-sent events, and gets a new main part when that has changed. Pages work without.
//
// All is bounded: how many pages are made at the same time, how many streams there are, how long a page may take to
// read, and how often a stream renders.
package dashboard
