// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jobworld simulates an API server, a controller's caches and the controller itself for one job of any kind, to
// test pure cores. Time passes only when a test says so. The cache of each kind may lag, requests may be refused,
// replies may be lost, and the controller may crash between any two writes.
package jobworld

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
	"github.com/lockstep-k8s/lockstep/internal/controlled"
	"github.com/lockstep-k8s/lockstep/internal/testing/podways"
)

// These kinds of objects have rules of their own in the world. Owner is the kind of the job, unless World.OwnerKind
// names another.
const (
	Pod   = "Pod"
	Owner = "Job"
)

// Key is a kind and a name.
type Key struct{ Kind, Name string }

// Fate is what becomes of a request to the API server.
type Fate int

const (
	// Done: it has happened.
	Done Fate = iota
	// Refused: nothing has happened, and the controller gets an error.
	Refused
	// ReplyLost: it has happened, but the controller gets an error.
	ReplyLost
)

// View is what the controller sees.
type View[O metav1.Object, S any] struct {
	Owner O
	// Version is the version of the owner that the core decided on: its generation, because only changes of the spec
	// count here.
	Version           string
	Persisted, Status *S
	// Objects are all that the caches have, whichever controller owns them.
	Objects          map[Key]metav1.Object
	Deleted, Checked map[types.UID]bool
	// Gone are the objects that are certainly gone, as the engine would know.
	Gone map[types.UID]bool
	// Terminating is since when the controller has seen that objects are being deleted.
	Terminating map[types.UID]time.Time
	// Current reports that Persisted was compared with the API server's copy. Kept is how much of the status the API
	// server keeps.
	Current  bool
	Kept     plan.Kept
	Blocked  []plan.Block
	Outcomes []plan.Outcome
}

// Controls reports whether the owner controls an object.
func (v *View[O, S]) Controls(object metav1.Object) bool {
	return controlled.By(v.Owner.GetUID(), object)
}

// Core decides. Forget clears its memory, as a crash does.
type Core[O metav1.Object, S any] interface {
	Decide(view *View[O, S], now time.Time) plan.Plan[S]
	Forget()
}

// World is the model. Its exported fields may be set at any time.
type World[O metav1.Object, S any] struct {
	T   *testing.T
	Now time.Time
	// Owner is the job as the API server has it. Gone reports that it was deleted.
	Owner O
	Gone  bool
	// OwnerKind is what actions call the job.
	OwnerKind string
	// Written is the status at the API server, Before the one it has replaced.
	Written, Before *S
	// Objects are all others that the API server has.
	Objects map[Key]metav1.Object

	// Prompt delivers every event at once.
	Prompt bool
	// CrashAfter counts writes down to a crash of the controller; negative never.
	CrashAfter int
	// Fate is what becomes of a request.
	Fate func(plan.Action) Fate
	// Refuses returns why the API server never accepts the creation of an object; nil if it does accept it.
	Refuses func(metav1.Object) error
	// PendingGoAtOnce makes the deletion of a Pod without a node remove the Pod at once, as the API server does.
	PendingGoAtOnce bool
	// ForeignCRD makes the API server keep only what Cut returns of a written status, as a CRD of another project does
	// that lacks fields. Cut is nil for a core if any CRD keeps its whole status.
	ForeignCRD bool
	Cut        func(*S) *S
	// WriteFrom is the urgency from which a status is written in a round.
	WriteFrom plan.Persist
	// OnPlan is called for each decision, OnWrite for each written status, BeforeAction and OnAction before and after
	// each action, and OnEvent for each event.
	OnPlan                 func(*View[O, S], plan.Plan[S])
	OnWrite                func(before, after *S)
	BeforeAction, OnAction func(plan.Action)
	OnEvent                func(plan.Event)

	// Events are the recorded events, and Writes how many statuses were written.
	Events []plan.Event
	Writes int

	core       Core[O, S]
	cache      cache[O]
	behind     map[string][]func(*cache[O])
	controller *memory[S]
	uids, rv   int
	// cut says that a part of Written was dropped when it was written.
	cut bool
}

