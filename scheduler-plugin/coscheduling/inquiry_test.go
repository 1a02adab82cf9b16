// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-k8s/lockstep/internal/informing"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// TestAnAPIServerThatDoesNotSayWhatItServesIsNotWaitedForWithoutEnd.
func TestAnAPIServerThatDoesNotSayWhatItServesIsNotWaitedForWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		groups, _, err := groupClients(&restclient.Config{Host: "http://api", Transport: apiserver.Silent{}})
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
				var told []service
				q := &inquiry{ctx: t.Context(), told: found, tell: func(now service) { told = append(told, now) }, ask: func(context.Context) (service, error) {
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
				if !slices.Equal(told, []service{served}) {
					t.Errorf("it is told that %v", told)
				}
				if took := time.Since(began); asked != 3 || took != 3*period {
					t.Errorf("it was asked for %d times in %v, want 3 times, every %v", asked, took, period)
				}
			})
		})
	}
}

// TestWhatComesAgainIsShownBeforeItIsSaidToBeListed: what was shown stays until then, and what has gone meanwhile goes then.
func TestWhatComesAgainIsShownBeforeItIsSaidToBeListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &comingAndGoing{objects: []string{"gone", "stays"}, found: served}
		ctx, cancel := context.WithCancel(t.Context())
		defer func() {
			cancel()
			synctest.Wait()
		}()
		shown, listed := map[string]bool{}, 0
		var told []service
		q := &inquiry{ctx: ctx, told: served, tell: func(now service) { told = append(told, now) },
			ask: func(context.Context) (service, error) { return api.found, nil }}
		if _, err := q.follow(func(known []any) (show, error) {
			informer := informing.Namespaces(nil).Informer(&corev1.ConfigMap{}, func(string) cache.ListerWatcher { return api })
			if err := informer.GetIndexer().Replace(known, ""); err != nil {
				return show{}, err
			}
			seen, err := informer.AddEventHandler(handlers(func(o *corev1.ConfigMap) { shown[o.Name] = true },
				func(_, o *corev1.ConfigMap) { shown[o.Name] = true }, func(o *corev1.ConfigMap) { delete(shown, o.Name) }))
			return show{informer, seen.HasSyncedChecker()}, err
		}, func() { listed++ }); err != nil {
			t.Fatal(err)
		}
		want := func(when string, wantListed int, want ...string) {
			t.Helper()
			synctest.Wait()
			if names := slices.Sorted(maps.Keys(shown)); listed != wantListed || !slices.Equal(names, want) {
				t.Errorf("%s %v are shown, and said to be listed %d times, want %v, %d times", when, names, listed, want, wantListed)
			}
		}
		want("at first", 1, "gone", "stays")

		api.found, api.held = notServed, make(chan struct{})
		api.watched.Stop()
		time.Sleep(time.Minute)
		want("while the kind is away", 1, "gone", "stays")

		api.objects, api.found = []string{"new", "stays"}, served
		time.Sleep(time.Minute)
		want("while it is there, and not listed yet,", 1, "gone", "stays")
		close(api.held)
		want("when it is listed", 2, "new", "stays")
		if !slices.Equal(told, []service{notServed, served}) {
			t.Errorf("it is told that %v", told)
		}
	})
}

// comingAndGoing is an API server that serves a kind at times.
type comingAndGoing struct {
	objects []string
	found   service
	// held holds up lists as long as it is open, if it is set.
	held    chan struct{}
	watched *watch.FakeWatcher
}

// List implements cache.ListerWatcher.
func (c *comingAndGoing) List(metav1.ListOptions) (apiruntime.Object, error) {
	if c.found != served {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, "")
	}
	if c.held != nil {
		<-c.held
	}
	list := &corev1.ConfigMapList{}
	for _, name := range c.objects {
		list.Items = append(list.Items, corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return list, nil
}

// Watch implements cache.ListerWatcher.
func (c *comingAndGoing) Watch(metav1.ListOptions) (watch.Interface, error) {
	if c.found != served {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, "")
	}
	c.watched = watch.NewFake()
	return c.watched, nil
}

// IsWatchListSemanticsUnSupported has it be listed.
func (c *comingAndGoing) IsWatchListSemanticsUnSupported() bool { return true }
