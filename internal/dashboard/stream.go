// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// A stream renders its page again when the page has changed. Between two renderings it waits at least streamLeast, and
// at least streamShare times as long as the last rendering took. It waits at most streamMost, because ages change. A
// page that does not know of changes is rendered every streamRead.
const (
	streamLeast = 500 * time.Millisecond
	streamShare = 10
	streamMost  = 10 * time.Second
	streamRead  = 3 * time.Second
	// streamAge is how long a stream lasts. Then the browser opens it again, so the visitor is authenticated again.
	streamAge = 10 * time.Minute
)

// streams counts the open streams.
type streams struct {
	mu  sync.Mutex
	all int
	of  map[string]int
}

// take counts one more of a visitor, unless there are too many.
func (s *streams) take(visitor string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == maxStreams || s.of[visitor] == maxStreamsOfOne {
		return false
	}
	s.all++
	s.of[visitor]++
	return true
}

// free gives one back.
func (s *streams) free(visitor string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.of[visitor]--; s.of[visitor] == 0 {
		delete(s.of, visitor)
	}
}

// stream sends the main part of a page, and sends it again whenever it has changed.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, visitor *Visitor, to route) {
	if !s.streams.take(visitor.Name) {
		http.Error(w, "too many pages are open", http.StatusTooManyRequests)
		return
	}
	defer s.streams.free(visitor.Name)
	ctx, cancel := context.WithTimeout(r.Context(), streamAge)
	defer cancel()
	large := to.isLarge(r)
	opened, err := inTurn(ctx, s, visitor, large, func(within context.Context) (*opened, error) {
		return to.opens(within, request{r, visitor, ctx})
	})
	if err != nil {
		s.fail(w, visitor, err)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	out := http.NewResponseController(w)
	var last [sha256.Size]byte
	for {
		begun := time.Now()
		text, still := s.part(ctx, visitor, opened, large)
		if ctx.Err() != nil {
			return
		}
		// A browser that does not read is not waited for. Between two events there is no deadline: HTTP/2 would
		// end a stream on which nothing is sent until then.
		_ = out.SetWriteDeadline(time.Now().Add(s.patience))
		var err error
		if sum := sha256.Sum256(text); sum != last {
			last = sum
			err = send(w, "main", text)
		} else {
			// Proxies end a connection on which nothing is sent for long. Browsers pass over a comment.
			_, err = io.WriteString(w, ":\n\n")
		}
		if err != nil || out.Flush() != nil {
			return
		}
		if still {
			// Without this the browser would open the stream again.
			_ = send(w, "still", nil)
			return
		}
		_ = out.SetWriteDeadline(time.Time{})
		if !wait(ctx, opened.changed, time.Since(begun)) {
			return
		}
	}
}

// part waits for the visitor's turn and renders the main part of a page. If reading fails, text shows the error and the
// stream goes on, because the next rendering may succeed. still reports that the page will not change any more.
func (s *Server) part(ctx context.Context, visitor *Visitor, o *opened, large bool) (text []byte, still bool) {
	made, err := inTurn(ctx, s, visitor, large, o.make)
	if err != nil {
		_, shown := explain(err)
		made = &page{Template: "failure", Content: shown}
	}
	var out bytes.Buffer
	if err := part(&out, made, s.options.Now()); err != nil {
		out.Reset()
	}
	return out.Bytes(), made.Still
}

// wait waits until a page is to be rendered again: when its objects have changed, or after streamMost. If the last
// rendering took long, wait waits longer. wait returns false if ctx has ended.
func wait(ctx context.Context, changed <-chan struct{}, took time.Duration) bool {
	least := max(streamLeast, streamShare*took)
	if changed == nil {
		least = max(streamRead, least)
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(least):
	}
	if changed == nil {
		return true
	}
	select {
	case <-ctx.Done():
		return false
	case <-changed:
	case <-time.After(streamMost):
	}
	return true
}

// send writes an event.
func send(w http.ResponseWriter, kind string, text []byte) error {
	var event bytes.Buffer
	fmt.Fprintf(&event, "event: %s\n", kind)
	for line := range bytes.Lines(append(text, '\n')) {
		event.WriteString("data: ")
		event.Write(bytes.TrimRight(line, "\r\n"))
		event.WriteByte('\n')
	}
	event.WriteByte('\n')
	_, err := event.WriteTo(w)
	return err
}
