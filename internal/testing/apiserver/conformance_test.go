// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"testing"
	"time"

	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver/conformance"
)

func TestTheServerDoesWhatARealOneDoes(t *testing.T) {
	conformance.Run(t, func(t *testing.T, test conformance.Test) {
		inBubble(t, func(t *testing.T, server *apiserver.Server) {
			server.StartGarbageCollector(100 * time.Millisecond)
			test(t, server.Config(), namespace)
		})
	})
}
