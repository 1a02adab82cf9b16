// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tracing sends spans of Frameworks to an OpenTelemetry collector. Spans wait in a bounded queue. If the
// collector is slow or unreachable, spans are lost and nothing else is delayed.
package tracing
