// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package informing_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-k8s/lockstep/internal/informing"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
	"github.com/lockstep-k8s/lockstep/internal/tombstone"
)

// several is an informer of ConfigMaps in namespaces, on an API server in memory.
type several struct {
	server   *apiserver.Server
	process  *apiserver.Process
	informer cache.SharedIndexInformer

	mu sync.Mutex
	// closed are the namespaces that may not be read, and asked those that were.
	closed map[string]bool
	asked  []string
	// unwatched are those that may be listed alone, lists counts the lists of namespaces, and each request takes slow.
	unwatched map[string]bool
	lists     map[string]int
	slow      time.Duration
	// from is from which version a namespace was watched last.
	from map[string]string
	// before is called before a namespace is asked for, unless it is nil.
	before func(namespace string)
}

// inNamespaces runs a test of an informer of some namespaces, which is started by run.
func inNamespaces(t *testing.T, namespaces informing.Namespaces, test func(s *several, run func())) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &several{server: apiserver.New(t), closed: map[string]bool{}, unwatched: map[string]bool{}, lists: map[string]int{}}
		s.process = s.server.Process("reader")
		s.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.asked = append(s.asked, r.Namespace)
			if r.Verb == apiserver.List {
				s.lists[r.Namespace]++
			}
			if s.closed[r.Namespace] || s.unwatched[r.Namespace] && r.Verb == apiserver.Watch {
				return apiserver.Fault{Refusal: apierrors.NewForbidden(schema.GroupResource{Resource: r.Resource}, "", nil)}
			}
			return apiserver.Fault{Before: s.slow}
		})
		client, err := kubernetes.NewForConfig(s.process.Config())
		if err != nil {
			t.Fatal(err)
		}
		s.informer = namespaces.Informer(&corev1.ConfigMap{}, func(namespace string) cache.ListerWatcher {
			return informing.ListWatch(client, client.CoreV1().ConfigMaps(namespace), func(options *metav1.ListOptions) {
				informing.WantCurrent(options)
				s.mu.Lock()
				if s.from != nil && options.ResourceVersionMatch == "" { // a list asks for a moment
					s.from[namespace] = options.ResourceVersion
				}
				s.mu.Unlock()
				if s.before != nil {
					s.before(namespace)
				}
			})
		})
		test(s, func() {
			go s.informer.RunWithContext(t.Context())
			synctest.Wait()
		})
	})
}

func (s *several) add(names ...string) {
	for _, name := range names {
		namespace, name, _ := strings.Cut(name, "/")
		apiserver.Add(s.server, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
	}
}

func (s *several) close(namespace string, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed[namespace] = closed
}

// shows checks what the informer shows once there is nothing left to do.
func (s *several) shows(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	got := s.informer.GetStore().ListKeys()
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the informer shows (-want,+got):\n%s", diff)
	}
}

func TestAnInformerShowsItsNamespacesAndReadsNoOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		namespaces  informing.Namespaces
		asked, want []string
	}{
		"one":     {informing.Namespaces{"b"}, []string{"b"}, []string{"b/early", "b/late"}},
		"several": {informing.Namespaces{"a", "b"}, []string{"a", "b"}, []string{"a/early", "a/late", "b/early", "b/late"}},
		"all":     {nil, []string{""}, []string{"a/early", "a/late", "b/early", "b/late", "c/early", "c/late"}},
	} {
		t.Run(name, func(t *testing.T) {
			inNamespaces(t, tc.namespaces, func(s *several, run func()) {
				s.add("a/early", "b/early", "c/early")
				run()
				s.add("a/late", "b/late", "c/late")
				s.shows(t, tc.want...)
				slices.Sort(s.asked)
				if diff := cmp.Diff(tc.asked, slices.Compact(s.asked)); diff != "" {
					t.Errorf("namespaces that were asked for (-want,+got):\n%s", diff)
				}
			})
		})
	}
}

