// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// planObjects creates the claims of the Job and the objects of its plugins, which the Pods need. planObjects reports
// whether all of them exist.
func (d *decision) planObjects() bool {
	ready := true
	for _, claim := range d.builder.claims {
		switch {
		case claim.Object == nil && !d.Claims[claim.Name]:
			d.obstruct(ReasonPVCError, "PersistentVolumeClaim %s, which the Job names, does not exist", claim.Name)
			ready = false
		case claim.Object != nil && d.object(KindClaim, claim.Name) == nil:
			d.create(KindClaim, claim.Name, func(a *plan.Action) { a.Object = claim.Object })
			ready = false
		}
	}
	for _, o := range d.sides {
		existing := d.object(o.Kind, o.Name)
		switch {
		case existing == nil:
			if o.Lost != "" && d.counts().running > 0 {
				d.WarnOnce(ReasonPluginError, "%s", o.Lost)
			}
			d.create(o.Kind, o.Name, func(a *plan.Action) {
				a.Object = o.Object
				if build := o.Build; build != nil {
					keys := d.Memory.keys.Once(d.Options.Keys)
					d.memory.keys = keys
					a.Build = func() (metav1.Object, error) { return build(keys) }
				}
			})
			ready = false
		case existing.GetDeletionTimestamp() != nil:
			ready = false // It is made anew once it is gone.
		case o.differs(existing):
			d.ActIfCurrent(plan.Action{
				Verb: plan.Update, Kind: o.Kind, Name: o.Name, UID: existing.GetUID(), Patch: o.patch(), Content: o.Digest,
			})
			ready = false
		}
	}
	for _, warning := range d.warnings {
		d.WarnOnce(ReasonPluginError, "%s", warning)
	}
	return ready
}

// object returns an object of the Job. Nil if there is none.
func (d *decision) object(kind, name string) metav1.Object {
	object := d.Objects[ObjectKey{kind, name}]
	if object == nil || d.Gone[object.GetUID()] {
		return nil
	}
	return object
}

func (d *decision) create(kind, name string, fill func(*plan.Action)) {
	action := plan.Action{Verb: plan.Create, Kind: kind, Name: name, Owner: d.Job.UID, Content: d.content()}
	fill(&action)
	d.ActIfCurrent(action)
}

// planRemovals deletes the objects of plugins if the Job is over, or if the spec no longer has the plugin. Claims stay
// as long as the Job.
func (d *decision) planRemovals() {
	for _, key := range pluginObjects(d.Job.Name) {
		existing := d.object(key.Kind, key.Name)
		if existing != nil && existing.GetDeletionTimestamp() == nil && !d.Deleted[existing.GetUID()] {
			d.Act(jobpods.Deletion(key.Kind, existing))
		}
	}
}

// writeResources writes status.controlledResources: the Job's plugins, as long as all their objects exist and the Job
// has not ended, and the claims of the Job's volumes, which stay listed.
func (d *decision) writeResources() {
	over := isOver(d.next.State.Phase)
	if d.builder == nil && !over {
		return
	}
	resources := maps.Clone(d.next.ControlledResources)
	maps.DeleteFunc(resources, func(key, _ string) bool { return strings.HasPrefix(key, pluginPrefix) })
	if resources == nil {
		resources = map[string]string{}
	}
	missing := slices.ContainsFunc(d.sides, func(o sideObject) bool { return d.object(o.Kind, o.Name) == nil })
	if !over && !missing {
		maps.Copy(resources, pluginResources(d.spec))
	}
	if d.builder != nil && d.recordedHash() == d.hash { // Else they are not the claims of the Job.
		d.writeClaims(resources)
	}
	if len(resources) == 0 {
		resources = nil
	}
	d.next.ControlledResources = resources
}

// writeClaims writes into the status which claims of the spec exist or have existed. writeClaims removes all other
// entries, because each change of a claim's name would leave one behind.
func (d *decision) writeClaims(resources map[string]string) {
	named := claimResources(d.builder.claims)
	maps.DeleteFunc(resources, func(key, _ string) bool { return strings.HasPrefix(key, claimPrefix) && named[key] == "" })
	for _, c := range d.builder.claims {
		if d.object(KindClaim, c.Name) != nil || c.Object == nil && d.Claims[c.Name] {
			resources[claimPrefix+c.Name] = c.Name
		}
	}
}

// patch rewrites what an object of a plugin holds.
func (o sideObject) patch() []plan.Operation {
	return []plan.Operation{{Op: "add", Path: "/data", Value: o.Object.(*corev1.ConfigMap).Data}}
}
