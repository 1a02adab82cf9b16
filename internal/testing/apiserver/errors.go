// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import utilruntime "k8s.io/apimachinery/pkg/util/runtime"

// Errors that are not returned are logged and nothing else. client-go would also let each goroutine that meets one
// sleep until a millisecond after the last one, by a time that all bubbles of testing/synctest share: where the clock
// of a bubble is behind that, an informer sleeps for years.
func init() {
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
}