// TestTheFirstListIsOfOneMoment: who sees an object that was made for another must see that, too.
func TestTheFirstListIsOfOneMoment(t *testing.T) {
	inNamespaces(t, informing.Namespaces{"a", "b"}, func(s *several, run func()) {
		s.add("a/there")
		var together []string
		if _, err := s.informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{AddFunc: func(object any, initial bool) {
			if config := object.(*corev1.ConfigMap); initial {
				together = append(together, config.Namespace+"/"+config.Name)
			}
		}}); err != nil {
			t.Fatal(err)
		}
		s.before = func(namespace string) {
			if namespace == "b" {
				s.before = nil
				s.add("a/first", "b/second")
			}
		}
		run()
		s.shows(t, "a/first", "a/there", "b/second")
		if diff := cmp.Diff([]string{"a/there"}, together); diff != "" {
			t.Errorf("the list was of (-want,+got):\n%s", diff)
		}
	})
}

func TestNothingIsMissedWhenWatchesBreak(t *testing.T) {
	for name, breaks := range map[string]func(*apiserver.Process, string){
		"they are dropped":     (*apiserver.Process).DropWatches,
		"they are out of date": (*apiserver.Process).ExpireWatches,
	} {
		t.Run(name, func(t *testing.T) {
			inNamespaces(t, informing.Namespaces{"a", "b"}, func(s *several, run func()) {
				run()
				s.add("a/1", "b/1")
				s.shows(t, "a/1", "b/1")
				s.process.Hold("configmaps")
				s.add("a/2", "b/2", "a/3")
				s.process.Release("configmaps", 2) // Of b more is known than of a.
				breaks(s.process, "configmaps")
				s.process.ReleaseAll("configmaps")
				time.Sleep(time.Minute)
				s.shows(t, "a/1", "a/2", "a/3", "b/1", "b/2")
			})
		})
	}
}

// TestEachNamespaceIsWatchedFromWhereItWas when a watch breaks: the end of one ends all.
func TestEachNamespaceIsWatchedFromWhereItWas(t *testing.T) {
	inNamespaces(t, informing.Namespaces{"a", "b", "c"}, func(s *several, run func()) {
		s.add("a/1")
		run()
		s.add("b/1", "b/2", "a/2") // Of c nothing is news.
		s.shows(t, "a/1", "a/2", "b/1", "b/2")
		s.mu.Lock()
		s.from = map[string]string{}
		s.mu.Unlock()
		s.process.DropWatches("configmaps")
		time.Sleep(time.Minute)
		s.mu.Lock()
		defer s.mu.Unlock()
		a, b, c := s.from["a"], s.from["b"], s.from["c"]
		if a == "" || a == b || b == c || a == c {
			t.Errorf("the namespaces are watched from the versions %q, %q and %q, want each from its own", a, b, c)
		}
	})
}

