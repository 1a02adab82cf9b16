// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package barrier is FrameworkBarrier: an init container that lets the
// containers of a task start only when every task of its Framework has a Pod
// with an address, and that then tells them those addresses in files.
//
// It looks at the Framework once, and from there on watches that one object: what
// the API server sends grows with the changes of the Framework, not with the time
// that is waited. When the watch ends, for whatever reason, the next look follows,
// and looks are at least Config.Interval apart. A service account that may only
// get Frameworks is enough: without a watch there is a look every interval.
//
// Readiness is counted against the spec (see Check): tasks that a rescale has
// already doomed are neither waited for nor shown, and tasks that it asks for are
// waited for even before the controller knows of them.
//
// What can't change while it waits ends it at once: a bad configuration, no such
// Framework, no permission to read it. Everything else, an API server that is
// away included, is waited out until Config.Timeout. The exit code (see ExitCode)
// tells the controller whether to try again.
package barrier