type cache[O metav1.Object] struct {
	owner   O
	gone    bool
	objects map[Key]metav1.Object
	// version is the newest that was seen, by kind.
	version map[string]int
}

// memory is what a controller forgets in a crash.
type memory[S any] struct {
	persisted, status      *S
	deleted, checked, gone map[types.UID]bool
	terminating            map[types.UID]time.Time
	// own are objects that the API server has returned in an answer or a list, until the cache has caught up. strays
	// are objects that a live read has found, until the cache has them.
	own, strays map[Key]metav1.Object
	blocked     map[Key]plan.Block
	outcomes    []plan.Outcome
	current     bool
	kept        plan.Kept
	// base is the status that the controller has read at its start, or has written last. taken is what the process
	// believes base to be.
	base, taken *S
}

// New returns a world with one job, which gets a UID, and the core that decides on this job.
func New[O metav1.Object, S any](t *testing.T, owner O, core Core[O, S]) *World[O, S] {
	w := &World[O, S]{
		T: t, Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Owner: owner, core: core,
		Objects: map[Key]metav1.Object{}, Prompt: true, CrashAfter: -1,
		Fate: func(plan.Action) Fate { return Done }, Refuses: func(metav1.Object) error { return nil },
		WriteFrom: plan.PersistLater, OwnerKind: Owner,
		OnPlan: func(*View[O, S], plan.Plan[S]) {}, OnWrite: func(_, _ *S) {}, BeforeAction: func(plan.Action) {}, OnAction: func(plan.Action) {}, OnEvent: func(plan.Event) {},
		cache:  cache[O]{owner: owner, objects: map[Key]metav1.Object{}, version: map[string]int{}},
		behind: map[string][]func(*cache[O]){},
	}
	owner.SetUID(w.NewUID())
	owner.SetCreationTimestamp(metav1.NewTime(w.Now))
	return w
}

// NewUID returns an unused UID.
func (w *World[O, S]) NewUID() types.UID {
	w.uids++
	return types.UID(fmt.Sprintf("uid-%d", w.uids))
}

// Version changes whenever an object does.
func (w *World[O, S]) Version() int { return w.rv }

func copyOf[T metav1.Object](object T) T {
	return any(any(object).(runtime.Object).DeepCopyObject()).(T)
}

func copyOfAny(object metav1.Object) metav1.Object {
	return object.(runtime.Object).DeepCopyObject().(metav1.Object)
}

func versionNumber(object metav1.Object) int {
	n := 0
	fmt.Sscan(object.GetResourceVersion(), &n)
	return n
}

// readBack returns a status of the API server, as it is read.
func (w *World[O, S]) readBack(stored *S) *S {
	if stored != nil && (w.ForeignCRD || w.cut) {
		stored = w.Cut(stored)
	}
	return w.readAs(stored)
}

// readAs returns a status that was encoded and decoded.
func (w *World[O, S]) readAs(sent *S) *S {
	if sent == nil {
		return nil
	}
	data, err := json.Marshal(sent)
	if err != nil {
		w.T.Fatalf("encoding: %v", err)
	}
	status := new(S)
	if err := json.Unmarshal(data, status); err != nil {
		w.T.Fatalf("reading back the status: %v", err)
	}
	return status
}

// changed passes a change to the cache, sooner or later.
func (w *World[O, S]) changed(kind string, apply func(*cache[O])) {
	if w.Prompt {
		apply(&w.cache)
		return
	}
	w.behind[kind] = append(w.behind[kind], apply)
}

// Behind returns how many changes of each kind the caches have not received yet. Kinds with current caches are
// left out.
func (w *World[O, S]) Behind() map[string]int {
	left := map[string]int{}
	for kind, events := range w.behind {
		left[kind] = len(events)
	}
	return left
}

// Deliver passes up to n changes of a kind to the controller.
func (w *World[O, S]) Deliver(kind string, n int) {
	for range min(n, len(w.behind[kind])) {
		w.behind[kind][0](&w.cache)
		w.behind[kind] = w.behind[kind][1:]
	}
}

