// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"iter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// Owner is an object that a core decides on, with metadata and spec. The status is kept separately.
type Owner interface {
	metav1.Object
	runtime.Object
}

// Core connects a kind of owner to the engine. O is the type of the owner, and S the type of its status. A Core must be
// safe for concurrent use.
type Core[O Owner, S any] interface {
	// Resource says how the API server knows the owners.
	Resource() Resource
	// Kinds returns the kinds of objects that are watched, created and deleted for owners. It is called once.
	Kinds() []Kind
	// DecodeOwner decodes an owner that the API server has sent. It returns an error if the owner is invalid; then a
	// warning says so, and nothing is done before the spec is changed. The result must have the metadata even then.
	// spec may be empty. Leave out fields that the core does not need, such as managed fields, which are large.
	DecodeOwner(kind metav1.TypeMeta, metadata metav1.ObjectMeta, spec []byte) (O, error)
	// Ignores reports whether this controller must leave an owner alone. The controller then reads, writes and reports
	// nothing about that owner, even if the owner is invalid.
	Ignores(owner O) bool
	// DecodeStatus reads a stored status, which is not empty.
	DecodeStatus(stored []byte) (*S, error)
	// Rests is called when the controller first sees an owner, after the caches have been filled. rests reports whether
	// there is nothing to do for the owner until the time `until`, unless something changes. state is what State would
	// return. Rests should not decode the whole status, because a controller starts with many owners that ended long
	// ago.
	Rests(owner O, stored []byte, now time.Time) (state string, until time.Time, rests bool)
	// NewDecider begins to decide on an owner.
	NewDecider() Decider[O, S]
	// Size returns how many Pods an owner with this status has, including Pods that are still to be created. It
	// measures what a decision and a write of the status cost. status may be nil.
	Size(owner O, status *S) int
	// UIDs are those of objects that a status names.
	UIDs(status *S) iter.Seq[types.UID]
	// WithOthers returns `status` with the fields that other programs may write, such as conditions, taken from
	// `stored`. Neither argument is nil.
	WithOthers(status, stored *S) *S
	// Kept returns what the API server stores of a status, given a status that it has stored: all of it, unless the CRD
	// is another product's and lacks fields. If `stored` is empty, Kept returns what every CRD stores. Neither argument
	// is nil.
	Kept(status, stored *S) *S
	// RefusesForGood reports whether an error at the creation of an object means that the object will never be created.
	// After any other error the creation is tried again.
	RefusesForGood(action plan.Action, err error) bool
	// Templates returns the Pod templates of an owner from which Pods may still be created; none if the owner has
	// ended. The engine asks the API server which of their fields it does not know. status may be nil.
	Templates(owner O, status *S) []Template
	// FateOf decides what happens to an existing object without a controller that has the name of an object to create.
	FateOf(owner O, kind string, object metav1.Object) Fate
	// Unwatched returns an object of an unwatched kind that the owner has, or may have left behind. name is "" if there
	// is none. status may be nil.
	Unwatched(owner O, status *S) (kind, name string)
	// State returns the state of an owner as a label for metrics. The labels are few, whatever the status contains. An
	// owner with the label "" is not counted. status may be nil.
	State(status *S) string
	// Turns returns what happened to an owner between two successively written statuses, for metrics. `before` may be
	// nil.
	Turns(owner O, before, after *S, now time.Time) []plan.Turn
	// StatusWritten is called with each two successively written statuses. `before` may be nil. StatusWritten must not
	// block.
	StatusWritten(owner O, before, after *S)
	// OwnerDeleted is called with an owner that is gone, and with its last stored status.
	OwnerDeleted(owner O, stored []byte)
}

// Decider decides on one owner. A Decider may remember things about the owner while the controller runs, but must stay
// correct without that memory. Only one goroutine at a time uses a Decider.
type Decider[O Owner, S any] interface {
	// Decide returns what to do next. It must not change the view. An error ends the sync, which is tried again.
	Decide(view *View[O, S], now time.Time, entropy plan.Entropy) (plan.Plan[S], error)
	// Encode makes JSON of a status, to be stored.
	Encode(status *S) ([]byte, error)
	// Shorten returns a status that is small enough to be stored, and its JSON. If it returns an error, a warning says
	// so, actions that depend on the status wait, and the write is tried again after growing delays.
	Shorten(owner O, status *S, now time.Time) (*S, []byte, error)
}

