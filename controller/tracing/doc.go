// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tracing sends spans of Frameworks to a collector of OpenTelemetry. Spans wait in a bounded queue: a slow or
// unreachable collector delays nothing, and causes lost spans.
package tracing