// DeliverAll passes all changes to the controller.
func (w *World[O, S]) DeliverAll() {
	for _, kind := range jobpods.SortedKeys(w.behind) {
		w.Deliver(kind, len(w.behind[kind]))
	}
}

// Store puts an object into the API server.
func (w *World[O, S]) Store(kind string, object metav1.Object) {
	w.rv++
	version := w.rv
	object.SetResourceVersion(fmt.Sprint(version))
	key := Key{kind, object.GetName()}
	w.Objects[key] = object
	seen := copyOfAny(object)
	w.changed(kind, func(c *cache[O]) {
		c.objects[key] = seen
		c.version[kind] = version
	})
}

// Remove takes an object out of the API server.
func (w *World[O, S]) Remove(kind, name string) {
	key := Key{kind, name}
	if w.Objects[key] == nil {
		return
	}
	w.rv++
	version := w.rv
	delete(w.Objects, key)
	w.changed(kind, func(c *cache[O]) {
		w.controller.bury(c.objects[key])
		delete(c.objects, key)
		c.version[kind] = version
	})
}

// bury is called for an object that has left the cache. It records the object as gone if that is certain: the object
// was being deleted, or it was a Pod without a node that this controller deleted (such a Pod goes at once). Any other
// object may only have lost the label by which the cache selects.
func (m *memory[S]) bury(object metav1.Object) {
	if m == nil || object == nil {
		return
	}
	pod, ok := object.(*corev1.Pod)
	unbound := ok && pod.Spec.NodeName == ""
	if object.GetDeletionTimestamp() != nil || unbound && m.deleted[object.GetUID()] {
		m.gone[object.GetUID()] = true
	}
}

// Pod returns a Pod, nil if there is none.
func (w *World[O, S]) Pod(name string) *corev1.Pod {
	pod, _ := w.Objects[Key{Pod, name}].(*corev1.Pod)
	return pod
}

// Names are those of all objects of a kind.
func (w *World[O, S]) Names(kind string) []string {
	var names []string
	for key := range w.Objects {
		if key.Kind == kind {
			names = append(names, key.Name)
		}
	}
	slices.Sort(names)
	return names
}

// OwnPods returns the names of the job's Pods.
func (w *World[O, S]) OwnPods() []string {
	return slices.DeleteFunc(w.Names(Pod), func(name string) bool { return !controlled.By(w.Owner.GetUID(), w.Pod(name)) })
}

// DeletePod begins the deletion of a Pod. A Pod that has ended or has no node is removed at once.
func (w *World[O, S]) DeletePod(name string, graceSeconds int64) {
	pod := w.Pod(name)
	if pod == nil || pod.DeletionTimestamp != nil {
		return
	}
	if jobpods.HasEnded(pod) || w.PendingGoAtOnce && pod.Spec.NodeName == "" {
		w.Remove(Pod, name)
		return
	}
	at := metav1.NewTime(w.Now.Add(time.Duration(graceSeconds) * time.Second).Truncate(time.Second))
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &at, &graceSeconds
	w.Store(Pod, pod)
}

// EndPod is the kubelet that confirms the end of a deleted Pod.
func (w *World[O, S]) EndPod(name string) {
	if pod := w.Pod(name); pod != nil && pod.DeletionTimestamp != nil {
		w.Remove(Pod, name)
	}
}

// SetPhase sets the phase of a Pod, as its kubelet would. Its containers get the exit code if the phase is an end. With
// a negative exit code, they get no status.
func (w *World[O, S]) SetPhase(name string, phase corev1.PodPhase, exitCode int32) {
	pod := w.Pod(name)
	if pod == nil {
		w.T.Fatalf("there is no Pod %s", name)
	}
	pod.Status.Phase = phase
	if pod.Spec.NodeName == "" {
		pod.Spec.NodeName = "node-1"
	}
	old := pod.Status.ContainerStatuses
	pod.Status.ContainerStatuses = nil
	for i, container := range pod.Spec.Containers {
		status := corev1.ContainerStatus{Name: container.Name, Ready: phase == corev1.PodRunning}
		if i < len(old) {
			status.RestartCount = old[i].RestartCount
		}
		if jobpods.HasEnded(pod) && exitCode >= 0 {
			status.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: exitCode, FinishedAt: metav1.NewTime(w.Now.Truncate(time.Second))}
		}
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
	}
	w.Store(Pod, pod)
}

