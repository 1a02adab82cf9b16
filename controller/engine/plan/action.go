// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Verb is what an Action does.
type Verb string

// Verbs. All actions that change an existing object name its UID, so that they never change another object of the same
// name.
const (
	// Create creates an object. An existing object with that name counts as created if Action.Owner controls it; from
	// then on that object is shown as if the cache held it. If any other object has the name, the creation counts as
	// refused for now and is tried again.
	Create Verb = "Create"
	// Update applies Action.Patch to an object.
	Update Verb = "Update"
	// Delete deletes an object, by Action.Propagation.
	Delete Verb = "Delete"
	// ForceDelete deletes a Pod at once, without waiting for its node. It has an Outcome only once a live read has
	// shown that the Pod is gone.
	ForceDelete Verb = "ForceDelete"
	// ConfirmNo reads from the API server whether Action.Owner controls an object with the name. It has an Outcome only
	// if there is no such object. An object that exists is shown from then on, as if the cache held it.
	ConfirmNo Verb = "ConfirmNo"
	// LookFor reads an object that has left the cache. The next Known says that the object is gone, or shows the object
	// as if the cache held it. If another object has the name, and Action.Owner controls that object, Known shows that
	// one, too. LookFor has no Outcome.
	LookFor Verb = "LookFor"
	// CheckStatus compares the status that the core believes to be persisted, and the spec that it decided on, with the
	// API server's. If both are equal, the next Known is Current, and has Action.Seen in Checked. Otherwise the engine
	// forgets the owner and reads it again. CheckStatus has no Outcome.
	CheckStatus Verb = "CheckStatus"
	// List reads all objects of a kind from the API server that Action.Selector selects and Action.Owner controls. The
	// next Known shows them until the cache is as new, and says which cached objects are gone. List has an Outcome.
	List Verb = "List"
)

// Action is one request to the API server, in the owner's namespace. It is data; the engine runs all actions in one
// place.
type Action struct {
	Verb Verb
	// Kind is the kind of the object, by the name under which the core has registered it, such as "Pod". Empty for
	// CheckStatus.
	Kind string
	// Name of the object; for List, the owner's.
	Name string
	// UID of the object, for all verbs but Create, ConfirmNo and List.
	UID types.UID
	// Owner is the UID that the controller reference of an existing object must have, in Create, ConfirmNo, LookFor and
	// List.
	Owner types.UID
	// Selector is the label selector of List. The cache must contain all objects that it selects.
	Selector string
	// Object is the object to create. It has the owner's namespace or none, and the engine does not change it.
	Object metav1.Object
	// Build builds the object to create, if Object is nil. Use it for many objects that take long to build. It must be
	// safe for concurrent use. Its error is treated like an error of the API server.
	Build func() (metav1.Object, error)
	// Patch is the patch of Update, after a check of the UID.
	Patch []Operation
	// Version is the resource version that Delete requires, so that nothing is deleted that has changed since the
	// decision; empty for any. If the object has another controller by now, Delete has no Outcome, and the object is
	// shown as it is if the engine remembers its kind.
	Version string
	// Propagation is how Delete treats what the object owns. Empty: as the kind says.
	Propagation metav1.DeletionPropagation
	// Group names objects that are most likely refused for the same cause, such as the Pods of a role. While creations
	// of a group are refused, only one at a time is tried; if it succeeds, the others follow. Few actions of a group
	// are tried at first. An action without a group has a cause of its own.
	Group string
	// Content describes what the object contains after Create or Update. If another client undoes a write, each
	// repetition with the same Content waits longer. If Content is empty, the write is repeated at once.
	Content string
	// Seen are UIDs of objects that were known when CheckStatus was planned.
	Seen []types.UID
	// Detail says more about the action for people. Empty for most.
	Detail string
	// Complaint is the reason of the event that reports the failure of the action, if nothing else does. Empty means
	// ActionFailed.
	Complaint string
	// Tag is a value of the core's own. The Outcome has it; the engine does not use it.
	Tag any
}

// Does returns the verb and the kind of an action: "CreatePod".
func (a Action) Does() string { return string(a.Verb) + a.Kind }

// String shows the action in a trace: the verb and the object.
func (a Action) String() string {
	shown := a.Does() + " " + a.Name
	if a.Detail != "" {
		shown += " " + a.Detail
	}
	return shown
}

// Operation is one step of a JSON patch (RFC 6902).
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// Outcome is the result of an action that succeeded. An action that failed for now has no Outcome: the core plans it
// again, and it may appear in a Block.
type Outcome struct {
	Action Action
	// UID of the created object.
	UID types.UID
	// Refused is why the object will never be created, by the core's judgement of the error; nil if it was created.
	Refused error
}
