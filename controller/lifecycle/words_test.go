// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import "github.com/lockstep-k8s/lockstep/controller/engine/plan"

// Words of package plan, as tests say them: they call a Plan a plan.
type (
	Action  = plan.Action
	Outcome = plan.Outcome
	Block   = plan.Block
	Event   = plan.Event
	Persist = plan.Persist
)

const (
	PersistNone  = plan.PersistNone
	PersistLater = plan.PersistLater
	PersistSoon  = plan.PersistSoon
	PersistNow   = plan.PersistNow
)

// What actions do, by Action.Does.
const (
	CreateConfigMap    = "CreateConfigMap"
	DeleteConfigMap    = "DeleteConfigMap"
	ConfirmNoConfigMap = "ConfirmNoConfigMap"
	LookForConfigMap   = "LookForConfigMap"
	CreatePodGroup     = "CreatePodGroup"
	UpdatePodGroup     = "UpdatePodGroup"
	CreatePod          = "CreatePod"
	DeletePod          = "DeletePod"
	ForceDeletePod     = "ForceDeletePod"
	ConfirmNoPod       = "ConfirmNoPod"
	LookForPod         = "LookForPod"
	ListPods           = "ListPod"
	CheckStatus        = "CheckStatus"
	DeleteFramework    = "DeleteFramework"
)
