// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Verb is what an Action does.
type Verb string

// Verbs. All actions that change an existing object name its UID, so that they never hit a successor.
const (
	// Create creates an object. If an object of the name exists that Action.Owner controls, it counts as created, and is
	// shown from then on as if the cache held it. If another one is there, the creation is refused for now, and is tried
	// again.
	Create Verb = "Create"
	// Update applies Action.Patch to an object.
	Update Verb = "Update"
	// Delete deletes an object, by Action.Propagation.
	Delete Verb = "Delete"
	// ForceDelete deletes a Pod at once, without waiting for its node. There is an Outcome only when a live look has
	// shown that the Pod is gone.
	ForceDelete Verb = "ForceDelete"
	// ConfirmNo looks live whether Action.Owner controls an object of the name. There is an Outcome only if there is no
	// such object; an object that exists is shown from then on, as if the cache held it.
	ConfirmNo Verb = "ConfirmNo"
	// LookFor asks the API server whether an object that has left the cache is gone. If so, the next Known says that.
	// If not, the next Known shows the object as if it were cached; likewise another object with the name that
	// Action.Owner controls. There is no Outcome.
	LookFor Verb = "LookFor"
	// CheckStatus compares the status that the core takes for persisted, and the spec of the decision, with the API
	// server's. If both are equal, Known is current, including Action.Seen; otherwise the engine drops all knowledge of
	// the owner and reads it again. There is no Outcome.
	CheckStatus Verb = "CheckStatus"
	// List reads from the API server all objects of a kind that Action.Selector selects and Action.Owner controls. The
	// next Known shows these objects until the cache is as new, and says which cached objects are gone. There is an
	// Outcome.
	List Verb = "List"
)

// Action is one request to the API server, in the owner's namespace. It is data; the engine runs all actions in one
// place.
type Action struct {
	Verb Verb
	// Kind of the object, by the registered name of the core: "Pod". Empty for CheckStatus.
	Kind string
	// Name of the object; for List, the owner's.
	Name string
	// UID of the object, for all verbs but Create, ConfirmNo and List.
	UID types.UID
	// Owner is the required controller of an existing object with the name, in Create, ConfirmNo, LookFor and List.
	Owner types.UID
	// Selector are the labels that the objects of List have, as a query of labels. The selector selects nothing that the
	// cache leaves out.
	Selector string
	// Object is what Create creates. The object is not changed, and has no namespace but the owner's.
	Object metav1.Object
	// Build makes the object of Create if Object is nil, for objects that are many and take long to build. Several
	// goroutines may call the function. An error is judged like one of the API server.
	Build func() (metav1.Object, error)
	// Patch is the patch of Update, after a check of the UID.
	Patch []Operation
	// Version is the required resource version for Delete, so that nothing is deleted that has changed in an unseen way.
	// An object with another controller is shown as it is now, if the engine remembers its kind, and has no Outcome.
	// Empty: any.
	Version string
	// Propagation is how Delete treats what the object owns. Empty: as the kind says.
	Propagation metav1.DeletionPropagation
	// Group is what the object has in common with others: the Pods of a role are most likely refused for the same
	// cause. While creations of a group are refused, one creation at a time is tried, and its success frees the others.
	// Actions with a group start slowly. An action without a group has a cause of its own.
	Group string
	// Content is what the object says after Create or Update, in short. A write that is repeated with the same content,
	// because another client has undone it, waits longer each time. Empty: the write is repeated at once.
	Content string
	// Seen are UIDs of objects that were known when CheckStatus was planned.
	Seen []types.UID
	// Detail says more about the action for people. Empty for most.
	Detail string
	// Complaint is the reason of the event that reports the failure of the action, if nothing else does. Empty:
	// ActionFailed.
	Complaint string
	// Tag is the core's own, and comes back in the Outcome. The engine does not read this.
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

// Outcome is the result of an action that succeeded. An action that failed for now has no Outcome: a core plans it
// again, and the action may appear in a Block.
type Outcome struct {
	Action Action
	// UID of the created object.
	UID types.UID
	// Refused is why an object will never be created, as the core judges the error. Nil after success.
	Refused error
}