// TestANamespaceThatIsClosedCostsOthersNothing: whoever administers a namespace can take the Role
// away, or the namespace.
func TestANamespaceThatIsClosedCostsOthersNothing(t *testing.T) {
	t.Run("from the start", func(t *testing.T) {
		inNamespaces(t, informing.Namespaces{"a", "b"}, func(s *several, run func()) {
			s.close("a", true)
			s.add("a/1", "b/1")
			run()
			if !s.informer.HasSynced() {
				t.Error("the informer waits for the namespace that is closed")
			}
			s.add("b/2")
			s.shows(t, "b/1", "b/2")
			s.close("a", false)
			time.Sleep(time.Minute)
			s.shows(t, "a/1", "b/1", "b/2")
		})
	})
	t.Run("later", func(t *testing.T) {
		inNamespaces(t, informing.Namespaces{"a", "b"}, func(s *several, run func()) {
			s.add("a/1", "b/1")
			run()
			s.close("a", true)
			s.process.DropWatches("configmaps")
			time.Sleep(time.Minute)
			s.add("a/2", "b/2")
			s.shows(t, "a/1", "b/1", "b/2")
			s.close("a", false)
			time.Sleep(time.Minute)
			s.shows(t, "a/1", "a/2", "b/1", "b/2")
		})
	})
	t.Run("all of them", func(t *testing.T) {
		inNamespaces(t, informing.Namespaces{"a", "b"}, func(s *several, run func()) {
			s.close("a", true)
			s.close("b", true)
			s.add("a/1", "b/1")
			run()
			time.Sleep(time.Minute)
			if s.informer.HasSynced() {
				t.Error("the informer takes what it may not read for empty")
			}
			s.close("a", false)
			s.close("b", false)
			time.Sleep(time.Minute)
			s.shows(t, "a/1", "b/1")
		})
	})
	t.Run("it is asked for rarely", func(t *testing.T) {
		inNamespaces(t, informing.Namespaces{"a", "b"}, func(s *several, run func()) {
			s.close("a", true)
			run()
			s.mu.Lock()
			s.asked = nil
			s.mu.Unlock()
			time.Sleep(5 * time.Minute)
			if n := len(s.asked); n < 5 || n > 20 {
				t.Errorf("%d requests in 5 minutes, want 5 to 20", n)
			}
		})
	})
}

// TestManyNamespacesAreReadBesideEachOther: one after the other they would take longer than a slow API server
// keeps the moment of the first.
func TestManyNamespacesAreReadBesideEachOther(t *testing.T) {
	var namespaces informing.Namespaces
	for i := range 48 {
		namespaces = append(namespaces, fmt.Sprint("ns-", i))
	}
	inNamespaces(t, namespaces, func(s *several, run func()) {
		s.slow = 3 * time.Second
		s.add("ns-47/early")
		run()
		time.Sleep(20 * time.Second)
		if !s.informer.HasSynced() {
			t.Error("after 20 seconds they are not listed")
		}
		s.add("ns-46/late")
		time.Sleep(20 * time.Second)
		s.shows(t, "ns-46/late", "ns-47/early")
	})
}

// TestANamespaceThatMayNotBeWatchedIsNotListedAgainAndAgain, nor are the others.
func TestANamespaceThatMayNotBeWatchedIsNotListedAgainAndAgain(t *testing.T) {
	inNamespaces(t, informing.Namespaces{"a", "b"}, func(s *several, run func()) {
		s.unwatched["b"] = true
		s.add("a/1", "b/1")
		run()
		time.Sleep(5 * time.Minute)
		s.mu.Lock()
		if got := s.lists["a"]; got > 2 {
			t.Errorf("the other namespace was listed %d times in 5 minutes", got)
		}
		delete(s.unwatched, "b")
		s.mu.Unlock()
		s.add("a/2", "b/2")
		time.Sleep(time.Minute)
		s.shows(t, "a/1", "a/2", "b/1", "b/2")
	})
}

// knowledge is what a handler has heard, in order.
func (s *several) knowledge(t *testing.T) func(want ...string) {
	t.Helper()
	var mu sync.Mutex
	var heard []string
	hear := func(words ...string) {
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, strings.Join(words, " "))
	}
	name := func(what string, object any) {
		hear(what, object.(*corev1.ConfigMap).Namespace+"/"+object.(*corev1.ConfigMap).Name)
	}
	versions := map[string]string{}
	if _, err := s.informer.AddEventHandler(informing.Hearing{
		ResourceEventHandler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { name("add", object) },
			DeleteFunc: func(object any) { name("delete", tombstone.Object(object)) },
		},
		Refused: func(namespace string) { hear("refused", namespace) },
		Listed: func(namespace, version string) {
			if before := versions[namespace]; before > version { // of one length
				t.Errorf("%s is listed at %s, and was at %s", namespace, version, before)
			}
			versions[namespace] = version
			hear("listed", namespace)
		},
	}); err != nil {
		t.Fatal(err)
	}
	return func(want ...string) {
		t.Helper()
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		slices.Sort(heard[:min(len(heard), len(want))])
		slices.Sort(want)
		if diff := cmp.Diff(want, heard); diff != "" {
			t.Errorf("it is heard (-want,+got):\n%s", diff)
		}
		heard = nil
	}
}

