// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/controller/engine"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// desk is an API server with Notes, and programs that run them one after the other.
type desk struct {
	t      *testing.T
	server *apiserver.Server
	// log is where programs log, nowhere unless a test says so.
	log logr.Logger
	// programs are those that were started.
	programs []*program
	running  sync.WaitGroup
}

// atDesk runs a test in a bubble of testing/synctest.
func atDesk(t *testing.T, test func(t *testing.T, d *desk)) {
	t.Helper()
	quiet(t)
	synctest.Test(t, func(t *testing.T) {
		version := noteKind.GroupVersion()
		server := apiserver.New(t,
			apiserver.WithResource(apiserver.Resource{GroupVersionResource: version.WithResource("notes"), Kind: noteKind.Kind, Type: (*Note)(nil)}),
			apiserver.WithResource(apiserver.Resource{GroupVersionResource: version.WithResource("drafts"), Kind: draftKind.Kind, Type: (*Draft)(nil)}))
		server.StartGarbageCollector(time.Second)
		d := &desk{t: t, server: server, log: logr.Discard()}
		defer d.running.Wait()
		defer func() {
			for _, p := range d.programs {
				p.stop()
			}
		}()
		test(t, d)
	})
}

// Draft is an owner of another kind, which the same controller runs.
type Draft struct{ Note }

var draftKind = noteKind.GroupVersion().WithKind("Draft")

// DeepCopyObject makes a Draft an object.
func (d *Draft) DeepCopyObject() runtime.Object { return &Draft{*d.Note.DeepCopyObject().(*Note)} }

// drafts are decided on as Notes are. That they are served is not certain.
type drafts struct{ *notes }

func (d drafts) Resource() engine.Resource {
	return engine.Resource{GroupVersionKind: draftKind, Plural: "drafts", API: d.api, Optional: true}
}

// quiet has nobody write to the log.
func quiet(t *testing.T) {
	state := klog.CaptureState()
	t.Cleanup(state.Restore)
	klog.SetLogger(logr.Discard())
}

// program is one process of a controller of Notes.
type program struct {
	*apiserver.Process
	notes   *engine.Owners[*Note, NoteStatus]
	metrics *prometheus.Registry
	stop    context.CancelFunc
}

// start starts a program that lives for a number of writes, or for ever if that is negative.
func (d *desk) start(writes int) *program {
	d.t.Helper()
	check := func(err error) {
		d.t.Helper()
		if err != nil {
			d.t.Fatal(err)
		}
	}
	p := &program{Process: d.server.Process(fmt.Sprint("program-", len(d.programs))), metrics: prometheus.NewRegistry()}
	p.KillAfter(writes)
	kube, err := kubernetes.NewForConfig(p.Config())
	check(err)
	metadata, err := metadata.NewForConfig(p.Config())
	check(err)
	config := rest.CopyConfig(p.Config())
	version := noteKind.GroupVersion()
	config.GroupVersion, config.APIPath, config.NegotiatedSerializer = &version, "/apis", scheme.Codecs.WithoutConversion()
	api, err := rest.RESTClientFor(config)
	check(err)
	e, err := engine.New(engine.Options{
		Kube: kube, Metadata: metadata, Workers: 2, BatchSize: 10, Window: 100 * time.Millisecond, Registerer: p.metrics,
	})
	check(err)
	core := newNotes(kube, api)
	p.notes, err = engine.Add(e, core)
	check(err)
	ctx, stop := context.WithCancel(klog.NewContext(d.t.Context(), d.log))
	p.stop = stop
	d.programs = append(d.programs, p)
	_, err = engine.Add(e, drafts{core})
	check(err)
	d.running.Go(func() { core.run(ctx) })
	d.running.Go(func() { e.Run(ctx) })
	return p
}

// write adds a Note, or changes its text.
func (d *desk) write(name, text string) {
	if apiserver.Find[Note](d.server, "ns", name) == nil {
		apiserver.Add(d.server, &Note{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: NoteSpec{Text: text}})
		return
	}
	apiserver.Change(d.server, "ns", name, func(n *Note) { n.Spec.Text = text })
}

// shows waits until the ConfigMap of a Note has a text, and the status says so.
func (d *desk) shows(name, text string) bool {
	for range 60 {
		time.Sleep(time.Second)
		synctest.Wait()
		note, configMap := apiserver.Find[Note](d.server, "ns", name), apiserver.Find[corev1.ConfigMap](d.server, "ns", name)
		if configMap != nil && configMap.Data["text"] == text && note.Status.Shown && note.Status.Revision == note.Generation {
			return true
		}
	}
	return false
}

