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

// Owner is an object that a core decides on: the metadata and the spec. Its status is kept apart.
type Owner interface {
	metav1.Object
	runtime.Object
}

// Core is what the engine has to know of a kind of owners. O is the owner, and S its
// status. Several goroutines may use a Core.
type Core[O Owner, S any] interface {
	// Resource says how the API server knows the owners.
	Resource() Resource
	// Kinds are the objects that are watched, created and deleted for owners. It is
	// called once.
	Kinds() []Kind
	// DecodeOwner makes an owner of what the API server has sent, or says why it makes no sense: then a warning says so,
	// and nothing is done until the spec is changed. In any case it returns an owner with the metadata. The spec may be
	// empty. Managed fields are large: fields that a core does not need are left out.
	DecodeOwner(kind metav1.TypeMeta, metadata metav1.ObjectMeta, spec []byte) (O, error)
	// Ignores reports whether an owner is none of this controller's business: the controller reads, writes and reports
	// nothing about it, whether or not it makes sense.
	Ignores(owner O) bool
	// DecodeStatus reads a stored status, which is not empty.
	DecodeStatus(stored []byte) (*S, error)
	// Rests reports, of an owner that the controller sees for the first time, whether its stored status alone shows that
	// a decision would have nothing to do until some time or a change, and then returns its State. The status need not
	// be decoded for that: a controller begins over many owners that are long over. The caches are filled.
	Rests(owner O, stored []byte, now time.Time) (state string, until time.Time, rests bool)
	// NewDecider begins to decide on an owner.
	NewDecider() Decider[O, S]
	// Size is how many Pods an owner and a status of it are about, including Pods that are still to be created: it
	// measures what a decision and a write of the status cost. The status may be nil.
	Size(owner O, status *S) int
	// UIDs are those of objects that a status names.
	UIDs(status *S) iter.Seq[types.UID]
	// WithOthers is a status with what others may write into the stored one, such as
	// conditions of their own. Neither is nil.
	WithOthers(status, stored *S) *S
	// Kept is what the API server keeps of a status if it has made stored of one: all of it, unless the CRD of the
	// owners is another product's, and lacks fields. Of an empty stored one it is what any CRD keeps. Neither is nil.
	Kept(status, stored *S) *S
	// RefusesForGood says whether an object will never be created, because of an error at
	// its creation. All other errors may be gone at the next try.
	RefusesForGood(action plan.Action, err error) bool
	// Templates are the Pod templates of an owner from which Pods may still be made: none once it has ended. The engine
	// asks the API server which of the template's fields are unknown. The status may be nil.
	Templates(owner O, status *S) []Template
	// FateOf decides about an object that has the name of one to be created, and no controller.
	FateOf(owner O, kind string, object metav1.Object) Fate
	// Unwatched names the object of an unwatched kind that an owner with a status has, or may have left. The name is empty if
	// there is none. The status may be nil.
	Unwatched(owner O, status *S) (kind, name string)
	// State is where an owner with a status is in its life, a word of a small set, whatever was
	// written into the status. The status may be nil. Empty: it is not counted.
	State(status *S) string
	// Turns are what has happened to an owner between two statuses that were persisted one after
	// the other, to be counted. The first may be nil.
	Turns(owner O, before, after *S, now time.Time) []plan.Turn
	// StatusWritten is called with two statuses that were persisted one after the other. The first may be nil. It must
	// not wait for anything.
	StatusWritten(owner O, before, after *S)
	// OwnerDeleted is called with an owner that is gone, with the status as last stored.
	OwnerDeleted(owner O, stored []byte)
}

// Decider decides on one owner, and may keep a memory of it as long as the controller runs. All of it may be lost at
// any time. One goroutine at a time uses it.
type Decider[O Owner, S any] interface {
	// Decide says what is to be done next. It changes nothing in the view. An error is one
	// of the whole sync, which is tried again.
	Decide(view *View[O, S], now time.Time, entropy plan.Entropy) (plan.Plan[S], error)
	// Encode makes JSON of a status, to be stored.
	Encode(status *S) ([]byte, error)
	// Shorten makes a status small enough to be stored, and returns its JSON. If Shorten fails, a warning says so,
	// actions that depend on the status wait, and the write is tried again, later and later.
	Shorten(owner O, status *S, now time.Time) (*S, []byte, error)
}

