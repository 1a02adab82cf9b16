// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

var (
	forbidden    = apierrors.NewForbidden(schema.GroupResource{Resource: "frameworks"}, "", errors.New("no such right"))
	unauthorized = apierrors.NewUnauthorized("the token has expired")
)

// TestWaitLooksBeforeItWaits, so that a state that is there is seen in no time, and no more is asked for.
func TestWaitLooksBeforeItWaits(t *testing.T) {
	u := someone(t)
	u.has(frameworkv1.FrameworkAttemptRunning, 1)
	u.api.SetHook(refusesTo(apiserver.List, apiserver.Watch))
	u.sees(u.types("wait", "train", "--for=Running", "--timeout=0"), 0, "framework/train Running")
	u.api.SetHook(nil)
	u.sees(u.types("wait", "train", "--for=Preparing", "--timeout=0"), 5, "timed out after 0s waiting for train to be Preparing: it is Running")
	u.goes(frameworkv1.FrameworkCompleted)
	u.sees(u.types("wait", "train", "--for=Running", "--timeout=0"), 6, "train has ended")
	u.sees(u.types("wait", "nobody", "--for=Deleted"), 0, "framework/nobody deleted")
}

// refusesTo is an API server that forbids some verbs.
func refusesTo(verbs ...apiserver.Verb) apiserver.Hook {
	return func(r *apiserver.Request) apiserver.Fault {
		for _, verb := range verbs {
			if r.Verb == verb {
				return apiserver.Fault{Refusal: forbidden}
			}
		}
		return apiserver.Fault{}
	}
}

// TestWhoMayNotSeeAFrameworkGoDoesNotWaitForIt: nothing would ever tell him.
func TestWhoMayNotSeeAFrameworkGoDoesNotWaitForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := someone(t)
		u.has(frameworkv1.FrameworkAttemptRunning, 1)
		u.api.SetHook(refusesTo(apiserver.List, apiserver.Watch))
		begun := time.Now()
		u.sees(u.types("wait", "train", "--for=Succeeded"), 4, "can't read the state of train", "no such right")
		u.sees(u.types("delete", "train"), 4, "can't read the state of train", "no such right")
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

// TestRetryDeletesNothingThatItCannotSeeGo, as it would not be made anew.
func TestRetryDeletesNothingThatItCannotSeeGo(t *testing.T) {
	u := someone(t)
	u.has(frameworkv1.FrameworkCompleted, 1)
	u.api.SetHook(refusesTo(apiserver.List, apiserver.Watch))
	u.sees(u.types("retry", "train"), 4, "it was not deleted")
	if fw := apiserver.Find[frameworkv1.Framework](u.api, "a", "train"); fw == nil || fw.DeletionTimestamp != nil {
		t.Error("it was deleted")
	}
}

// TestAWaitOutlivesWhatPasses and tells of it once: an API server that is away, or does not know a user for a moment. A
// token that is not renewed ends it.
func TestAWaitOutlivesWhatPasses(t *testing.T) {
	for name, tc := range map[string]struct {
		refusal error
		lasts   time.Duration
		code    int
		told    string
		notes   int
	}{
		"the API server is away for a minute": {apiserver.Unavailable(), time.Minute, 0, "Can't reach the API server", 1},
		"a token is renewed by its refusal":   {unauthorized, time.Millisecond, 0, "framework/train Running", 0},
		"a token has expired":                 {unauthorized, time.Hour, 4, "the token has expired", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := someone(t)
				u.has(frameworkv1.FrameworkAttemptPreparing, 1)
				begun := time.Now()
				fails := false
				u.api.SetHook(func(r *apiserver.Request) apiserver.Fault {
					if fails && time.Since(begun) >= tc.lasts {
						return apiserver.Fault{}
					}
					fails = true
					return apiserver.Fault{Refusal: tc.refusal, After: time.Millisecond}
				})
				time.AfterFunc(2*time.Minute, func() { u.goes(frameworkv1.FrameworkAttemptRunning) })
				said := u.types("wait", "train", "--for=Running")
				u.sees(said, tc.code, tc.told)
				if notes := strings.Count(said.err, "Can't reach the API server"); notes != tc.notes {
					t.Errorf("%d notes, want %d:\n%s", notes, tc.notes, said.err)
				}
				if tc.code != 0 && time.Since(begun) > 10*time.Second {
					t.Errorf("it ends after %s", time.Since(begun))
				}
				time.Sleep(2 * time.Minute) // The last change comes to a world that is still there.
			})
		})
	}
}

// TestAWaitIsOverInTime beside an API server that does not answer, also if there is no time to wait at all.
func TestAWaitIsOverInTime(t *testing.T) {
	for timeout, most := range map[string]time.Duration{"10s": 10 * time.Second, "5m": 5 * time.Minute, "0": lookTime} {
		synctest.Test(t, func(t *testing.T) {
			u := someone(t)
			u.has(frameworkv1.FrameworkAttemptRunning, 1)
			u.api.SetHook(func(*apiserver.Request) apiserver.Fault { return apiserver.Fault{Before: time.Hour} })
			begun := time.Now()
			u.sees(u.types("wait", "train", "--for=Running", "--timeout="+timeout), 5, "can't read the state of train: timed out waiting for Running")
			if took := time.Since(begun); took > most {
				t.Errorf("--timeout=%s: it ends after %s", timeout, took)
			}
			time.Sleep(2 * time.Hour) // No request outlives the test.
		})
	}
}
