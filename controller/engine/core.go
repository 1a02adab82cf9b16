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

// Core describes a kind of owner to the engine. O is the type of the owner, and S the type of its status. Several
// goroutines may use a Core.
type Core[O Owner, S any] interface {
	// Resource says how the API server knows the owners.
	Resource() Resource
	// Kinds are the objects that are watched, created and deleted for owners. Start is called once.
	Kinds() []Kind
	// DecodeOwner decodes an owner from the API server, or returns why the owner makes no sense: then a warning says so,
	// and nothing is done until the spec is changed. In any case the result has the metadata. The spec may be empty.
	// Managed fields are large: fields that a core does not need are left out.
	DecodeOwner(kind metav1.TypeMeta, metadata metav1.ObjectMeta, spec []byte) (O, error)
	// Ignores reports whether this controller must leave an owner alone: it then reads, writes and reports nothing
	// about the owner, valid or not.
	Ignores(owner O) bool
	// DecodeStatus reads a stored status, which is not empty.
	DecodeStatus(stored []byte) (*S, error)
	// Rests is called when the controller sees an owner for the first time. It reports whether the stored status alone
	// shows that there is nothing to do until some time or a change, and the owner's State. It should not decode the
	// status: a controller starts with many owners that ended long ago. The caches are filled.
	Rests(owner O, stored []byte, now time.Time) (state string, until time.Time, rests bool)
	// NewDecider begins to decide on an owner.
	NewDecider() Decider[O, S]
	// Size is how many Pods an owner and a status of it are about, including Pods that are still to be created: Size
	// measures the cost of a decision and of a write of the status. The status may be nil.
	Size(owner O, status *S) int
	// UIDs are those of objects that a status names.
	UIDs(status *S) iter.Seq[types.UID]
	// WithOthers is a status with what others may write into the stored status, such as conditions. Neither is nil.
	WithOthers(status, stored *S) *S
	// Kept is what the API server keeps of a status, judged by a stored one: all of it, unless the CRD of the owners is
	// another product's, and lacks fields. For an empty stored one the result is what any CRD keeps. Neither is nil.
	Kept(status, stored *S) *S
	// RefusesForGood reports whether an error at the creation means that the object will never be created. All other
	// errors may be gone at the next try.
	RefusesForGood(action plan.Action, err error) bool
	// Templates are the Pod templates of an owner from which Pods may still be made: none after the end. The engine asks
	// the API server which of the template's fields are unknown. The status may be nil.
	Templates(owner O, status *S) []Template
	// FateOf decides about an object that has the name of one to be created, and no controller.
	FateOf(owner O, kind string, object metav1.Object) Fate
	// Unwatched returns an object of an unwatched kind that an owner with a status has, or may have left behind; the
	// name is "" if there is none. status may be nil.
	Unwatched(owner O, status *S) (kind, name string)
	// State is the state of an owner's life, a word of a small set, whatever the status contains. The status may be nil.
	// Empty: such an owner is not counted.
	State(status *S) string
	// Turns are what has happened to an owner between two statuses that were persisted one after
	// the other, to be counted. The first may be nil.
	Turns(owner O, before, after *S, now time.Time) []plan.Turn
	// StatusWritten is called with two statuses that were persisted one after the other. The first may be nil. The
	// function must not wait for anything.
	StatusWritten(owner O, before, after *S)
	// OwnerDeleted is called with an owner that is gone, with the status as last stored.
	OwnerDeleted(owner O, stored []byte)
}

// Decider decides on one owner. It may keep a memory of the owner as long as the controller runs; the memory may be
// lost at any time. One goroutine at a time uses a Decider.
type Decider[O Owner, S any] interface {
	// Decide says what is to be done next. The view stays unchanged. An error is one of the whole sync, which is tried
	// again.
	Decide(view *View[O, S], now time.Time, entropy plan.Entropy) (plan.Plan[S], error)
	// Encode makes JSON of a status, to be stored.
	Encode(status *S) ([]byte, error)
	// Shorten makes a status small enough to be stored, and returns its JSON. If Shorten fails, a warning says so,
	// actions that depend on the status wait, and the write is tried again, later and later.
	Shorten(owner O, status *S, now time.Time) (*S, []byte, error)
}

// Resource is how the API server knows the owners of a core.
type Resource struct {
	// GroupVersionKind and Plural name the kind.
	schema.GroupVersionKind
	Plural string
	// API reads and writes the owners, in JSON, at their group and version.
	API rest.Interface
	// Optional says that the API server may not serve these owners, or the kinds of their objects: owners of other cores
	// don't wait for a list of these.
	Optional bool
}

// Kind is a kind of objects that a core watches, or writes, or both.
type Kind struct {
	// Name is the name in actions and lookups.
	Name string
	// Client writes the objects, and looks at single ones. Nil for a kind that is only watched.
	Client Client
	// Informer caches the objects. The creator of an informer sees to it that it holds only what is needed, and begins
	// with the current state: see informing.WantCurrent.
	Informer cache.SharedIndexInformer
	// OwnersOf returns the names of the owners, in the object's namespace, that a change of the object concerns. Nil
	// for a kind that starts no sync.
	OwnersOf func(object metav1.Object) []string
	// Delay lets changes come together before an owner is synced.
	Delay time.Duration
	// Unawaited says that owners are synced without waiting for the cache.
	Unawaited bool
	// Unwatched says that objects of the kind are neither listed nor watched: the controller has no right to. The object
	// with the name of Core.Unwatched is read when the owner is seen for the first time and now and then after that.
	// Informer is nil.
	Unwatched bool
	// Optional says that the API server need not serve the kind: where lists are not allowed, no object counts as
	// existing. The API server checks rights before it says that it does not serve a kind.
	Optional bool
	// Remembers says that objects are shown as written until the cache is as new: then a creation has no Outcome.
	// Without it, a creation has an Outcome with the UID, which the core stores in the status, and the object is shown
	// when the cache has it.
	Remembers bool
	// Reduce reduces a listed object to what the cache would hold. Nil keeps everything.
	Reduce func(object metav1.Object) metav1.Object
}

// Fate is what to do with an existing object that has the name of an object to create but no controller reference.
type Fate int

const (
	// Foreign is another owner's: the creation waits until the object is gone.
	Foreign Fate = iota
	// Leftover is one of the owner that was orphaned: the object is shown from then on, as if the cache held it, and the
	// core decides.
	Leftover
	// Removable is one of the owner that the core does not care for: the object is deleted, and the creation goes on.
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
