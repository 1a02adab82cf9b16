// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	schedulingclient "github.com/lockstep-k8s/lockstep/client/clientset/versioned"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/starts"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/whatif"
)

// tellerOf returns the Teller that writes expected starts into PodGroups, nil if that is turned off.
func tellerOf(e *engine, informers informers.SharedInformerFactory, pods cache.Store, links *dialect.Links, client schedulingclient.Interface) *starts.Teller {
	interval := anyPlugin(e.plugins).args.ExpectedStarts.Interval.Duration
	if interval == 0 {
		return nil
	}
	nodes := informers.Core().V1().Nodes().Lister()
	return &starts.Teller{Client: client, Interval: interval,
		Reserved: func() map[dialect.Key][]string { return inTime(&e.room) },
		Snapshot: func() (*whatif.Snapshot, error) {
			s := &whatif.Snapshot{Now: time.Now(), Groups: e.reader.Groups(), Links: links, Serves: e.serves}
			var err error
			if s.Nodes, err = nodes.List(labels.Everything()); err != nil {
				return nil, fmt.Errorf("listing nodes: %w", err)
			}
			// Of nodes that are alike, the first one is taken: the same one each time.
			slices.SortFunc(s.Nodes, func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
			slices.SortFunc(s.Groups, func(a, b *dialect.Group) int { return a.Key.Compare(b.Key) })
			for _, object := range pods.List() {
				s.Pods = append(s.Pods, object.(*corev1.Pod))
			}
			classes, err := e.classes.lister.List(labels.Everything())
			if err != nil {
				return nil, fmt.Errorf("listing PriorityClasses: %w", err)
			}
			for _, class := range classes {
				s.AddClass(class)
			}
			return s, nil
		}}
}

// inTime returns the nodes with reservations in time, by gang.
func inTime(of *room.Room) map[dialect.Key][]string {
	nodes := make(map[dialect.Key][]string)
	for _, r := range of.InOrder() {
		if r.Reason == room.InTime {
			nodes[r.Gang.Rank.Key] = r.Nodes()
		}
	}
	return nodes
}