// TestAHandlerHearsWhichNamespacesAreNotWhole: what lacks in one that may not be read may be there.
func TestAHandlerHearsWhichNamespacesAreNotWhole(t *testing.T) {
	t.Run("from the start", func(t *testing.T) {
		inNamespaces(t, informing.Namespaces{"a", "b"}, func(s *several, run func()) {
			s.close("b", true)
			heard := s.knowledge(t)
			run()
			heard("refused b", "listed a")
			s.add("b/1")
			time.Sleep(5 * time.Minute)
			heard()
			s.close("b", false)
			time.Sleep(time.Minute)
			heard("add b/1", "listed a", "listed b")
		})
	})
	t.Run("later", func(t *testing.T) {
		inNamespaces(t, informing.Namespaces{"a", "b"}, func(s *several, run func()) {
			heard := s.knowledge(t)
			run()
			heard("listed a", "listed b") // though there is nothing in either
			s.close("b", true)
			s.process.DropWatches("configmaps")
			time.Sleep(time.Minute)
			heard("refused b")
			s.process.DropWatches("configmaps")
			time.Sleep(time.Minute)
			heard()
			s.close("b", false)
			time.Sleep(time.Minute)
			heard("listed a", "listed b")
		})
	})
	t.Run("all of them", func(t *testing.T) {
		inNamespaces(t, informing.Namespaces{"a", "b"}, func(s *several, run func()) {
			heard := s.knowledge(t)
			run()
			heard("listed a", "listed b")
			s.close("a", true)
			s.close("b", true)
			s.process.ExpireWatches("configmaps")
			time.Sleep(time.Minute)
			heard("refused a", "refused b")
			s.close("b", false)
			time.Sleep(time.Minute)
			heard("listed b")
		})
	})
	t.Run("nobody else sees the mark of that", func(t *testing.T) {
		inNamespaces(t, informing.Namespaces{"a", "b"}, func(s *several, run func()) {
			_ = s.knowledge(t)
			if _, err := s.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(object any) {
				t.Errorf("%v is told to be gone, and nothing is", object)
			}}); err != nil {
				t.Fatal(err)
			}
			s.add("a/1")
			run()
			s.shows(t, "a/1")
		})
	})
}

// TestANamespaceIsWholeOnlyBehindWhatItHolds: who hears that it is has handled all its objects.
func TestANamespaceIsWholeOnlyBehindWhatItHolds(t *testing.T) {
	inNamespaces(t, informing.Namespaces{"a", "b"}, func(s *several, run func()) {
		s.add("b/1", "b/2", "b/3")
		handled := 0
		if _, err := s.informer.AddEventHandler(informing.Hearing{
			ResourceEventHandler: cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
				time.Sleep(time.Minute)
				handled++
			}},
			Refused: func(string) {},
			Listed: func(namespace, _ string) {
				if handled != 3 {
					t.Errorf("%s is listed when %d objects of 3 are handled", namespace, handled)
				}
			},
		}); err != nil {
			t.Fatal(err)
		}
		run()
		time.Sleep(time.Hour)
	})
}

// TestANamespaceThatWasRefusedIsNotWatchedBeforeItIsListed: what came between would be lacking for ever.
func TestANamespaceThatWasRefusedIsNotWatchedBeforeItIsListed(t *testing.T) {
	inNamespaces(t, informing.Namespaces{"a", "b"}, func(s *several, run func()) {
		s.add("b/1")
		s.close("b", true)
		lists := 0
		s.before = func(namespace string) {
			if namespace == "b" {
				if lists++; lists == 2 { // it was refused to be listed, and is about to be watched
					s.close("b", false)
				}
			}
		}
		run()
		s.close("b", false)
		time.Sleep(time.Minute)
		s.shows(t, "b/1")
	})
}