// EndIn ends a Pod in one of the ways in which Kubernetes ends Pods.
func (w *World[O, S]) EndIn(name string, way podways.Way) {
	if way.Deletes() {
		w.DeletePod(name, 30)
	}
	if pod := w.Pod(name); pod != nil {
		way.Happen(pod, w.Now)
		w.Store(Pod, pod)
	}
}

// Edit changes the job as a user does.
func (w *World[O, S]) Edit(change func(O)) {
	if w.Gone {
		return
	}
	edited := copyOf(w.Owner)
	change(edited)
	edited.SetGeneration(edited.GetGeneration() + 1)
	w.Owner = edited
	w.changed(Owner, func(c *cache[O]) { c.owner = edited })
}

// Crash makes the controller lose its memory. Its successor begins with what the API server has.
func (w *World[O, S]) Crash() {
	w.forget()
	w.DeliverAll()
	w.CrashAfter = -1
}

func (w *World[O, S]) forget() {
	w.controller = nil
	w.core.Forget()
}

// TakeOver makes another controller the leader. The former leader does not know that; the returned function lets it
// continue.
func (w *World[O, S]) TakeOver() (thaw func()) {
	former := w.controller
	w.Crash()
	return func() {
		w.forget()
		w.controller = former
	}
}

// BeginWithOldStatus has the next controller begin with the status before the last.
func (w *World[O, S]) BeginWithOldStatus() {
	if w.Before != nil {
		w.controller = w.remembered(w.Before)
	}
}

// remembered returns the memory of a controller that has just started and has read this status.
func (w *World[O, S]) remembered(stored *S) *memory[S] {
	status := w.readBack(stored)
	return &memory[S]{
		persisted: status, status: status, base: stored, taken: status,
		deleted: map[types.UID]bool{}, checked: map[types.UID]bool{}, gone: map[types.UID]bool{}, terminating: map[types.UID]time.Time{},
		own: map[Key]metav1.Object{}, strays: map[Key]metav1.Object{}, blocked: map[Key]plan.Block{},
	}
}

// reread makes the controller read its status again. reread keeps what the controller knows of the job's objects.
func (w *World[O, S]) reread() {
	before := w.controller
	w.forget()
	w.controller = w.remembered(w.Written)
	m := w.controller
	m.deleted, m.gone, m.own, m.strays = before.deleted, before.gone, before.own, before.strays
}

// Run lets the controller work until it has nothing to do before the next event, or until a request fails. Run returns
// the last plan.
func (w *World[O, S]) Run() plan.Plan[S] {
	w.T.Helper()
	var p plan.Plan[S]
	for range 200 {
		if w.cache.gone || w.Gone {
			w.forget()
			return p
		}
		if w.controller == nil {
			w.controller = w.remembered(w.Written)
		}
		var end roundEnd
		p, end = w.round()
		switch end {
		case crashed:
			w.Crash()
		case outdated:
			w.reread()
		case atRest, failed:
			return p
		}
	}
	w.T.Fatalf("the controller does not come to rest; its last plan: %v", p)
	return p
}

// View returns what the controller sees.
func (w *World[O, S]) View() *View[O, S] {
	m := w.controller
	if m == nil {
		m = w.remembered(w.Written)
	}
	objects := maps.Clone(w.cache.objects)
	for key, own := range m.own {
		if w.cache.version[key.Kind] >= versionNumber(own) {
			delete(m.own, key)
			continue
		}
		objects[key] = own
	}
	for key, stray := range m.strays {
		if objects[key] != nil || w.Objects[key] == nil || m.gone[stray.GetUID()] {
			delete(m.strays, key)
			continue
		}
		objects[key] = stray
	}
	for _, object := range objects {
		if _, known := m.terminating[object.GetUID()]; object.GetDeletionTimestamp() != nil && !known {
			m.terminating[object.GetUID()] = w.Now
		}
	}
	v := &View[O, S]{
		Owner: w.cache.owner, Version: fmt.Sprint(w.cache.owner.GetGeneration()), Persisted: m.persisted, Status: m.status, Objects: objects,
		Deleted: m.deleted, Checked: m.checked, Gone: m.gone, Terminating: m.terminating, Current: m.current, Kept: m.kept, Outcomes: m.outcomes,
	}
	for _, block := range m.blocked {
		v.Blocked = append(v.Blocked, block)
	}
	return v
}

