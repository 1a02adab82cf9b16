// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/pacing"
)

// storedPods is a Client of Pods that are stored somewhere. It lists them one to a page.
type storedPods struct {
	Client
	pods        []*corev1.Pod
	gets, lists int
}

func (s *storedPods) Get(_ context.Context, _, name string) (metav1.Object, error) {
	s.gets++
	for _, pod := range s.pods {
		if pod.Name == name {
			return pod, nil
		}
	}
	return nil, apierrors.NewNotFound(corev1.Resource("pods"), name)
}

func (s *storedPods) List(_ context.Context, _ string, options metav1.ListOptions) (page []metav1.Object, next string, err error) {
	if options.Continue == "" {
		s.lists++
	}
	key, value, _ := strings.Cut(options.LabelSelector, "=")
	selected := slices.DeleteFunc(slices.Clone(s.pods), func(pod *corev1.Pod) bool { return key != "" && pod.Labels[key] != value })
	at := 0
	fmt.Sscan(options.Continue, &at)
	if at < len(selected) {
		page = append(page, selected[at])
	}
	if at+1 < len(selected) {
		next = fmt.Sprint(at + 1)
	}
	return page, next, nil
}

// passOver is a pass over the owner o, whose Pods are stored somewhere, and of which a cache shows
// some.
func passOver(t *testing.T, pods []*corev1.Pod, stored *storedPods) *pass[*corev1.ConfigMap, int] {
	t.Helper()
	informer := cache.NewSharedIndexInformerWithOptions(&cache.ListWatch{}, &corev1.Pod{}, cache.SharedIndexInformerOptions{Indexers: OwnerIndex("")})
	for _, pod := range pods {
		if err := informer.GetIndexer().Add(pod); err != nil {
			t.Fatal(err)
		}
	}
	informer.GetIndexer().Bookmark("4")
	metrics, err := newMetrics(prometheus.NewRegistry(), func() int { return 0 }, func() time.Duration { return 0 })
	if err != nil {
		t.Fatal(err)
	}
	return &pass[*corev1.ConfigMap, int]{
		owners: &Owners[*corev1.ConfigMap, int]{
			clock: clocktesting.NewFakePassiveClock(time.Unix(100, 0)), metrics: metrics, batchSize: 1,
			entropy: systemEntropy{}, events: record.NewFakeRecorder(100),
			kinds: map[string]*Kind{"Pod": {Name: "Pod", Informer: informer, Client: stored}},
		},
		key: cache.NewObjectName("ns", "o"), entry: &entry[*corev1.ConfigMap]{owner: &corev1.ConfigMap{}},
		memory: &memory[*corev1.ConfigMap, int]{objects: newObjects()},
		pace:   &pacing.Pace[cause]{}, departures: &departures{}, turn: &turn{begun: time.Unix(100, 0), inFlight: func() int { return 1 }},
	}
}

// TestALookForOneThatIsGoneShowsItsSuccessor, by one request or by a list.
func TestALookForOneThatIsGoneShowsItsSuccessor(t *testing.T) {
	for _, n := range []int{2, fewLooks + 1} {
		stored := &storedPods{}
		var looks []plan.Action
		for i := range n {
			name := fmt.Sprint("p", i)
			owner := map[int]types.UID{0: "o", 1: "another"}[i]
			if owner != "" {
				stored.pods = append(stored.pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
					Namespace: "ns", Name: name, UID: types.UID("new-" + name), ResourceVersion: "5",
					OwnerReferences: []metav1.OwnerReference{{UID: owner, Controller: ptr.To(true)}},
				}})
			}
			looks = append(looks, plan.Action{Verb: plan.LookFor, Kind: "Pod", Name: name, UID: types.UID("old-" + name), Owner: "o"})
		}
		p := passOver(t, nil, stored)
		if acted, err := p.act(t.Context(), looks); err != nil || !acted {
			t.Fatalf("acted %v: %v", acted, err)
		}
		view, err := p.gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, look := range looks {
			if !view.Gone[look.UID] {
				t.Errorf("of %d: %s is not known to be gone", n, look.UID)
			}
		}
		if found := Found[*corev1.Pod](view, "Pod"); len(found) != 1 || found[0].UID != "new-p0" {
			t.Errorf("of %d: found %v, want new-p0 alone", n, found)
		}
	}
}