// script is a namespace whose lists and news a test gives by hand.
type script struct {
	mu      sync.Mutex
	refused bool
	// list is what is there, version that of the list, and asked which version was asked for last.
	list           []corev1.ConfigMap
	version, asked string
	news           *watch.FakeWatcher
	// lists counts the lists, and listFailure is why one fails.
	lists       int
	listFailure error
	// Ends is how many watches end at once. Failure is why none begins, and waits says that none does before it is given up.
	ends    int
	failure error
	waits   bool
}

func (s *script) config(namespace, name, version string) corev1.ConfigMap {
	return corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: version}}
}

// lists and watches it.
func (s *script) listerWatcher() cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.lists++
			if s.listFailure != nil {
				return nil, s.listFailure
			}
			if s.refused {
				return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", nil)
			}
			s.asked = options.ResourceVersion
			return &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: s.version}, Items: s.list}, nil
		},
		WatchFuncWithContext: func(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
			if s.waits {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			if s.failure != nil {
				return nil, s.failure
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.news = watch.NewFake()
			if s.ends--; s.ends >= 0 {
				s.news.Stop()
			}
			return s.news, nil
		},
	}, nil)
}

func (s *script) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// TestNoNamespaceGoesBackInTime when all are listed anew: the last news were of another one, and may be older.
func TestNoNamespaceGoesBackInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scripts := map[string]*script{"a": {version: "10"}, "b": {version: "10"}}
		informer := informing.Namespaces{"a", "b"}.Informer(&corev1.ConfigMap{}, func(namespace string) cache.ListerWatcher {
			return scripts[namespace].listerWatcher()
		})
		go informer.RunWithContext(t.Context())
		synctest.Wait()
		newer, older := scripts["a"].config("a", "1", "20"), scripts["b"].config("b", "1", "15")
		scripts["a"].news.Add(&newer)
		synctest.Wait()
		scripts["b"].news.Add(&older)
		synctest.Wait()
		expired := apierrors.NewResourceExpired("too old").ErrStatus
		scripts["b"].news.Error(&expired)
		time.Sleep(time.Minute)
		if got := scripts["a"].asked; got != "20" {
			t.Errorf("it is listed anew as it was at %s or later, and was shown as at 20", got)
		}
	})
}

// TestWhatIsKnownOfARefusedNamespaceIsAllThatWasTold, though the informer is behind when the others are listed anew.
func TestWhatIsKnownOfARefusedNamespaceIsAllThatWasTold(t *testing.T) {
	scripts := map[string]*script{"a": {version: "10"}, "b": {version: "10"}}
	informer := informing.Namespaces{"a", "b"}.Informer(&corev1.ConfigMap{}, func(namespace string) cache.ListerWatcher {
		return scripts[namespace].listerWatcher()
	})
	held := make(chan struct{})
	if err := informer.AddIndexers(cache.Indexers{"slow": func(object any) ([]string, error) {
		if object.(*corev1.ConfigMap).Name == "1" {
			<-held
		}
		return nil, nil
	}}); err != nil {
		t.Fatal(err)
	}
	seen := make(chan string, 2000)
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { seen <- object.(*corev1.ConfigMap).Name },
		DeleteFunc: func(any) { seen <- "gone" },
	}); err != nil {
		t.Fatal(err)
	}
	go informer.RunWithContext(t.Context())
	if !cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
		t.Fatal("it does not begin")
	}
	watched := func(s *script) *watch.FakeWatcher {
		for {
			s.mu.Lock()
			news := s.news
			s.mu.Unlock()
			if news != nil {
				return news
			}
			time.Sleep(time.Millisecond)
		}
	}
	ofA, ofB := watched(scripts["a"]), watched(scripts["b"])
	const all = 1000
	for i := range all {
		config := scripts["b"].config("b", strconv.Itoa(i+1), strconv.Itoa(i+11))
		ofB.Add(&config)
		if i == all-1 {
			ofB.Modify(&config) // Once it is taken, so is the one before.
		}
	}
	scripts["b"].set(func() { scripts["b"].refused = true })
	last := scripts["a"].config("a", "last", "2000")
	scripts["a"].set(func() {
		scripts["a"].version, scripts["a"].list, scripts["a"].asked = "2000", []corev1.ConfigMap{last}, "none"
	})
	expired := apierrors.NewResourceExpired("too old").ErrStatus
	ofA.Error(&expired)
	for asked := "none"; asked == "none"; time.Sleep(time.Millisecond) {
		scripts["a"].set(func() { asked = scripts["a"].asked })
	}
	close(held)
	for i := range all {
		if got, want := <-seen, strconv.Itoa(i+1); got != want {
			t.Fatalf("it is told %s, want %s", got, want)
		}
	}
	if got := <-seen; got != "last" {
		t.Errorf("it is told %s, want the last one", got)
	}
}

