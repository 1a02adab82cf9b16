// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import utilruntime "k8s.io/apimachinery/pkg/util/runtime"

// Unreturned errors are only logged. client-go would also make each goroutine with such an error sleep until a
// millisecond after the last error, by a time that all bubbles of testing/synctest share: if the clock of a bubble is
// behind that time, an informer sleeps for years.
func init() {
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
}