// TestManyNamesAreLookedForInOneList, and few of them one by one.
func TestManyNamesAreLookedForInOneList(t *testing.T) {
	for n, want := range map[int]struct{ gets, lists int }{fewLooks: {gets: fewLooks}, fewLooks + 1: {lists: 1}} {
		stored := &storedPods{}
		var looks []plan.Action
		for i := range n {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("p", i), UID: types.UID(fmt.Sprint("u", i)), ResourceVersion: "5"}}
			switch i {
			case 0: // It is the owner's.
				pod.OwnerReferences = []metav1.OwnerReference{{UID: "o", Controller: ptr.To(true)}}
				stored.pods = append(stored.pods, pod)
			case 1: // Somebody else has the name.
				stored.pods = append(stored.pods, pod)
			}
			looks = append(looks, plan.Action{Verb: plan.ConfirmNo, Kind: "Pod", Name: pod.Name, Owner: "o"})
		}
		p := passOver(t, nil, stored)
		if acted, err := p.act(t.Context(), looks); err != nil || !acted {
			t.Fatalf("acted %v: %v", acted, err)
		}
		if stored.gets != want.gets || stored.lists != want.lists {
			t.Errorf("of %d names: %d requests for one and %d lists, want %+v", n, stored.gets, stored.lists, want)
		}
		view, err := p.gather()
		if err != nil {
			t.Fatal(err)
		}
		if len(view.Outcomes) != n-1 || slices.ContainsFunc(view.Outcomes, func(o plan.Outcome) bool { return o.Action.Name == "p0" }) {
			t.Errorf("of %d names %d are said to have no Pod, want all but p0", n, len(view.Outcomes))
		}
		if found := Found[*corev1.Pod](view, "Pod"); len(found) != 1 || found[0].Name != "p0" {
			t.Errorf("%d Pods are found, want p0", len(found))
		}
	}
}

// slowPods takes as long for a list as a request may.
type slowPods struct {
	*storedPods
	clock *clocktesting.FakePassiveClock
}

func (s *slowPods) List(ctx context.Context, namespace string, options metav1.ListOptions) (page []metav1.Object, next string, err error) {
	s.clock.SetTime(s.clock.Now().Add(pacing.RequestTime))
	return s.storedPods.List(ctx, namespace, options)
}

// latePods takes a while for each page of a list, and for each object that it is asked for.
type latePods struct {
	*storedPods
	each time.Duration
}

func (l *latePods) wait(ctx context.Context) error {
	select {
	case <-time.After(l.each):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *latePods) List(ctx context.Context, namespace string, options metav1.ListOptions) (page []metav1.Object, next string, err error) {
	if err := l.wait(ctx); err != nil {
		return nil, "", err
	}
	return l.storedPods.List(ctx, namespace, options)
}

func (l *latePods) Get(ctx context.Context, namespace, name string) (metav1.Object, error) {
	if err := l.wait(ctx); err != nil {
		return nil, err
	}
	return l.storedPods.Get(ctx, namespace, name)
}

// TestAListOfManySlowPagesShowsWhatIsGone, although all of them together take longer than a request may.
func TestAListOfManySlowPagesShowsWhatIsGone(t *testing.T) {
	const pages, each = 20, 8 * time.Second
	for name, does := range map[string]func(i int) plan.Action{
		"looks for objects": func(i int) plan.Action {
			return plan.Action{Verb: plan.LookFor, Kind: "Pod", Name: fmt.Sprint("p", i), UID: types.UID(fmt.Sprint("old-p", i)), Owner: "o"}
		},
		"looks for names": func(i int) plan.Action {
			return plan.Action{Verb: plan.ConfirmNo, Kind: "Pod", Name: fmt.Sprint("p", i), Owner: "o"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stored := &storedPods{}
				for i := range pages { // Pods of others.
					stored.pods = append(stored.pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("other", i), UID: types.UID(fmt.Sprint(i))}})
				}
				var looks []plan.Action
				for i := range fewLooks + 1 {
					looks = append(looks, does(i))
				}
				p := passOver(t, nil, stored)
				p.owners.kinds["Pod"].Client = &latePods{stored, each}
				if _, err := p.act(t.Context(), looks); err != nil {
					t.Fatal(err)
				}
				view, err := p.gather()
				if err != nil {
					t.Fatal(err)
				}
				if known := len(view.Gone) + len(view.Outcomes); known != len(looks) {
					t.Errorf("of %d that are gone %d are known to be", len(looks), known)
				}
			})
		})
	}
}