// roundEnd is how a round of the controller ended.
type roundEnd int

const (
	atRest roundEnd = iota
	progressed
	failed
	crashed
	// outdated is a controller that finds its status to be an old one.
	outdated
)

// round is one gather, decide, persist and act, as the engine does it.
func (w *World[O, S]) round() (plan.Plan[S], roundEnd) {
	w.T.Helper()
	view := w.View()
	p := w.core.Decide(view, w.Now)
	w.OnPlan(view, p)
	m := w.controller
	m.outcomes = nil
	if p.Err != nil {
		w.T.Fatalf("deciding: %v", p.Err)
	}
	m.status = p.Status
	end := atRest
	if p.Persist >= w.WriteFrom && p.Persist != plan.PersistNone {
		if end = w.persist(p.Status); end != progressed {
			return p, end
		}
	}
	for _, event := range p.Events {
		w.Events = append(w.Events, event)
		w.OnEvent(event)
	}
	maps.DeleteFunc(m.blocked, func(key Key, _ plan.Block) bool {
		return !slices.ContainsFunc(p.Actions, func(a plan.Action) bool { return a.Kind == key.Kind && a.Name == key.Name })
	})
	for _, action := range p.Actions {
		if w.writeFails() {
			return p, crashed
		}
		fate := w.Fate(action)
		if fate == Refused {
			end = failed
			continue
		}
		if action.Verb == plan.CheckStatus && m.base != w.Written {
			return p, outdated
		}
		w.BeforeAction(action)
		ok := w.act(action, fate == ReplyLost)
		w.OnAction(action)
		switch {
		case !ok || fate == ReplyLost:
			end = failed
		case end == atRest:
			end = progressed
		}
	}
	return p, end
}

// persist writes a status.
func (w *World[O, S]) persist(status *S) roundEnd {
	fate := w.Fate(plan.Action{Kind: "status"})
	m := w.controller
	switch {
	case w.writeFails():
		return crashed
	case fate == Refused || w.Gone:
		return failed
	case m.base != w.Written:
		return outdated
	}
	w.cut = w.ForeignCRD
	m.taken = status
	if w.Written == status { // The reply was lost, or it is written again.
		m.persisted, m.current = status, true
		return progressed
	}
	w.Before, w.Written = w.Written, status
	w.Writes++
	w.OnWrite(w.Before, status)
	if fate == ReplyLost {
		m.base = status
		return failed
	}
	m.persisted, m.base, m.current = status, status, true
	return progressed
}

// writeFails counts down to the crash.
func (w *World[O, S]) writeFails() bool {
	if w.CrashAfter < 0 {
		return false
	}
	w.CrashAfter--
	return w.CrashAfter < 0
}

