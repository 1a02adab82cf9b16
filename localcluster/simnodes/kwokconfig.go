// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package simnodes

import (
	_ "embed"
	"fmt"
)

//go:embed stages.yaml
var stages string

// playParallelism is how many Pods KWOK patches at a time. Its default of 4 makes a thousand
// Pods take half a minute; beyond 64 the API server is the limit.
const playParallelism = 64

// KwokConfig returns KWOK's configuration file: its options and the stages.
//
// Leases are renewed after a quarter of their duration, 15 minutes. With the usual 40 seconds, a
// thousand nodes would keep the API server busy with a hundred writes a second, and those that
// were made at the same time renew at the same time: a burst that hits one measurement and
// misses the next.
//
// Debugging handlers are off, as they need a serving certificate and do nothing for Pods that
// have no processes.
func KwokConfig() string {
	return fmt.Sprintf(`apiVersion: config.kwok.x-k8s.io/v1alpha1
kind: KwokConfiguration
metadata:
  name: lockstep-local
options:
  cidr: %s
  manageNodesWithLabelSelector: %s=%s
  nodeLeaseDurationSeconds: 3600
  nodeLeaseParallelism: 16
  nodePlayStageParallelism: 16
  podPlayStageParallelism: %d
  podsOnNodeSyncParallelism: 4
  enableDebuggingHandlers: false
---
%s`, PodCIDR, TypeLabel, TypeKwok, playParallelism, stages)
}