// TestANoteIsShownWhereverItsControllerDies: at each write of its life, a controller dies
// before it, and another one goes on. No ConfigMap is ever written of which the status
// does not know, and none twice.
func TestANoteIsShownWhereverItsControllerDies(t *testing.T) {
	const writes = 7 // Status, ConfigMap, status; then status, deletion, ConfigMap, status. Events besides.
	for crash := range writes + 3 {
		t.Run(fmt.Sprintf("after %d writes", crash), func(t *testing.T) {
			atDesk(t, func(t *testing.T, d *desk) {
				created, onRecord := map[string]int{}, ""
				d.server.SetObserver(func(w *apiserver.Written) {
					switch {
					case w.Removed():
					case w.Resource == "notes":
						onRecord = fmt.Sprint(apiserver.After[Note](w).Status.Revision)
					case w.Resource == "configmaps" && w.Created():
						revision := apiserver.After[corev1.ConfigMap](w).Annotations[revisionKey]
						created[revision]++
						if revision != onRecord {
							t.Errorf("a ConfigMap of revision %s is created, but %s is on record", revision, onRecord)
						}
					}
				})
				first := d.start(crash)
				d.write("a", "one")
				shown := d.shows("a", "one")
				if !shown && !first.Dead() {
					t.Fatal("the first text is not shown by a controller that lives")
				}
				if !shown {
					first = d.replace(first)
					if !d.shows("a", "one") {
						t.Fatal("the first text is not shown by the second controller")
					}
				}
				d.write("a", "two")
				shown = d.shows("a", "two")
				if !shown {
					d.replace(first)
					if !d.shows("a", "two") {
						t.Fatal("the second text is not shown by the next controller")
					}
				}
				if crash < writes && len(d.programs) == 1 {
					t.Errorf("the controller has outlived write %d", crash+1)
				}
				if created["1"] != 1 || created["2"] != 1 || len(created) != 2 {
					t.Errorf("ConfigMaps were created so often, by revision: %v, want each once", created)
				}
			})
		})
	}
}

// replace has another controller begin where one has died.
func (d *desk) replace(dead *program) *program {
	d.t.Helper()
	if !dead.Dead() {
		d.t.Fatal("the controller is stuck, and lives")
	}
	dead.stop()
	return d.start(-1)
}

// TestAConfigMapThatSomebodyDeletesComesBack, and of one that is deleted again and again
// the next comes later and later.
func TestAConfigMapThatSomebodyDeletesComesBack(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.start(-1)
		d.write("a", "one")
		if !d.shows("a", "one") {
			t.Fatal("the text is not shown")
		}
		d.server.ClearJournal()
		for range 600 {
			if apiserver.Find[corev1.ConfigMap](d.server, "ns", "a") != nil {
				apiserver.Remove[corev1.ConfigMap](d.server, "ns", "a")
			}
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
		}
		if created := d.count(apiserver.Create, "configmaps"); created == 0 || created > 15 {
			t.Errorf("%d ConfigMaps were created in a minute, want some, and 15 at most", created)
		}
		if !d.shows("a", "one") {
			t.Error("the text is not shown when nobody deletes it any more")
		}
	})
}

// TestWhatWasJustWrittenIsNotWrittenAgain while the cache is behind.
func TestWhatWasJustWrittenIsNotWrittenAgain(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		p := d.start(-1)
		time.Sleep(time.Second)
		synctest.Wait()
		p.Hold("configmaps")
		d.write("a", "one")
		if !d.shows("a", "one") {
			t.Error("the text is not shown, or the status does not say so before the cache does")
		}
		tries := 0
		for _, entry := range d.server.Writes() {
			if entry.Verb == apiserver.Create && entry.Resource == "configmaps" {
				tries++
			}
		}
		if tries != 1 {
			t.Errorf("the ConfigMap was created by %d requests, want 1", tries)
		}
	})
}