// act executes an action on the API server's side, and reports whether the action succeeded.
func (w *World[O, S]) act(action plan.Action, replyLost bool) bool {
	key := Key{action.Kind, action.Name}
	m, have := w.controller, w.Objects[key]
	remember := func(object metav1.Object) {
		if !replyLost {
			m.own[key] = copyOfAny(object)
		}
	}
	switch action.Verb {
	case plan.CheckStatus:
		if !replyLost {
			m.current, m.kept = true, w.keptOf(m)
			for _, uid := range action.Seen {
				m.checked[uid] = true
			}
		}
	case plan.ConfirmNo:
		if have != nil && controlled.By(action.Owner, have) {
			m.strays[key] = copyOfAny(have)
		} else if !replyLost {
			m.outcomes = append(m.outcomes, plan.Outcome{Action: action})
		}
	case plan.List:
		if !replyLost {
			w.list(action)
		}
	case plan.Create:
		return w.create(action, remember)
	case plan.Update:
		if have == nil || have.GetUID() != action.UID {
			return false
		}
		patched, ok := Patch(w.T, have, action.Patch)
		if !ok {
			return false
		}
		w.Store(action.Kind, patched)
		remember(patched)
	case plan.ForceDelete:
		if have != nil && have.GetUID() == action.UID {
			w.Remove(action.Kind, action.Name)
		}
		if !replyLost {
			m.gone[action.UID] = true
		}
	case plan.Delete:
		if action.Kind == w.OwnerKind && action.Version != "" && action.Version != fmt.Sprint(w.Owner.GetGeneration()) {
			return false
		}
		if have != nil && have.GetUID() == action.UID && action.Version != "" && have.GetResourceVersion() != action.Version {
			remember(have)
			return true
		}
		if !replyLost {
			m.deleted[action.UID] = true
		}
		switch {
		case action.Kind == w.OwnerKind:
			if w.Owner.GetUID() == action.UID && w.Owner.GetDeletionTimestamp() == nil {
				at := metav1.NewTime(w.Now)
				w.Edit(func(o O) { o.SetDeletionTimestamp(&at) })
			}
		case have == nil || have.GetUID() != action.UID:
		case action.Kind == Pod:
			w.DeletePod(action.Name, 30)
		default:
			w.Remove(action.Kind, action.Name)
		}
	default:
		w.T.Fatalf("nobody knows how to do %s", action)
	}
	return true
}

// keptOf returns how much of the written status the API server keeps, as a live read shows. The result changes only if
// the status has fields that the API server may drop.
func (w *World[O, S]) keptOf(m *memory[S]) plan.Kept {
	same := func(a, b *S) bool { return reflect.DeepEqual(w.readAs(a), w.readAs(b)) }
	switch {
	case w.Cut == nil || m.taken == nil || same(m.taken, w.Cut(m.taken)):
		return m.kept
	case same(w.readBack(m.base), m.taken):
		return plan.KeptWhole
	default:
		return plan.KeptInPart
	}
}

// list lists the job's objects of a kind. After that the controller knows these objects, and knows which of the objects
// that it knew before are gone.
func (w *World[O, S]) list(action plan.Action) {
	m := w.controller
	for key, known := range w.View().Objects {
		have := w.Objects[key]
		if key.Kind == action.Kind && controlled.By(action.Owner, known) && (have == nil || have.GetUID() != known.GetUID()) {
			m.gone[known.GetUID()] = true
		}
	}
	for key, have := range w.Objects {
		if key.Kind == action.Kind && controlled.By(action.Owner, have) {
			m.own[key] = copyOfAny(have)
		}
	}
	m.outcomes = append(m.outcomes, plan.Outcome{Action: action})
}

func (w *World[O, S]) create(action plan.Action, remember func(metav1.Object)) bool {
	key := Key{action.Kind, action.Name}
	if have := w.Objects[key]; have != nil {
		if controlled.By(action.Owner, have) {
			remember(have) // A live look has found it.
			return true
		}
		w.controller.blocked[key] = plan.Block{Verb: action.Verb, Kind: action.Kind, Group: action.Group, Name: action.Name, Reason: plan.ReasonNameTaken, Message: "it is somebody else's"}
		return false
	}
	object := action.Object
	if object == nil {
		built, err := action.Build()
		if err != nil {
			w.T.Fatalf("building %s: %v", action.Name, err)
		}
		object = built
	}
	if err := w.Refuses(object); err != nil {
		w.controller.outcomes = append(w.controller.outcomes, plan.Outcome{Action: action, Refused: err})
		return true
	}
	created := copyOfAny(object)
	created.SetUID(w.NewUID())
	created.SetCreationTimestamp(metav1.NewTime(w.Now.Truncate(time.Second)))
	if pod, ok := created.(*corev1.Pod); ok {
		pod.Status.Phase = corev1.PodPending
	}
	w.Store(action.Kind, created)
	remember(created)
	delete(w.controller.blocked, key)
	return true
}