// TestALookIsOverBeforeItSeemsToHang, however many pages and objects it is about.
func TestALookIsOverBeforeItSeemsToHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stored, cached := &storedPods{}, []*corev1.Pod{}
		for i := range 5 {
			stored.pods = append(stored.pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("other", i), UID: types.UID(fmt.Sprint(i))}})
		}
		for i := range fewLooks {
			cached = append(cached, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: fmt.Sprint("p", i), UID: types.UID(fmt.Sprint("u", i)), ResourceVersion: "3",
				OwnerReferences: []metav1.OwnerReference{{UID: "o", Controller: ptr.To(true)}},
			}})
		}
		p := passOver(t, cached, stored)
		p.owners.kinds["Pod"].Client = &latePods{stored, pacing.RequestTime - time.Second}
		begun := time.Now()
		_, err := p.act(t.Context(), []plan.Action{{Verb: plan.List, Kind: "Pod", Name: "o", Owner: "o"}})
		if took := time.Since(begun); took > pacing.LookTime {
			t.Errorf("the look took %v, want at most %v: %v", took, pacing.LookTime, err)
		}
	})
}

// TestATurnThatIsOverBeginsNoMoreLooks, however many are planned, and the next one goes on with them.
func TestATurnThatIsOverBeginsNoMoreLooks(t *testing.T) {
	looks := []plan.Action{{Verb: plan.List, Kind: "Pod", Owner: "o"}, {Verb: plan.List, Kind: "Pod", Owner: "other"}}
	for i := range fewLooks + 1 {
		looks = append(looks, plan.Action{Verb: plan.ConfirmNo, Kind: "Pod", Name: fmt.Sprint("p", i), Owner: "o"})
	}
	stored, clock := &storedPods{}, clocktesting.NewFakePassiveClock(time.Unix(100, 0))
	p := passOver(t, nil, stored)
	p.owners.clock, p.owners.kinds["Pod"].Client = clock, &slowPods{stored, clock}
	for turns := 1; turns <= 3; turns++ {
		p.turn = &turn{begun: clock.Now(), inFlight: p.turn.inFlight}
		if acted, err := p.act(t.Context(), looks); err != nil || !acted {
			t.Fatalf("acted %v: %v", acted, err)
		}
		if stored.lists != turns {
			t.Errorf("after %d turns there were %d lists", turns, stored.lists)
		}
		looks = p.memory.left
	}
	if len(looks) > 0 {
		t.Errorf("%d looks are left after as many turns as there are lists", len(looks))
	}
}

// TestAListShowsWhatNoEventHasTold of the owner's objects.
func TestAListShowsWhatNoEventHasTold(t *testing.T) {
	pod := func(name, version, owner, job string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID(owner + "-" + name), ResourceVersion: version,
			OwnerReferences: []metav1.OwnerReference{{UID: types.UID(owner), Controller: ptr.To(true)}},
		}}
		if job != "" {
			p.Labels = map[string]string{"job": job}
		}
		return p
	}
	ours := func(name, version string) *corev1.Pod { return pod(name, version, "o", "j") }
	many := func(version string) (all []*corev1.Pod) {
		for i := range 2 * fewLooks {
			all = append(all, ours(fmt.Sprint("p", i), version))
		}
		return all
	}
	tests := map[string]struct {
		cached, stored []*corev1.Pod
		// want are the Pods that a decision sees then, with their versions.
		want  []string
		lists int
	}{
		"what the cache has as well":              {cached: []*corev1.Pod{ours("a", "3")}, stored: []*corev1.Pod{ours("a", "3")}, want: []string{"a 3"}, lists: 1},
		"one that the cache has not heard of":     {stored: []*corev1.Pod{ours("a", "5"), ours("b", "6")}, want: []string{"a 5", "b 6"}, lists: 1},
		"a change that the cache has not seen":    {cached: []*corev1.Pod{ours("a", "3")}, stored: []*corev1.Pod{ours("a", "5")}, want: []string{"a 5"}, lists: 1},
		"one that is gone":                        {cached: []*corev1.Pod{ours("a", "3"), ours("b", "3")}, stored: []*corev1.Pod{ours("b", "3")}, want: []string{"b 3"}, lists: 1},
		"one that is gone, and another in place":  {cached: []*corev1.Pod{ours("a", "3")}, stored: []*corev1.Pod{pod("a", "5", "other", "j")}, lists: 1},
		"one that has lost its label is there":    {cached: []*corev1.Pod{ours("a", "3")}, stored: []*corev1.Pod{pod("a", "5", "o", "")}, want: []string{"a 3"}, lists: 1},
		"somebody else's with the label":          {stored: []*corev1.Pod{pod("a", "5", "other", "j")}, lists: 1},
		"many that are gone are one more request": {cached: many("3"), lists: 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			stored := &storedPods{pods: tc.stored}
			p := passOver(t, tc.cached, stored)
			list := plan.Action{Verb: plan.List, Kind: "Pod", Name: "o", Owner: "o", Selector: "job=j"}
			if acted, err := p.act(t.Context(), []plan.Action{list}); err != nil || !acted {
				t.Fatalf("acted %v: %v", acted, err)
			}
			view, err := p.gather()
			if err != nil {
				t.Fatal(err)
			}
			if len(view.Outcomes) != 1 || view.Outcomes[0].Action.Verb != plan.List {
				t.Errorf("outcomes: %v", view.Outcomes)
			}
			if diff := cmp.Diff(tc.want, shownPods(t, view)); diff != "" {
				t.Errorf("unexpected Pods (-want +got):\n%s", diff)
			}
			p.owners.kinds["Pod"].Informer.GetIndexer().Bookmark("9") // The watch has told of others, and has lost these.
			if view, err = p.gather(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, shownPods(t, view)); diff != "" {
				t.Errorf("unexpected Pods after news of others (-want +got):\n%s", diff)
			}
			if stored.lists != tc.lists {
				t.Errorf("%d lists, want %d", stored.lists, tc.lists)
			}
		})
	}
}