// Resource is how the API server knows the owners of a core.
type Resource struct {
	// GroupVersionKind and Plural name the kind.
	schema.GroupVersionKind
	Plural string
	// API reads and writes the owners, in JSON, at their group and version.
	API rest.Interface
	// Optional means that the API server may not serve these owners, or the kinds of their objects. Owners of other
	// cores then don't wait until these have been listed.
	Optional bool
}

// Kind is a kind of objects that a core watches, or writes, or both.
type Kind struct {
	// Name is the name in actions and lookups.
	Name string
	// Client writes the objects, and reads single objects. Nil for a kind that is only watched.
	Client Client
	// Informer caches the objects. It should hold only what is needed of them, and must begin with the current state:
	// see informing.WantCurrent.
	Informer cache.SharedIndexInformer
	// OwnersOf returns the names of the owners, in the object's namespace, that have to be synced when the object
	// changes. Nil if objects of this kind cause no sync.
	OwnersOf func(object metav1.Object) []string
	// Delay lets changes come together before an owner is synced.
	Delay time.Duration
	// Unawaited says that owners are synced without waiting for the cache.
	Unawaited bool
	// Unwatched means that objects of this kind are neither listed nor watched, because the controller lacks the right.
	// The object that Core.Unwatched names is read when the owner is seen for the first time, and then now and then.
	// Informer is nil then.
	Unwatched bool
	// Optional means that the API server need not serve the kind. If the controller may not list it, no object counts
	// as existing: the API server checks rights before it looks for the kind.
	Optional bool
	// Remembers means that the core sees a written object at once: until the cache has it, the engine adds it to the
	// core's View. The core then gets no plan.Outcome of the creation. Otherwise the core sees the object only once the
	// cache has it, and gets an Outcome with the UID, which it stores in the status.
	Remembers bool
	// Reduce reduces a listed object to what the cache would hold. Nil keeps everything.
	Reduce func(object metav1.Object) metav1.Object
}

// Fate is what to do with an existing object that has the name of an object to create but no controller reference.
type Fate int

const (
	// Foreign is another owner's: the creation waits until the object is gone.
	Foreign Fate = iota
	// Leftover: the object belonged to the owner and was orphaned. From then on the object is shown as if the cache
	// held it, and the core decides about it.
	Leftover
	// Removable: the object belonged to the owner, and the core does not need it. It is deleted, and the creation is
	// repeated.
	Removable
)

// Defaults are what most cores do in the same way, to be embedded.
type Defaults[O Owner, S any] struct{}

// Ignores returns false: all owners are the controller's.
func (Defaults[O, S]) Ignores(O) bool { return false }

// Rests returns false: only a decision shows that.
func (Defaults[O, S]) Rests(O, []byte, time.Time) (string, time.Time, bool) {
	return "", time.Time{}, false
}

// UIDs returns none: the status names no UID.
func (Defaults[O, S]) UIDs(*S) iter.Seq[types.UID] { return func(func(types.UID) bool) {} }

// WithOthers returns the status: no other client writes it.
func (Defaults[O, S]) WithOthers(status, _ *S) *S { return status }

// Kept returns the status: everything is kept.
func (Defaults[O, S]) Kept(status, _ *S) *S { return status }

// RefusesForGood returns false: all is tried again.
func (Defaults[O, S]) RefusesForGood(plan.Action, error) bool { return false }

// Templates returns none.
func (Defaults[O, S]) Templates(O, *S) []Template { return nil }

// FateOf returns Foreign.
func (Defaults[O, S]) FateOf(O, string, metav1.Object) Fate { return Foreign }

// Unwatched returns none: all kinds are watched.
func (Defaults[O, S]) Unwatched(O, *S) (kind, name string) { return "", "" }

// State returns the empty one: such an owner is not counted.
func (Defaults[O, S]) State(*S) string { return "" }

// Turns returns none.
func (Defaults[O, S]) Turns(O, *S, *S, time.Time) []plan.Turn { return nil }

// StatusWritten does nothing.
func (Defaults[O, S]) StatusWritten(O, *S, *S) {}

// OwnerDeleted does nothing.
func (Defaults[O, S]) OwnerDeleted(O, []byte) {}

// errWhole is what a core says that has no shorter status.
var errWhole = errors.New("the status has nothing that could be left out")

// Whole is embedded in Deciders whose status is small, or can't be shortened.
type Whole[O Owner, S any] struct{}

// Shorten fails.
func (Whole[O, S]) Shorten(O, *S, time.Time) (*S, []byte, error) { return nil, nil, errWhole }
