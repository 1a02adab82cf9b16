// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	restclient "k8s.io/client-go/rest"

	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// TestAnAPIServerThatDoesNotSayWhatItServesIsNotWaitedForWithoutEnd.
func TestAnAPIServerThatDoesNotSayWhatItServesIsNotWaitedForWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		groups, others, err := groupClients(&restclient.Config{Host: "http://api", Transport: apiserver.Silent{}})
		if err != nil {
			t.Fatal(err)
		}
		w := &watcher{ctx: t.Context(), groups: groups, others: others}
		for what, ask := range map[string]func() error{
			"the groups": func() error {
				_, _, err := (&kind{watcher: w, dialect: dialect.Volcano}).ask(t.Context())
				return err
			},
			"own groups": func() error { _, _, err := (&kind{watcher: w}).ask(t.Context()); return err },
		} {
			began := time.Now()
			if err := ask(); err == nil || time.Since(began) > answerTimeout {
				t.Errorf("%s: after %v the answer is %v, want an error within %v", what, time.Since(began), err, answerTimeout)
			}
		}
	})
}

// answers are of an inquiry of which a test gives the answers, in a bubble of synctest.
type answers struct {
	*inquiry
	began time.Time
	told  []service
	ended []time.Duration

	now     service
	version string
	err     error
}

// attend has an inquiry attend to a kind that was found so at the start.
func attend(t *testing.T, found service) *answers {
	a := &answers{began: time.Now(), now: found, version: "v1"}
	a.inquiry = &inquiry{
		ask: func(context.Context) (service, schema.GroupVersionResource, error) {
			return a.now, schema.GroupVersionResource{Version: a.version}, a.err
		},
		tell: func(now service) { a.told = append(a.told, now) },
		end:  func(string) { a.ended = append(a.ended, time.Since(a.began)) },
	}
	a.begin(t.Context())
	go a.attend(t.Context())
	return a
}

// after lets some time go by.
func (a *answers) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// lose has the informer fail that reads the kind.
func (a *answers) lose() {
	a.lost <- struct{}{}
	synctest.Wait()
}

// TestAKindThatComesEndsTheProgram soon, once it is served without a gap. It is told what keeps it from being read until then.
func TestAKindThatComesEndsTheProgram(t *testing.T) {
	for found, within := range map[service]time.Duration{notServed: 35 * time.Second, broken: 35 * time.Second, forbidden: 90 * time.Second} {
		t.Run(string(found), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := attend(t, found)
				a.after(time.Hour)
				a.now = served
				a.after(20 * time.Second)
				a.err = errors.New("the API server is busy")
				a.after(2 * time.Minute)
				if len(a.ended) > 0 || len(a.told) > 0 {
					t.Fatalf("before it is served for good, the program ends at %v, and it is told that it is %v", a.ended, a.told)
				}
				a.err = nil
				a.after(within)
				if len(a.ended) != 1 {
					t.Errorf("the program ends at %v, want once within %v", a.ended, within)
				}
			})
		})
	}
}

// TestAKindThatGoesEndsNothing, and the program ends for the same kind at most once in ten minutes: not within ten minutes after
// it was started.
func TestAKindThatGoesEndsNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		goesAfter, want, within time.Duration
	}{
		"it goes at once": {time.Minute, 10 * time.Minute, 15 * time.Second},
		"it goes later":   {time.Hour, 2 * time.Hour, 35 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := attend(t, served)
				a.after(tc.goesAfter)
				a.now = notServed
				a.lose()
				if !slices.Equal(a.told, []service{notServed}) {
					t.Errorf("when it goes, it is told that it is %v", a.told)
				}
				a.after(tc.goesAfter)
				a.now = forbidden
				a.after(time.Minute)
				if len(a.ended) > 0 || !slices.Equal(a.told, []service{notServed, forbidden}) {
					t.Errorf("while it is away, the program ends at %v, and it is told that it is %v", a.ended, a.told)
				}
				a.now = served
				a.after(time.Until(a.began.Add(tc.want)))
				a.after(tc.within + time.Minute)
				if len(a.ended) != 1 || a.ended[0] < tc.want {
					t.Errorf("the program ends at %v, want %v after its start", a.ended, tc.want)
				}
			})
		})
	}
}

// TestAnotherVersionOfAKindEndsTheProgram, if the one that is read is served no more.
func TestAnotherVersionOfAKindEndsTheProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := attend(t, served)
		a.after(time.Hour)
		a.lose()
		a.after(time.Hour)
		if len(a.ended) > 0 {
			t.Fatal("the program ends because a request failed")
		}
		a.version = "v2"
		a.lose()
		a.after(35 * time.Second)
		if len(a.ended) != 1 || len(a.told) > 0 {
			t.Errorf("the program ends %d times, and it is told that the kind is %v, which is served all the time", len(a.ended), a.told)
		}
	})
}