// TestEachNamespaceIsHeardToBeListedThoughTheWatchOfAllEndsAtOnce: what was not told then is told with the next watch,
// before which nothing is listed again.
func TestEachNamespaceIsHeardToBeListedThoughTheWatchOfAllEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scripts := map[string]*script{}
		var namespaces informing.Namespaces
		for i := range 50 {
			namespace := fmt.Sprint("ns-", i)
			namespaces, scripts[namespace] = append(namespaces, namespace), &script{version: "10"}
		}
		scripts["ns-0"].ends = 1
		informer := namespaces.Informer(&corev1.ConfigMap{}, func(namespace string) cache.ListerWatcher {
			return scripts[namespace].listerWatcher()
		})
		listed := map[string]bool{}
		if _, err := informer.AddEventHandler(informing.Hearing{
			ResourceEventHandler: cache.ResourceEventHandlerFuncs{},
			Refused:              func(string) {},
			Listed:               func(namespace, _ string) { listed[namespace] = true },
		}); err != nil {
			t.Fatal(err)
		}
		go informer.RunWithContext(t.Context())
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(listed) != len(namespaces) {
			t.Errorf("%d namespaces of %d are heard to be listed", len(listed), len(namespaces))
		}
	})
}

// TestWhatIsKnownOfARefusedNamespaceIsNotTransformedAgain: others read it meanwhile.
func TestWhatIsKnownOfARefusedNamespaceIsNotTransformedAgain(t *testing.T) {
	inNamespaces(t, informing.Namespaces{"a", "b"}, func(s *several, run func()) {
		seen := map[any]bool{}
		if err := s.informer.SetTransform(func(object any) (any, error) {
			if seen[object] {
				t.Errorf("%s is transformed again", object.(*corev1.ConfigMap).Name)
			}
			seen[object] = true
			return object, nil
		}); err != nil {
			t.Fatal(err)
		}
		s.add("a/1", "b/known")
		run()
		s.close("b", true)
		s.process.ExpireWatches("configmaps")
		time.Sleep(time.Minute)
		s.shows(t, "a/1", "b/known")
	})
}

// TestAFailedWatchSaysWhy: the reflector lists all anew unless it can't connect, and then the others are given up.
func TestAFailedWatchSaysWhy(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			scripts := map[string]*script{}
			var namespaces informing.Namespaces
			for i := range 16 {
				namespace := fmt.Sprint("ns-", i)
				namespaces, scripts[namespace] = append(namespaces, namespace), &script{version: "10", waits: i > 0}
			}
			scripts["ns-0"].failure = syscall.ECONNREFUSED
			informer := namespaces.Informer(&corev1.ConfigMap{}, func(namespace string) cache.ListerWatcher {
				return scripts[namespace].listerWatcher()
			})
			go informer.RunWithContext(t.Context())
			time.Sleep(time.Minute)
			synctest.Wait()
			if got := scripts["ns-0"].lists; got != 1 {
				t.Errorf("all are listed %d times", got)
			}
		})
	}
}

