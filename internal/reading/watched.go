// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"sync"

	"k8s.io/client-go/tools/cache"
)

// watched are the objects of a kind, as a watch shows them.
type watched struct {
	// what messages call the kind.
	what string
	// store has the objects; all objects as soon as synced says so.
	store  cache.Store
	synced func() bool
	// changed is called when reading starts to work, or stops to.
	changed func()

	mu sync.Mutex
	// toList is why the last list failed, toFollow why the last watch failed; nil if it did not fail.
	toList, toFollow error
}

// listed notes how listing went.
func (w *watched) listed(err error) { w.note(&w.toList, err) }

// followed records whether beginning a watch succeeded. If the API server can stream lists, the watch also lists.
func (w *watched) followed(err error) {
	if err == nil {
		w.note(&w.toList, nil)
	}
	w.note(&w.toFollow, err)
}

func (w *watched) note(failed *error, err error) {
	w.mu.Lock()
	before := *failed
	*failed = err
	w.mu.Unlock()
	if (before == nil) != (err == nil) || err != nil && before.Error() != err.Error() {
		w.changed()
	}
}

// Err returns why the objects, or changes of them, can't be read at present; nil if they can be read.
func (w *watched) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.toList != nil {
		return w.toList
	}
	return w.toFollow
}

// told returns what can't be shown, as part of a sentence: the objects, or only what changed since the list.
func (w *watched) told() string {
	if w.synced() {
		return "Changes of " + w.what
	}
	return w.what
}

// known returns whether all objects are in the store, or why not.
func (w *watched) known() bool { return w.synced() || w.Err() != nil }
