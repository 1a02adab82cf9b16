// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package leading

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lock is one that this process may hold, unless err says why not. A write takes a second.
type lock struct {
	resourcelock.Interface
	err    error
	holder string
	// during is called while a write is on its way.
	during func()
}

func (l *lock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &resourcelock.LeaderElectionRecord{HolderIdentity: l.holder}, nil, nil
}

func (l *lock) Identity() string { return "me" }

func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, record)
}

func (l *lock) Update(context.Context, resourcelock.LeaderElectionRecord) error {
	time.Sleep(time.Second)
	if l.during != nil {
		l.during()
	}
	return l.err
}

// TestOnlyItsOwnLeaseIsGivenUp by a leader, however late it learns whose that is.
func TestOnlyItsOwnLeaseIsGivenUp(t *testing.T) {
	for holder, want := range map[string]bool{"me": true, "": true, "other": false} {
		synctest.Test(t, func(t *testing.T) {
			lock := NewFence(time.Minute).Lock(&lock{holder: holder})
			if _, _, err := lock.Get(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := lock.Update(t.Context(), resourcelock.LeaderElectionRecord{}); (err == nil) != want {
				t.Errorf("the lease of %q is given up: %v, want that %t", holder, err, want)
			}
		})
	}
}

func TestAFormerLeaderWritesNothing(t *testing.T) {
	const lasts = 15 * time.Second
	mine := resourcelock.LeaderElectionRecord{HolderIdentity: "me"}
	for name, tc := range map[string]struct {
		// before happens to the lease before the request.
		before func(ctx context.Context, l resourcelock.Interface, inner *lock) error
		method string
		want   bool
	}{
		"without a lease all is sent": {
			before: func(context.Context, resourcelock.Interface, *lock) error { return nil }, method: "POST", want: true,
		},
		"a leader writes": {
			before: func(ctx context.Context, l resourcelock.Interface, _ *lock) error { return l.Create(ctx, mine) }, method: "POST", want: true,
		},
		"one that was suspended for as long as the lease lasts does not": {
			before: func(ctx context.Context, l resourcelock.Interface, _ *lock) error {
				defer time.Sleep(lasts - time.Second) // the lease counts from the begin of its write
				return l.Create(ctx, mine)
			}, method: "POST",
		},
		"it may read": {
			before: func(ctx context.Context, l resourcelock.Interface, _ *lock) error {
				defer time.Sleep(time.Hour)
				return l.Create(ctx, mine)
			}, method: "GET", want: true,
		},
		"a renewal prolongs the lease": {
			before: func(ctx context.Context, l resourcelock.Interface, _ *lock) error {
				err := l.Create(ctx, mine)
				time.Sleep(lasts - 2*time.Second)
				return errors.Join(err, l.Update(ctx, mine))
			}, method: "DELETE", want: true,
		},
		"one that fails does not": {
			before: func(ctx context.Context, l resourcelock.Interface, inner *lock) error {
				err := l.Create(ctx, mine)
				time.Sleep(lasts - 2*time.Second)
				inner.err = errors.New("no answer")
				_ = l.Update(ctx, mine)
				return err
			}, method: "DELETE",
		},
		"who gives the lease up does not, though it would have lasted": {
			before: func(ctx context.Context, l resourcelock.Interface, _ *lock) error {
				return errors.Join(l.Create(ctx, mine), l.Update(ctx, resourcelock.LeaderElectionRecord{}))
			}, method: "PATCH",
		},
		"nor if the answer to that is lost": {
			before: func(ctx context.Context, l resourcelock.Interface, inner *lock) error {
				err := l.Create(ctx, mine)
				inner.err = errors.New("no answer")
				_ = l.Update(ctx, resourcelock.LeaderElectionRecord{})
				return err
			}, method: "PATCH",
		},
		"who has the lease again after that writes": {
			before: func(ctx context.Context, l resourcelock.Interface, _ *lock) error {
				return errors.Join(l.Create(ctx, mine), l.Update(ctx, resourcelock.LeaderElectionRecord{}), l.Update(ctx, mine))
			}, method: "PATCH", want: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fence, inner := NewFence(lasts), &lock{}
				if err := tc.before(t.Context(), fence.Lock(inner), inner); err != nil {
					t.Fatal(err)
				}
				if sent := sends(t, fence, tc.method); sent != tc.want {
					t.Errorf("sent: %t, want %t", sent, tc.want)
				}
			})
		})
	}
}

// TestALeaseIsGivenUpByOneThatWritesNothingAnyMore: another replica may have it before the answer comes.
func TestALeaseIsGivenUpByOneThatWritesNothingAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fence, inner := NewFence(time.Minute), &lock{holder: "me"}
		l := fence.Lock(inner)
		if err := l.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "me"}); err != nil {
			t.Fatal(err)
		}
		asked := false
		inner.during = func() {
			if asked = true; sends(t, fence, "POST") {
				t.Error("it writes while the lease is being given up")
			}
		}
		if err := l.Update(t.Context(), resourcelock.LeaderElectionRecord{}); err != nil || !asked {
			t.Errorf("the lease is given up: %t, %v", asked, err)
		}
	})
}

// sends says whether a fence lets a request through. One that it does not is an error to who sends it.
func sends(t *testing.T, fence *Fence, method string) bool {
	t.Helper()
	sent := false
	transport := fence.Wrap(roundTripper(func(*http.Request) (*http.Response, error) {
		sent = true
		return &http.Response{Body: http.NoBody}, nil
	}))
	request, err := http.NewRequestWithContext(t.Context(), method, "http://api", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := transport.RoundTrip(request)
	if err == nil {
		err = answer.Body.Close()
	}
	if (err == nil) != sent {
		t.Errorf("sent: %t, and the error is %v", sent, err)
	}
	return sent
}
