// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcanojobs

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine"
	"github.com/lockstep-k8s/lockstep/controller/volcano"
)

// view is what the engine knows of a Job.
type view = engine.View[*Job, batchv1alpha1.JobStatus]

// snapshot collects the known facts about a Job for a decision. All of it is read only.
func (c *Core) snapshot(view *view, memory volcano.Memory) (volcano.Snapshot, error) {
	snapshot := volcano.Snapshot{
		Job:        view.Owner.Job,
		Unreadable: view.Owner.unreadable,
		Memory:     memory,
		Objects:    map[volcano.ObjectKey]metav1.Object{},
		Options:    c.options,
	}
	if view.DeletionTimestamp != nil && snapshot.Job.DeletionTimestamp == nil {
		deleted := *snapshot.Job // The cache is behind.
		deleted.DeletionTimestamp = view.DeletionTimestamp
		snapshot.Job = &deleted
	}
	var err error
	if snapshot.Pods, err = engine.Owned[*corev1.Pod](view, volcano.KindPod, view.Owner.UID); err != nil {
		return snapshot, err
	}
	if snapshot.PodGroups, err = engine.Owned[*schedulingv1alpha1.PodGroup](view, volcano.KindPodGroup, view.Owner.UID); err != nil {
		return snapshot, err
	}
	for _, kind := range sideKinds {
		objects, err := engine.Owned[metav1.Object](view, kind, view.Owner.UID)
		if err != nil {
			return snapshot, err
		}
		for name, object := range objects {
			snapshot.Objects[volcano.ObjectKey{Kind: kind, Name: name}] = object
		}
	}
	if snapshot.Claims, err = namedClaims(view); err != nil {
		return snapshot, err
	}
	if snapshot.Commands, err = c.commandsFor(view); err != nil {
		return snapshot, err
	}
	snapshot.Known = view.Known // Only now it has all that is terminating.
	snapshot.ForeignGroup, err = c.foreignGroupOf(view.Owner.Job)
	return snapshot, err
}

// sideKinds are the kinds of the objects of a Job besides its Pods and their gang.
var sideKinds = []string{
	volcano.KindService, volcano.KindConfigMap, volcano.KindSecret, volcano.KindNetworkPolicy, volcano.KindClaim,
}

// namedClaims says of the PersistentVolumeClaims that a Job names whether they exist.
func namedClaims(view *view) (map[string]bool, error) {
	exist := map[string]bool{}
	for _, name := range claimsNamedBy(view.Owner) {
		claim, err := engine.Named[metav1.Object](view, volcano.KindClaim, name)
		if err != nil {
			return nil, err
		}
		exist[name] = claim != nil
	}
	return exist, nil
}

// claimsNamedBy returns the PersistentVolumeClaims that a Job names.
func claimsNamedBy(job *Job) []string {
	var names []string
	for _, volume := range job.Spec.Volumes {
		if volume.VolumeClaimName != "" {
			names = append(names, volume.VolumeClaimName)
		}
	}
	return names
}

// commandsFor returns the Commands of the namespace for a Job of the name.
func (c *Core) commandsFor(view *view) ([]*busv1alpha1.Command, error) {
	key := cache.MetaObjectToName(view.Owner).String()
	cached, err := c.commands.GetIndexer().ByIndex(byTarget, key)
	if err != nil {
		return nil, err
	}
	byName := make(map[string]*busv1alpha1.Command, len(cached))
	for _, object := range cached {
		command, ok := object.(*busv1alpha1.Command)
		if !ok {
			return nil, fmt.Errorf("the cache of the kind %s holds a %T", volcano.KindCommand, object)
		}
		byName[command.Name] = command
	}
	engine.Overlay(view, volcano.KindCommand, byName)
	commands := make([]*busv1alpha1.Command, 0, len(byName))
	for _, command := range byName {
		commands = append(commands, command)
	}
	return commands, nil
}

// foreignGroupOf returns the name of a PodGroup of Volcano that a Job controls; "" if there is none.
func (c *Core) foreignGroupOf(job *batchv1alpha1.Job) (string, error) {
	groups, err := c.volcanoGroups.GetIndexer().ByIndex(engine.ByOwner, engine.OwnerKey(job.Namespace, job.UID))
	if err != nil || len(groups) == 0 {
		return "", err
	}
	group, ok := groups[0].(metav1.Object)
	if !ok {
		return "", fmt.Errorf("the cache of PodGroups of Volcano holds a %T", groups[0])
	}
	return group.GetName(), nil
}
