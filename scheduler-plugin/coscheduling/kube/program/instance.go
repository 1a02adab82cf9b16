// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"

	"k8s.io/client-go/rest"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/kubernetes/pkg/scheduler"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
)

// Instance is a scheduler that was created and does not run yet.
type Instance struct {
	// Scheduler is the scheduler in the form that the plugin uses.
	Scheduler *kube.Scheduler
	// KubeConfig is the connection to the API server.
	KubeConfig *rest.Config

	program *Program
	config  *config.CompletedConfig
	sched   *scheduler.Scheduler
}

func instance(p *Program, cc *config.CompletedConfig, sched *scheduler.Scheduler) (*Instance, error) {
	inside, err := kube.Of(sched)
	if err != nil {
		return nil, err
	}
	return &Instance{
		Scheduler: inside, KubeConfig: cc.KubeConfig,
		program: p, config: cc, sched: sched,
	}, nil
}

// Run serves HTTP, takes part in leader election and schedules, until ctx ends or something fails. It always returns an
// error.
func (i *Instance) Run(ctx context.Context) error {
	if gates, ok := i.program.gates().(featuregate.MutableFeatureGate); ok {
		gates.AddMetrics()
	}
	i.program.opts.ComponentGlobalsRegistry.AddMetrics()
	return app.Run(ctx, i.config, i.sched)
}
