// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/status"
)

// nominated is gangs with the nodes for which their members are to be nominated: where room
// is kept for them, on which Pods run that end soon.
type nominated struct {
	status.Gangs
	room *room.Room
}

// Look implements status.Gangs.
func (n nominated) Look(key dialect.Key) (news.Gang, bool) {
	gang, ok := n.Gangs.Look(key)
	for i := range gang.Pods {
		gang.Pods[i].Nominee = n.nominee(&gang, &gang.Pods[i])
	}
	return gang, ok
}

// LookAt implements status.Gangs.
func (n nominated) LookAt(key dialect.Key, uid types.UID) (news.Gang, news.Pod, bool) {
	gang, pod, ok := n.Gangs.LookAt(key, uid)
	if ok {
		pod.Nominee = n.nominee(&gang, &pod)
	}
	return gang, pod, ok
}

// nominee is the node for which a Pod of a gang is to be nominated.
func (n nominated) nominee(gang *news.Gang, pod *news.Pod) string {
	if gang.Group == nil || pod.Stranger {
		return ""
	}
	return n.room.NodeFor(gang.Key, gang.Group.UID, pod.Pod.UID)
}
