// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dashboard is a web page of jobs: what jobs do, why they wait, what happened. The server only reads.
//
// A Server is an http.Handler. For each request it identifies the Visitor, and reads with the Visitor's Reader. On
// loopback the Reader uses the user's kubeconfig; in a cluster each of its requests is checked against the visitor's
// rights. So this package decides on no rights; a page says what its visitor may not read.
//
// Pages are made on the server: html/template, and SVG. In a browser that runs scripts a page is live: the script opens
// the page's address as a stream of server-sent events, and replaces the main part whenever it changes. Without
// scripts, pages work but are not live.
//
// All is bounded: how many pages are made at the same time, how many streams there are, how long a page may take to
// read, and how often a stream renders.
package dashboard
