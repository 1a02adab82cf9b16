// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	restclient "k8s.io/client-go/rest"
)

// silent is an API server that answers nothing.
type silent struct{}

// RoundTrip implements http.RoundTripper.
func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestAnAPIServerThatDoesNotSayWhatItServesIsNotWaitedForWithoutEnd.
func TestAnAPIServerThatDoesNotSayWhatItServesIsNotWaitedForWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		groups, _, err := groupClients(&restclient.Config{Host: "http://api", Transport: silent{}})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := servesPodGroups(groups); err == nil || time.Since(began) > answerTimeout {
			t.Errorf("after %v the answer is %v, want an error within %v", time.Since(began), err, answerTimeout)
		}
	})
}

// TestAKindIsAskedForUntilItCanBeRead: every ten seconds, and every minute if what lacks is a right.
func TestAKindIsAskedForUntilItCanBeRead(t *testing.T) {
	for found, period := range map[service]time.Duration{notServed: 10 * time.Second, broken: 10 * time.Second, forbidden: time.Minute} {
		t.Run(string(found), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				q := &inquiry{ctx: t.Context(), ask: func(context.Context) (service, error) {
					switch asked++; asked {
					case 1:
						return "", errors.New("the API server is busy")
					case 2:
						return found, nil
					default:
						return served, nil
					}
				}}
				began := time.Now()
				if !q.untilServed(found) {
					t.Error("it is given up")
				}
				if took := time.Since(began); asked != 3 || took != 3*period {
					t.Errorf("it was asked for %d times in %v, want 3 times, every %v", asked, took, period)
				}
			})
		})
	}
}
