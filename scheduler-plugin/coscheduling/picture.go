// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/whatif"
)

// ErrNotLeading is of a scheduler that knows no answers: another one leads, or it has just begun.
var ErrNotLeading = errors.New("this scheduler does not lead, or does not know the cluster yet")

// Picture is all that the scheduler knows which answers to questions about gangs rest on. It is for
// any goroutine: it takes no turn of the scheduler, and no lock for longer than pointers take to be copied.
// The error is ErrNotLeading while there is no answer. It comes after Attach.
func Picture(sched *kube.Scheduler) (*whatif.Snapshot, error) {
	plugin := anyPlugin(pluginsOf(sched.Profiles()))
	if plugin == nil || plugin.engine == nil {
		return nil, ErrNotLeading
	}
	return plugin.engine.picture()
}

func (e *engine) picture() (*whatif.Snapshot, error) {
	known, leads := e.gangs.All()
	if !leads {
		return nil, ErrNotLeading
	}
	s := &whatif.Snapshot{Now: time.Now(), Links: e.gangs.Links(), Serves: e.serves, Known: make(map[dialect.Key]whatif.Known, len(known))}
	members := make(map[types.UID]bool)
	for _, gang := range known {
		s.Groups = append(s.Groups, gang.Group)
		s.Known[gang.Group.Key] = whatif.Known{Refusal: gang.Refusal, BackOffUntil: gang.BackOff}
		s.Pods = append(s.Pods, gang.Members...)
		for _, pod := range gang.Members {
			members[pod.UID] = true
		}
	}
	core := anyPlugin(e.plugins).handle.SharedInformerFactory().Core().V1()
	pods, err := core.Pods().Lister().List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("listing Pods: %w", err)
	}
	for _, pod := range pods {
		if !members[pod.UID] {
			s.Pods = append(s.Pods, pod)
		}
	}
	if s.Nodes, err = core.Nodes().Lister().List(labels.Everything()); err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	classes, err := e.classes.lister.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("listing PriorityClasses: %w", err)
	}
	for _, class := range classes {
		s.AddClass(class)
	}
	for _, claim := range e.room.InOrder() {
		keptFrom := func(behind whatif.Behind) bool {
			return claim.IsKeptFromGang(room.Behind{Rank: behind.Rank, Broken: behind.Broken})
		}
		for _, member := range claim.Members() {
			s.Held = append(s.Held, whatif.Held{For: claim.Gang().Rank.Key, Pod: member.Pod, KeptFrom: keptFrom})
		}
	}
	return s, nil
}