// Resource is how the API server knows the owners of a core.
type Resource struct {
	// GroupVersionKind and Plural are their names.
	schema.GroupVersionKind
	Plural string
	// API reads and writes the owners, in JSON, at their group and version.
	API rest.Interface
	// Optional says that the API server may not serve these owners, or what they are made
	// of: owners of other cores don't wait until they can be listed.
	Optional bool
}

// Kind is a kind of objects that a core watches, or writes, or both.
type Kind struct {
	// Name is what actions and lookups call it.
	Name string
	// Client writes the objects, and looks at them. Nil for a kind that is only watched.
	Client Client
	// Informer caches them. The creator of an informer sees to it that it holds only what is needed, and begins with the
	// current state: see informing.WantCurrent.
	Informer cache.SharedIndexInformer
	// OwnersOf are the names of the owners, in the object's namespace, that a change of the object concerns. Nil for a
	// kind whose changes start no sync.
	OwnersOf func(object metav1.Object) []string
	// Delay lets changes come together before an owner is synced.
	Delay time.Duration
	// Unawaited says that owners are synced without waiting for the cache.
	Unawaited bool
	// Unwatched says that objects of the kind are neither listed nor watched: the controller has no right to. The object
	// with the name of Core.Unwatched is read when the owner is seen for the first time and now and then after that.
	// Informer is nil.
	Unwatched bool
	// Optional says that the API server need not serve the kind: where it may not be read, none counts as there. The API
	// server checks rights before it says that it does not serve a kind.
	Optional bool
	// Remembers says that objects are shown as they were written until the cache is as new: then a creation has no
	// Outcome. Without it, a creation has an Outcome with the UID, which the core stores in the status, and the object
	// is shown when the cache has it.
	Remembers bool
	// Reduce makes of an object that was listed what the cache would hold of it. Nil for
	// all of it.
	Reduce func(object metav1.Object) metav1.Object
}

// Fate is the decision about an object that has the name of one to be created, and no controller.
type Fate int

const (
	// Foreign is another owner's: the creation waits until it is gone.
	Foreign Fate = iota
	// Leftover is one of the owner that was orphaned: the object is shown from then on, as if the cache held it, and the
	// core decides.
	Leftover
	// Removable is one of the owner that the core does not care for: it is deleted, and
	// the creation goes on.
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

// Kept returns the status: all of it is kept.
func (Defaults[O, S]) Kept(status, _ *S) *S { return status }

// RefusesForGood returns false: all is tried again.
func (Defaults[O, S]) RefusesForGood(plan.Action, error) bool { return false }

// Templates returns none.
func (Defaults[O, S]) Templates(O, *S) []Template { return nil }

// FateOf returns Foreign.
func (Defaults[O, S]) FateOf(O, string, metav1.Object) Fate { return Foreign }

// Unwatched returns none: all kinds are watched.
func (Defaults[O, S]) Unwatched(O, *S) (kind, name string) { return "", "" }

// State returns the empty one: it is not counted.
func (Defaults[O, S]) State(*S) string { return "" }

// Turns returns none.
func (Defaults[O, S]) Turns(O, *S, *S, time.Time) []plan.Turn { return nil }

// StatusWritten does nothing.
func (Defaults[O, S]) StatusWritten(O, *S, *S) {}

// OwnerDeleted does nothing.
func (Defaults[O, S]) OwnerDeleted(O, []byte) {}

// errWhole is what a core says that has no shorter status.
var errWhole = errors.New("the status has nothing that could be left out")

// Whole is part of a Decider of a core with a small status, or one that can't be shortened, to be embedded.
type Whole[O Owner, S any] struct{}

// Shorten fails.
func (Whole[O, S]) Shorten(O, *S, time.Time) (*S, []byte, error) { return nil, nil, errWhole }