// TestOwnersThatAreNotServedKeepNobodyWaiting, and are run as soon as they are served. The
// log tells once that they are not, and once that they are.
func TestOwnersThatAreNotServedKeepNobodyWaiting(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			if r.Resource == "drafts" {
				return apiserver.Fault{Refusal: apierrors.NewNotFound(noteKind.GroupVersion().WithResource("drafts").GroupResource(), "")}
			}
			return apiserver.Fault{}
		})
		apiserver.Add(d.server, &Draft{Note{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "draft"}, Spec: NoteSpec{Text: "one"}}})
		var log lines
		d.log = funcr.New(log.add, funcr.Options{})
		p := d.start(-1)
		d.write("a", "one")
		if !d.shows("a", "one") {
			t.Error("a Note waits for Drafts, which are not served")
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if told := log.with("Draft"); len(told) != 1 || !strings.Contains(told[0], "may not serve") {
			t.Errorf("the log says of Drafts %q, want once that they may not be served", told)
		}
		if drafts, notes := p.gauge(t, "listed_drafts"), p.gauge(t, "listed_notes"); drafts != 0 || notes != 1 {
			t.Errorf("the metrics of Drafts and Notes are %v and %v, want 0 and 1", drafts, notes)
		}
		d.server.SetHook(nil)
		time.Sleep(5 * time.Minute) // An informer tries again after a minute at most.
		synctest.Wait()
		if draft := apiserver.Find[Draft](d.server, "ns", "draft"); !draft.Status.Shown {
			t.Error("a Draft is not shown after they are served")
		}
		if told := log.with("Draft"); len(told) < 2 || !strings.Contains(told[1], "are listed now") {
			t.Errorf("the log says of Drafts %q, want in the end that they are listed", told)
		}
		if drafts := p.gauge(t, "listed_drafts"); drafts != 1 {
			t.Errorf("the metric of Drafts is %v, want 1", drafts)
		}
	})
}

// lines are what is logged.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) add(_, line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, line)
}

// with are the lines that speak of something.
func (l *lines) with(word string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.all {
		if strings.Contains(line, word) {
			found = append(found, line)
		}
	}
	return found
}

// gauge is the value of a metric of the controller.
func (p *program) gauge(t *testing.T, name string) float64 {
	t.Helper()
	families, err := p.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "lockstep_controller_"+name {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}

func (d *desk) count(verb apiserver.Verb, resource string) int {
	count := 0
	for _, entry := range d.server.Writes() {
		if entry.Verb == verb && entry.Resource == resource && entry.Code < http.StatusMultipleChoices {
			count++
		}
	}
	return count
}

// TestANameThatIsTakenIsWaitedFor: the engine takes over nothing that is somebody else's.
func TestANameThatIsTakenIsWaitedFor(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.start(-1)
		apiserver.Add(d.server, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}, Data: map[string]string{"text": "mine"}})
		d.write("a", "one")
		if d.shows("a", "one") {
			t.Fatal("the ConfigMap of a stranger was replaced")
		}
		apiserver.Remove[corev1.ConfigMap](d.server, "ns", "a")
		if !d.shows("a", "one") {
			t.Error("the text is not shown when the name is free")
		}
	})
}

// TestANoteThatMakesNoSenseIsTold, and keeps no other from being shown. It is shown when
// it is mended.
func TestANoteThatMakesNoSenseIsTold(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.write("empty", "")
		p := d.start(-1)
		d.write("late", "")
		d.write("a", "one")
		if !d.shows("a", "one") {
			t.Error("the text of another Note is not shown")
		}
		if undecodable := p.notes.Undecodable(); undecodable != 2 {
			t.Errorf("%d Notes are counted that make no sense, want 2", undecodable)
		}
		told := map[string]bool{}
		for _, event := range apiserver.All[corev1.Event](d.server, "ns") {
			if event.Reason == "Undecodable" && strings.Contains(event.Message, errNoText.Error()) {
				told[event.InvolvedObject.Name] = true
			}
		}
		if !told["empty"] || !told["late"] {
			t.Errorf("told of %v, want of both that make no sense", told)
		}
		d.write("late", "mended")
		if !d.shows("late", "mended") {
			t.Error("a Note that was mended is not shown")
		}
	})
}

// TestAWriteWhoseAnswerIsLostIsNotRepeated: the ConfigMap is there, and is found.
func TestAWriteWhoseAnswerIsLostIsNotRepeated(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		lost := false
		d.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			if r.Verb == apiserver.Create && r.Resource == "configmaps" && !lost {
				lost = true
				return apiserver.Fault{LoseAnswer: true}
			}
			return apiserver.Fault{}
		})
		d.start(-1)
		d.write("a", "one")
		if !d.shows("a", "one") {
			t.Error("the text is not shown")
		}
		if !lost {
			t.Error("no answer was lost")
		}
	})
}

