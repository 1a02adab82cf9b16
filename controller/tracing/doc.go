// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tracing sends spans of Frameworks to a collector of OpenTelemetry. What is to be sent waits in a queue that
// has a bound: a collector that is slow, or away, delays nothing, and costs spans.
package tracing
