// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// ending is how a watch ends.
type ending int

const (
	open    ending = iota
	ended          // as the connection was lost
	expired        // with an error that it is too far behind
)

// watcher reads the events of one watch from the log, as the body of the HTTP response.
type watcher struct {
	process *Process
	table   *table
	query   query
	format  format
	ctx     context.Context
	// wake is full if there may be something new.
	wake   chan struct{}
	closed chan struct{}

	// data is what the client has not read yet of the last frame.
	data []byte

	// The lock of the server guards the rest.

	// initial are the objects that are sent before the events.
	initial []*revision
	// initialVersion, if not 0, is sent after the initial objects.
	initialVersion uint64
	// next is the index in the log of the next event.
	next   int
	ending ending
}

// watch begins a watch.
func (s *Server) watch(call *call) (*watcher, error) {
	t, q := call.table, call.query
	if q.sendInitialEvents && (!q.bookmarks || q.versionMatch != metav1.ResourceVersionMatchNotOlderThan) {
		return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", t.GroupResource(), "",
			"sendInitialEvents needs allowWatchBookmarks=true and resourceVersionMatch=NotOlderThan", 0, false)
	}
	w := &watcher{process: call.process, table: t, query: q, format: call.format, ctx: call.ctx,
		wake: make(chan struct{}, 1), closed: make(chan struct{}), next: len(t.log)}
	switch {
	case q.sendInitialEvents && q.version > s.version:
		return nil, tooLarge(q.version, s.version)
	case q.sendInitialEvents, q.version == 0:
		var version uint64
		w.next, version = s.readable(call)
		for _, r := range t.state(w.next) {
			if q.sees(r) {
				w.initial = append(w.initial, r)
			}
		}
		if q.sendInitialEvents {
			w.initialVersion = version
		}
	case q.version < t.forgotten:
		w.ending = expired
	default:
		w.next = t.since(q.version)
	}
	if t.watches == nil {
		t.watches = map[*watcher]struct{}{}
	}
	t.watches[w] = struct{}{}
	return w, nil
}

// readable returns the position in the log, and the resource version, at which a list or a watch begins. That is the
// current state, unless the request accepts an older one and the process does not see the current one yet.
func (s *Server) readable(call *call) (int, uint64) {
	t := call.table
	limit, held := call.process.limits[t]
	if call.query.anyVersion && held && limit < len(t.log) {
		version := t.log[limit].version - 1
		if version >= call.query.version {
			return limit, version
		}
	}
	return len(t.log), s.version
}

func (t *table) notify() {
	for w := range t.watches {
		w.notify()
	}
}

func (w *watcher) notify() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Read implements io.Reader. It blocks until there is something to read.
func (w *watcher) Read(p []byte) (int, error) {
	for len(w.data) == 0 {
		data, wait, err := w.frame()
		if err != nil {
			return 0, err
		}
		if w.data = data; len(data) > 0 {
			break
		}
		var timer <-chan time.Time
		if wait > 0 {
			timer = time.After(wait)
		}
		select {
		case <-w.wake:
		case <-timer:
		case <-w.closed:
			return 0, http.ErrBodyReadAfterClose
		case <-w.ctx.Done():
			return 0, w.ctx.Err()
		case <-w.process.dead:
			return 0, errLost
		}
	}
	n := copy(p, w.data)
	w.data = w.data[n:]
	return n, nil
}

// Close implements io.Closer. It is called once.
func (w *watcher) Close() error {
	w.process.server.mu.Lock()
	defer w.process.server.mu.Unlock()
	if _, ok := w.table.watches[w]; ok {
		delete(w.table.watches, w)
		close(w.closed)
	}
	return nil
}

// frame returns the next frame of the response. If there is none yet, it returns how long until the next one; 0 if that
// is unknown.
func (w *watcher) frame() ([]byte, time.Duration, error) {
	kind, r, version, wait, err := w.event()
	if err != nil || kind == "" {
		return nil, wait, err
	}
	var object []byte
	switch {
	case kind == watch.Error:
		object, err = w.encodeExpired()
	case kind == watch.Bookmark:
		object, err = w.encodeBookmark(version, r == endOfInitial)
	default:
		object, err = r.encode(w.format)
	}
	if err != nil {
		return nil, 0, err
	}
	frame, err := encodeEvent(kind, object, w.format)
	return frame, 0, err
}

// endOfInitial marks the bookmark after the initial objects.
var endOfInitial = &revision{}

// event takes the next event out of the log.
func (w *watcher) event() (kind watch.EventType, r *revision, version uint64, wait time.Duration, err error) {
	w.process.server.mu.Lock()
	defer w.process.server.mu.Unlock()
	switch w.ending {
	case ended:
		return "", nil, 0, 0, io.EOF
	case expired:
		w.ending = ended
		return watch.Error, nil, 0, 0, nil
	}
	if len(w.initial) > 0 {
		r, w.initial = w.initial[0], w.initial[1:]
		return watch.Added, r, 0, 0, nil
	}
	if version := w.initialVersion; version > 0 {
		w.initialVersion = 0
		return watch.Bookmark, endOfInitial, version, 0, nil
	}
	limit, held := w.process.limits[w.table]
	if !held {
		limit = len(w.table.log)
	}
	for ; w.next < limit; w.next++ {
		e := &w.table.log[w.next]
		if wait := w.process.delays[w.table] - time.Since(e.at); wait > 0 {
			return "", nil, 0, wait, nil
		}
		if e.bookmark() {
			if w.query.bookmarks {
				w.next++
				return watch.Bookmark, nil, e.version, 0, nil
			}
			continue
		}
		if kind, r := e.forWatch(w.query.sees); r != nil {
			w.next++
			return kind, r, 0, 0, nil
		}
	}
	return "", nil, 0, 0, nil
}

func (w *watcher) encodeBookmark(version uint64, endOfInitial bool) ([]byte, error) {
	var object runtime.Object
	if w.format.metadata() {
		object = partial(&metav1.ObjectMeta{})
	} else {
		object = w.table.newObject()
		w.table.stamp(object)
	}
	metadata := metaOf(object)
	metadata.ResourceVersion = formatVersion(version)
	if endOfInitial {
		metadata.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	return encode(object, w.format)
}

func (w *watcher) encodeExpired() ([]byte, error) {
	status := statusOf(apierrors.NewResourceExpired("The resourceVersion for the provided watch is too old."))
	if w.format.binary() {
		return encode(status, w.format)
	}
	return json.Marshal(status)
}

// tooLarge is the answer to a request for a future state.
func tooLarge(version, current uint64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", version, current), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return err
}