// TestARefusalIsHeardOnce, though the namespace can't be asked for in between.
func TestARefusalIsHeardOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scripts := map[string]*script{"a": {version: "10"}, "b": {version: "10", refused: true}}
		informer := informing.Namespaces{"a", "b"}.Informer(&corev1.ConfigMap{}, func(namespace string) cache.ListerWatcher {
			return scripts[namespace].listerWatcher()
		})
		refused := 0
		if _, err := informer.AddEventHandler(informing.Hearing{
			ResourceEventHandler: cache.ResourceEventHandlerFuncs{},
			Refused:              func(string) { refused++ },
			Listed:               func(string, string) {},
		}); err != nil {
			t.Fatal(err)
		}
		go informer.RunWithContext(t.Context())
		synctest.Wait()
		b, expired := scripts["b"], apierrors.NewResourceExpired("too old").ErrStatus
		for range 3 {
			b.set(func() { b.listFailure = apierrors.NewInternalError(errors.New("the API server is ill")) })
			scripts["a"].news.Error(&expired)
			time.Sleep(10 * time.Second)
			b.set(func() { b.listFailure = nil })
			time.Sleep(5 * time.Minute)
		}
		if refused != 1 {
			t.Errorf("the refusal is heard %d times", refused)
		}
	})
}

// TestARefusedNamespaceIsAskedForThoughWatchesEndOften, and not more often for that.
func TestARefusedNamespaceIsAskedForThoughWatchesEndOften(t *testing.T) {
	inNamespaces(t, informing.Namespaces{"a", "b"}, func(s *several, run func()) {
		s.close("b", true)
		s.add("a/1", "b/1")
		run()
		between := func() {
			for range 15 {
				time.Sleep(20 * time.Second)
				s.process.DropWatches("configmaps")
			}
		}
		s.mu.Lock()
		before := s.lists["b"]
		s.mu.Unlock()
		between()
		s.mu.Lock()
		if n := s.lists["b"] - before; n < 5 || n > 14 { // Watches end 15 times.
			t.Errorf("it is asked for %d times in 5 minutes", n)
		}
		s.mu.Unlock()
		s.close("b", false)
		between()
		s.shows(t, "a/1", "b/1")
	})
}

func TestANamespaceIsUnreadUntilAllMayReadIt(t *testing.T) {
	inNamespaces(t, informing.Namespaces{"a", "b"}, func(s *several, run func()) {
		var readable []string
		unread := informing.Namespaces{"a", "b"}.Unread(func(namespace string) { readable = append(readable, namespace) })
		if err := unread.Follow(s.informer); err != nil {
			t.Fatal(err)
		}
		late := &told{}
		if err := unread.Follow(late); err != nil {
			t.Fatal(err)
		}
		late.heard.Refused("b")
		run()
		if unread.Has("a") || !unread.Has("b") || unread.Count() != 1 {
			t.Error("b is not unread, or a is")
		}
		s.close("a", true)
		s.close("b", true)
		s.process.ExpireWatches("configmaps")
		time.Sleep(time.Minute)
		synctest.Wait()
		if !unread.Has("a") || !unread.Has("b") || unread.Count() != 2 {
			t.Error("not both are unread")
		}
		s.close("a", false)
		s.close("b", false)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if unread.Has("a") || !unread.Has("b") || !slices.Equal(readable, []string{"a"}) {
			t.Errorf("readable are %q, want a alone", readable)
		}
		late.heard.Listed("b", "1")
		late.heard.Listed("b", "2")
		if unread.Count() != 0 || !slices.Equal(readable, []string{"a", "b"}) {
			t.Errorf("readable are %q, want each once", readable)
		}
	})
}

// told is an informer that tells what the test says.
type told struct {
	cache.SharedIndexInformer
	heard informing.Hearing
}

func (i *told) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	i.heard = handler.(informing.Hearing)
	return nil, nil
}