// TestAStatusThatIsTooLargeHoldsUpNothingElse: the core has no shorter one. What rests on
// the status that is stored goes on, the user is told once, and the write is tried again,
// later and later, until it goes through.
func TestAStatusThatIsTooLargeHoldsUpNothingElse(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		tries := 0
		d.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			if r.Resource == "notes" && r.Subresource == "status" && len(r.Body) > 1024 {
				tries++
				return apiserver.Fault{Refusal: apierrors.NewRequestEntityTooLargeError("etcdserver: request is too large")}
			}
			return apiserver.Fault{}
		})
		d.start(-1)
		d.write("a", "one")
		if !d.shows("a", "one") {
			t.Fatal("the text is not shown")
		}
		remark := strings.Repeat("long ", 1000)
		apiserver.Change(d.server, "ns", "a", func(n *Note) { metav1.SetMetaDataAnnotation(&n.ObjectMeta, remarkKey, remark) })
		for range 3 {
			apiserver.Remove[corev1.ConfigMap](d.server, "ns", "a") // This also tells the engine that there is news.
			time.Sleep(time.Minute)
			synctest.Wait()
			if apiserver.Find[corev1.ConfigMap](d.server, "ns", "a") == nil {
				t.Fatal("a ConfigMap that was deleted does not come back")
			}
		}
		if tries < 3 || tries > 30 {
			t.Errorf("the status was written %d times in three minutes, want some tries, and 30 at most", tries)
		}
		told := d.eventsOf("a", engine.ReasonStatusTooLarge)
		if len(told) != 1 || !strings.Contains(told[0], "can't be shortened enough") {
			t.Errorf("the user was told %q, want once that the status can't be shortened", told)
		}
		d.server.SetHook(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if note := apiserver.Find[Note](d.server, "ns", "a"); note.Status.Remark != remark {
			t.Error("the status is not written when it is small enough")
		}
	})
}

// TestNothingIsKnownOfOwnersThatAreGone: a controller lives for months.
func TestNothingIsKnownOfOwnersThatAreGone(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		p := d.start(-1)
		const owners = 50
		for i := range owners {
			d.write(fmt.Sprint("note-", i), "one")
		}
		if !d.shows(fmt.Sprint("note-", owners-1), "one") || p.notes.Known() != owners {
			t.Fatalf("%d owners are known, want %d", p.notes.Known(), owners)
		}
		for i := range owners {
			apiserver.Remove[Note](d.server, "ns", fmt.Sprint("note-", i))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if known := p.notes.Known(); known > 0 {
			t.Errorf("%d owners are known that are gone", known)
		}
	})
}

// TestEventsThatWaitForAStatusAreBounded: a write may fail for days, and what happens
// meanwhile is told when it goes through, the newest of it.
func TestEventsThatWaitForAStatusAreBounded(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			if r.Resource == "notes" && r.Subresource == "status" && strings.Contains(string(r.Body), "remark") {
				return apiserver.Fault{Refusal: apierrors.NewInternalError(errors.New("no room"))}
			}
			return apiserver.Fault{}
		})
		p := d.start(-1)
		d.write("a", "one")
		if !d.shows("a", "one") {
			t.Fatal("the text is not shown")
		}
		apiserver.Change(d.server, "ns", "a", func(n *Note) { metav1.SetMetaDataAnnotation(&n.ObjectMeta, remarkKey, "news") })
		apiserver.Remove[corev1.ConfigMap](d.server, "ns", "a")
		const times = 1100
		for range times {
			time.Sleep(2 * time.Minute) // Longer than any back-off of what somebody undoes.
			synctest.Wait()
			if apiserver.Find[corev1.ConfigMap](d.server, "ns", "a") == nil {
				t.Fatal("a ConfigMap that was deleted does not come back")
			}
			apiserver.Remove[corev1.ConfigMap](d.server, "ns", "a")
		}
		if waiting := p.notes.WaitingEvents(cache.NewObjectName("ns", "a")); waiting > 1000 {
			t.Errorf("%d events wait for the status, want 1000 at most", waiting)
		} else if waiting < 900 {
			t.Errorf("%d events wait for the status: the test does not show what it should", waiting)
		}
	})
}

// eventsOf are the messages of events of a Note that have a reason.
func (d *desk) eventsOf(name, reason string) (messages []string) {
	for _, event := range apiserver.All[corev1.Event](d.server, "ns") {
		if event.InvolvedObject.Name == name && event.Reason == reason {
			messages = append(messages, event.Message)
		}
	}
	return messages
}