// shownPods are the Pods of the owner o that a decision sees, with their versions.
func shownPods(t *testing.T, view *View[*corev1.ConfigMap, int]) (shown []string) {
	t.Helper()
	pods, err := Owned[*corev1.Pod](view, "Pod", "o")
	if err != nil {
		t.Fatal(err)
	}
	for name, pod := range pods {
		if !view.Gone[pod.UID] {
			shown = append(shown, name+" "+pod.ResourceVersion)
		}
	}
	slices.Sort(shown)
	return shown
}

// TestStrippedLabelsHaveNoNamespaceListed time after time, however many objects of an owner have lost theirs.
func TestStrippedLabelsHaveNoNamespaceListed(t *testing.T) {
	now := time.Unix(1e9, 0)
	for _, strays := range []int{11, 10 * fewLooks} {
		p := &pass[*corev1.ConfigMap, int]{
			owners: &Owners[*corev1.ConfigMap, int]{
				clock: clocktesting.NewFakePassiveClock(now), kinds: map[string]*Kind{"Pod": {Name: "Pod"}},
			},
			memory: &memory[*corev1.ConfigMap, int]{objects: newObjects()},
			pace:   &pacing.Pace[cause]{},
		}
		for i := range strays {
			uid := types.UID(strconv.Itoa(i))
			p.memory.strays[uid] = stray{kind: "Pod", object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p" + string(uid), UID: uid}}}
			p.pace.Looks.Last(uid, now)
		}
		looked := map[types.UID]bool{}
		for range 10 {
			now = now.Add(pacing.LookInterval)
			p.owners.clock = clocktesting.NewFakePassiveClock(now)
			due, _ := p.looksAgain()
			if many := lookForMany(due); many["LookForPod"] || len(due) > fewLooks {
				t.Fatalf("%d of %d objects are looked at together", len(due), strays)
			}
			for _, look := range due {
				looked[look.UID] = true
				p.pace.Looks.Last(look.UID, now)
			}
			if again, next := p.looksAgain(); len(again) > 0 || !next.Equal(now.Add(pacing.LookInterval)) {
				t.Fatalf("%d are due at once after that, and others at %v", len(again), next)
			}
		}
		if len(looked) != strays {
			t.Errorf("%d of %d objects were looked at in ten rounds", len(looked), strays)
		}
	}
}

// TestAnOwnerThatCanNotBeWorkedWithKeepsNothing of what happens to its objects.
func TestAnOwnerThatCanNotBeWorkedWithKeepsNothing(t *testing.T) {
	key := cache.NewObjectName("ns", "fw")
	seen := &departures{}
	k := &knowledge[*corev1.ConfigMap, int]{byKey: map[cache.ObjectName]known[*corev1.ConfigMap, int]{
		key: {memory: &memory[*corev1.ConfigMap, int]{objects: newObjects()}, pace: &pacing.Pace[cause]{}, departures: seen},
	}}
	k.departed(key, departure{uid: "a"})
	k.leave(key)
	if left := seen.take(); len(left) > 0 || k.byKey[key].memory != nil || k.byKey[key].pace == nil {
		t.Errorf("it keeps %v and %+v, want its pace alone", left, k.byKey[key])
	}
}
