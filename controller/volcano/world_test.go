// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
	"github.com/lockstep-k8s/lockstep/internal/controlled"
	"github.com/lockstep-k8s/lockstep/internal/testing/jobworld"
)

// world is a model of an API server, its caches and one controller, for one Job. Time
// moves only when a test says so.
type world struct {
	t    *testing.T
	now  time.Time
	uids int
	rv   int

	job *batchv1alpha1.Job
	// written is the status at the API server, before is the one it has replaced.
	written, before *batchv1alpha1.JobStatus
	// objects are all others that the API server has.
	objects map[ObjectKey]metav1.Object
	// lastUID is that of the last object that had a name.
	lastUID map[ObjectKey]types.UID
	// deleted says that the Job is gone.
	deleted bool

	// cache is what the controller sees; behind is what it has not yet been told, by
	// kind, because each kind has a watch of its own.
	cache  cache
	behind map[string][]func(*cache)
	// prompt delivers every event at once.
	prompt bool

	controller *memory
	// crashAfter counts writes down to a crash of the controller; negative never.
	crashAfter int
	// fate is what becomes of a request.
	fate func(plan.Action) fate
	// unreadable says why the spec can't be read. Empty if it can.
	unreadable string
	// pendingGoAtOnce lets a Pod that has no node go when it is deleted, as the API
	// server does.
	pendingGoAtOnce bool
	// onPlan sees each decision, onWrite each status that is written, beforeAction each action
	// that is about to be taken, onAction each that was, onEvent what the user is told.
	onPlan                 func(Snapshot, plan.Plan[batchv1alpha1.JobStatus])
	onWrite                func(before, after *batchv1alpha1.JobStatus)
	beforeAction, onAction func(plan.Action)
	onEvent                func(plan.Event)
	// writeFrom is the urgency from which a status is written in a round.
	writeFrom plan.Persist
	options   Options

	// phases are those that were written, in order, events what was told.
	phases []batchv1alpha1.JobPhase
	events []plan.Event
	writes int
}

// fate is what becomes of a request to the API server.
type fate int

const (
	done fate = iota
	// refused: nothing has happened, and the controller gets an error.
	refused
	// replyLost: it has happened, but the controller gets an error.
	replyLost
)

type cache struct {
	// job is nil as long as the controller sees what the user does at once.
	job     *batchv1alpha1.Job
	gone    bool
	objects map[ObjectKey]metav1.Object
	// version is the newest that was seen, by kind.
	version map[string]int
}

// memory is what a controller forgets in a crash.
type memory struct {
	persisted, status      *batchv1alpha1.JobStatus
	core                   Memory
	deleted, checked, gone map[types.UID]bool
	// own are objects as the API server has answered, until the cache is as new.
	own map[ObjectKey]metav1.Object
	// strays are objects that a live look has found, until the cache has them.
	strays   map[ObjectKey]metav1.Object
	blocked  map[ObjectKey]plan.Block
	outcomes []plan.Outcome
	current  bool
	// base is the status that the controller began with or has written.
	base *batchv1alpha1.JobStatus
}

// noKeys makes no keys: whoever looks at them makes their own.
func noKeys() (private, public []byte, err error) {
	return []byte("private"), []byte("public"), nil
}

const gangScheduler = "lockstep-scheduler"

func newWorld(t *testing.T, job *batchv1alpha1.Job) *world {
	t.Helper()
	w := &world{
		t:            t,
		now:          time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		job:          job,
		objects:      map[ObjectKey]metav1.Object{},
		lastUID:      map[ObjectKey]types.UID{},
		cache:        cache{objects: map[ObjectKey]metav1.Object{}, version: map[string]int{}},
		behind:       map[string][]func(*cache){},
		prompt:       true,
		crashAfter:   -1,
		fate:         func(plan.Action) fate { return done },
		writeFrom:    plan.PersistLater,
		onPlan:       func(Snapshot, plan.Plan[batchv1alpha1.JobStatus]) {},
		onWrite:      func(_, _ *batchv1alpha1.JobStatus) {},
		beforeAction: func(plan.Action) {},
		onAction:     func(plan.Action) {},
		onEvent:      func(plan.Event) {},
		options: Options{
			GangSchedulerName: gangScheduler,
			SchedulerNames:    []string{gangScheduler, "volcano", ""},
			Manager:           "lockstep-controller",
			Keys:              noKeys,
		},
	}
	job.UID = w.newUID()
	job.CreationTimestamp = metav1.NewTime(w.now)
	return w
}

func (w *world) newUID() types.UID {
	w.uids++
	return types.UID(fmt.Sprintf("uid-%d", w.uids))
}

// readBack is a status of the API server, read back from JSON.
func (w *world) readBack(stored *batchv1alpha1.JobStatus) *batchv1alpha1.JobStatus {
	w.t.Helper()
	if stored == nil {
		return nil
	}
	data, err := json.Marshal(stored)
	if err != nil {
		w.t.Fatalf("encoding: %v", err)
	}
	status := &batchv1alpha1.JobStatus{}
	if err := json.Unmarshal(data, status); err != nil {
		w.t.Fatalf("reading back the status: %v", err)
	}
	return status
}

func copyOf(object metav1.Object) metav1.Object {
	return object.(runtime.Object).DeepCopyObject().(metav1.Object)
}

func versionNumber(object metav1.Object) int {
	n := 0
	fmt.Sscan(object.GetResourceVersion(), &n)
	return n
}

// changed tells the cache of a change, sooner or later.
func (w *world) changed(kind string, apply func(*cache)) {
	if w.prompt {
		apply(&w.cache)
		return
	}
	w.behind[kind] = append(w.behind[kind], apply)
}

// deliver tells the controller up to n changes of a kind.
func (w *world) deliver(kind string, n int) {
	for range min(n, len(w.behind[kind])) {
		w.behind[kind][0](&w.cache)
		w.behind[kind] = w.behind[kind][1:]
	}
}

// deliverAll tells the controller all that has changed.
func (w *world) deliverAll() {
	for _, kind := range jobpods.SortedKeys(w.behind) {
		w.deliver(kind, len(w.behind[kind]))
	}
}

// store puts an object into the API server.
func (w *world) store(kind string, object metav1.Object) {
	w.rv++
	version := w.rv
	object.SetResourceVersion(fmt.Sprint(version))
	key := ObjectKey{kind, object.GetName()}
	w.objects[key] = object
	w.lastUID[key] = object.GetUID()
	seen := copyOf(object)
	w.changed(kind, func(c *cache) {
		c.objects[key] = seen
		c.version[kind] = version
	})
}

// remove takes an object out of the API server.
func (w *world) remove(kind, name string) {
	key := ObjectKey{kind, name}
	if w.objects[key] == nil {
		return
	}
	w.rv++
	version := w.rv
	delete(w.objects, key)
	w.changed(kind, func(c *cache) {
		w.controller.bury(c.objects[key])
		delete(c.objects, key)
		c.version[kind] = version
	})
}

// bury notes an object that has left the cache as gone, if that is certain: it was being
// deleted, or is a Pod without a node, which goes at once. Else it may have lost its label.
func (m *memory) bury(object metav1.Object) {
	if m == nil || object == nil {
		return
	}
	pod, ok := object.(*corev1.Pod)
	unbound := ok && pod.Spec.NodeName == ""
	if object.GetDeletionTimestamp() != nil || unbound && m.deleted[object.GetUID()] {
		m.gone[object.GetUID()] = true
	}
}

func (w *world) pod(name string) *corev1.Pod {
	pod, _ := w.objects[ObjectKey{KindPod, name}].(*corev1.Pod)
	return pod
}

func (w *world) group(version int32) *schedulingv1alpha1.PodGroup {
	group, _ := w.objects[ObjectKey{KindPodGroup, podGroupName(w.job.Name, version)}].(*schedulingv1alpha1.PodGroup)
	return group
}

func (w *world) names(kind string) []string {
	var names []string
	for key := range w.objects {
		if key.Kind == kind {
			names = append(names, key.Name)
		}
	}
	slices.Sort(names)
	return names
}

// ownPods are the names of the Job's Pods.
func (w *world) ownPods() []string {
	return slices.DeleteFunc(w.names(KindPod), func(name string) bool { return !controlled.By(w.job.UID, w.pod(name)) })
}

// deletePod begins the deletion of a Pod. One that has ended, or has no node, goes at once.
func (w *world) deletePod(name string, graceSeconds int64) {
	pod := w.pod(name)
	if pod == nil || pod.DeletionTimestamp != nil {
		return
	}
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	if ended || w.pendingGoAtOnce && pod.Spec.NodeName == "" {
		w.remove(KindPod, name)
		return
	}
	at := metav1.NewTime(w.now.Add(time.Duration(graceSeconds) * time.Second).Truncate(time.Second))
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &at, &graceSeconds
	w.store(KindPod, pod)
}

// endPod is the kubelet that confirms the end of a deleted Pod.
func (w *world) endPod(name string) {
	if pod := w.pod(name); pod != nil && pod.DeletionTimestamp != nil {
		w.remove(KindPod, name)
	}
}

// setPhase is the kubelet that runs a Pod.
func (w *world) setPhase(name string, phase corev1.PodPhase, exitCode int32) {
	pod := w.pod(name)
	if pod == nil {
		w.t.Fatalf("there is no Pod %s", name)
	}
	pod.Status.Phase = phase
	if pod.Spec.NodeName == "" {
		pod.Spec.NodeName = "node-1"
	}
	status := corev1.ContainerStatus{Name: "c", Ready: phase == corev1.PodRunning}
	if len(pod.Status.ContainerStatuses) > 0 {
		status.RestartCount = pod.Status.ContainerStatuses[0].RestartCount
	}
	if phase == corev1.PodSucceeded || phase == corev1.PodFailed {
		status.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: exitCode, FinishedAt: metav1.NewTime(w.now.Truncate(time.Second))}
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
	w.store(KindPod, pod)
}

// edit is a user who changes the Job.
func (w *world) edit(change func(*batchv1alpha1.Job)) {
	if w.deleted {
		return
	}
	edited := w.job.DeepCopy()
	change(edited)
	edited.Generation++
	if w.cache.job == nil {
		w.cache.job = w.job
	}
	w.job = edited
	w.changed(KindJob, func(c *cache) { c.job = edited })
}

// seen is the Job as the controller sees it.
func (w *world) seen() *batchv1alpha1.Job {
	if w.cache.job != nil {
		return w.cache.job
	}
	return w.job
}

// command is a user who issues a Command.
func (w *world) command(action busv1alpha1.Action) *busv1alpha1.Command {
	c := &busv1alpha1.Command{
		ObjectMeta: metav1.ObjectMeta{UID: w.newUID(), CreationTimestamp: metav1.NewTime(w.now.Truncate(time.Second))},
		Action:     action,
		Target:     metav1.NewControllerRef(w.job, batchv1alpha1.JobGroupVersionKind),
	}
	c.Name = "command-" + string(c.UID)
	w.store(KindCommand, c)
	return c
}

// crash makes the controller forget. The next one begins with what the API server has.
func (w *world) crash() {
	w.controller = nil
	w.deliverAll()
	w.crashAfter = -1
}

// remembered is the memory of a controller that begins with a status that the API server
// has, or had.
func (w *world) remembered(stored *batchv1alpha1.JobStatus) *memory {
	status := w.readBack(stored)
	return &memory{
		persisted: status, status: status, base: stored,
		deleted: map[types.UID]bool{}, checked: map[types.UID]bool{}, gone: map[types.UID]bool{},
		own: map[ObjectKey]metav1.Object{}, strays: map[ObjectKey]metav1.Object{}, blocked: map[ObjectKey]plan.Block{},
	}
}

// reread has the controller read its status anew. What it knows of the Job's objects it keeps.
func (w *world) reread() {
	before := w.controller
	w.controller = w.remembered(w.written)
	m := w.controller
	m.deleted, m.gone, m.own, m.strays = before.deleted, before.gone, before.own, before.strays
}

// run lets the controller work until it has nothing to do without an event, or a request
// fails. It returns the last plan.
func (w *world) run() plan.Plan[batchv1alpha1.JobStatus] {
	w.t.Helper()
	for range 200 {
		if w.cache.gone {
			w.controller = nil
			return plan.Plan[batchv1alpha1.JobStatus]{}
		}
		if w.controller == nil {
			w.controller = w.remembered(w.written)
		}
		p, end := w.round()
		switch end {
		case crashed:
			w.crash()
		case outdated:
			w.reread()
		case atRest, failed:
			return p
		}
	}
	p, _ := Decide(w.snapshot(), w.now)
	w.t.Fatalf("the controller does not come to rest in phase %s; its last plan: %v", w.phase(), p)
	return p
}

func (w *world) phase() batchv1alpha1.JobPhase {
	if w.written == nil {
		return ""
	}
	return w.written.State.Phase
}

// snapshot is what the controller sees.
func (w *world) snapshot() Snapshot {
	m := w.controller
	objects := maps.Clone(w.cache.objects)
	for key, own := range m.own {
		if w.cache.version[key.Kind] >= versionNumber(own) {
			delete(m.own, key)
			continue
		}
		objects[key] = own
	}
	for key, stray := range m.strays {
		if objects[key] != nil || w.objects[key] == nil || m.gone[stray.GetUID()] {
			delete(m.strays, key)
			continue
		}
		objects[key] = stray
	}
	s := Snapshot{
		Job: w.seen(), Unreadable: w.unreadable, Memory: m.core, Options: w.options,
		Pods: map[string]*corev1.Pod{}, PodGroups: map[string]*schedulingv1alpha1.PodGroup{},
		Objects: map[ObjectKey]metav1.Object{}, Claims: map[string]bool{},
		Known: plan.Known[batchv1alpha1.JobStatus]{
			Persisted: m.persisted, Status: m.status,
			Deleted: m.deleted, Gone: m.gone, Current: m.current, Checked: m.checked, Outcomes: m.outcomes,
		},
	}
	for key, object := range objects {
		mine := controlled.By(w.job.UID, object)
		switch o := object.(type) {
		case *corev1.Pod:
			if mine {
				s.Pods[key.Name] = KeepOfPod(o)
			}
		case *schedulingv1alpha1.PodGroup:
			if mine {
				s.PodGroups[key.Name] = o
			}
		case *busv1alpha1.Command:
			s.Commands = append(s.Commands, KeepOfCommand(o))
		case *corev1.ConfigMap:
			if mine {
				s.Objects[key] = KeepOfConfigMap(o)
			}
		default:
			if key.Kind == KindClaim {
				s.Claims[key.Name] = true
			}
			if mine {
				s.Objects[key] = o
			}
		}
	}
	for _, block := range m.blocked {
		s.Blocked = append(s.Blocked, block)
	}
	return s
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
func (w *world) round() (plan.Plan[batchv1alpha1.JobStatus], roundEnd) {
	w.t.Helper()
	snapshot := w.snapshot()
	p, core := Decide(snapshot, w.now)
	w.onPlan(snapshot, p)
	m := w.controller
	m.outcomes = nil
	if p.Err != nil {
		w.t.Fatalf("deciding: %v", p.Err)
	}
	m.status, m.core = p.Status, core
	end := atRest
	if p.Persist >= w.writeFrom && p.Persist != plan.PersistNone {
		// What does not rest on a write that is refused goes on.
		if end = w.persist(p.Status); end == crashed || end == outdated || w.controller != m {
			return p, end
		}
	}
	for _, event := range p.Events {
		w.events = append(w.events, event)
		w.onEvent(event)
	}
	maps.DeleteFunc(m.blocked, func(key ObjectKey, _ plan.Block) bool {
		return !slices.ContainsFunc(p.Actions, func(a plan.Action) bool { return a.Kind == key.Kind && a.Name == key.Name })
	})
	for _, action := range p.Actions {
		if w.writeFails() {
			return p, crashed
		}
		fate := w.fate(action)
		if fate == refused {
			if action.Verb == plan.Create || action.Verb == plan.Update {
				m.blocked[ObjectKey{action.Kind, action.Name}] = plan.Block{
					Verb: action.Verb, Kind: action.Kind, Group: action.Group, Name: action.Name, Reason: plan.ReasonCreationRefused, Message: "not now",
				}
			}
			end = failed
			continue
		}
		if action.Verb == plan.CheckStatus && m.base != w.written {
			return p, outdated
		}
		if action.Verb == plan.CheckStatus && w.specIsOld() {
			w.reread()
			return p, failed
		}
		w.beforeAction(action)
		ok := w.act(action, fate == replyLost)
		w.onAction(action)
		switch {
		case !ok || fate == replyLost:
			end = failed
		case end == atRest:
			end = progressed
		}
	}
	return p, end
}

// specIsOld says whether the controller has decided on a spec that is not the present one.
func (w *world) specIsOld() bool {
	return w.seen().Generation != w.job.Generation && w.job.DeletionTimestamp == nil
}

// persist writes a status.
func (w *world) persist(status *batchv1alpha1.JobStatus) roundEnd {
	fate := w.fate(plan.Action{Kind: "status"})
	m := w.controller
	switch {
	case w.writeFails():
		return crashed
	case fate == refused || w.deleted:
		return failed
	case m.base != w.written:
		return outdated
	case w.specIsOld():
		w.reread() // It waits for the event.
		return failed
	}
	if w.written == status { // The reply was lost: it finds the status to be its own.
		m.persisted, m.current = status, true
		return progressed
	}
	w.before, w.written = w.written, status
	w.writes++
	if w.before == nil || w.before.State.Phase != status.State.Phase {
		w.phases = append(w.phases, status.State.Phase)
	}
	w.onWrite(w.before, status)
	if fate == replyLost {
		m.base = status
		return failed
	}
	m.persisted, m.base, m.current = status, status, true
	return progressed
}

// writeFails counts down to the crash.
func (w *world) writeFails() bool {
	if w.crashAfter < 0 {
		return false
	}
	w.crashAfter--
	return w.crashAfter < 0
}

// act is the API server's side of an action. It says whether that went through.
func (w *world) act(action plan.Action, replyLost bool) bool {
	key := ObjectKey{action.Kind, action.Name}
	m, have := w.controller, w.objects[key]
	remember := func(object metav1.Object) {
		if !replyLost {
			m.own[key] = copyOf(object)
		}
	}
	switch action.Verb {
	case plan.CheckStatus:
		if !replyLost {
			m.current = true
			for _, uid := range action.Seen {
				m.checked[uid] = true
			}
		}
	case plan.List:
		w.list(action, replyLost)
	case plan.ConfirmNo:
		if have != nil && controlled.By(action.Owner, have) {
			m.strays[key] = copyOf(have)
		} else if !replyLost {
			m.outcomes = append(m.outcomes, plan.Outcome{Action: action})
		}
	case plan.Create:
		return w.create(action, remember)
	case plan.Update:
		if have == nil || have.GetUID() != action.UID {
			return false
		}
		patched, ok := jobworld.Patch(w.t, have, action.Patch)
		if !ok {
			return false
		}
		w.store(action.Kind, patched)
		remember(patched)
		delete(m.blocked, key)
	case plan.Delete:
		if have != nil && have.GetUID() == action.UID && action.Version != "" && have.GetResourceVersion() != action.Version {
			remember(have)
			return true
		}
		if !replyLost {
			m.deleted[action.UID] = true
		}
		switch {
		case action.Kind == KindJob:
			if w.job.UID == action.UID && w.job.DeletionTimestamp == nil {
				at := metav1.NewTime(w.now)
				w.edit(func(j *batchv1alpha1.Job) { j.DeletionTimestamp = &at })
			}
		case have == nil || have.GetUID() != action.UID:
		case action.Kind == KindPod:
			w.deletePod(action.Name, 30)
		default:
			w.remove(action.Kind, action.Name)
		}
	default:
		w.t.Fatalf("nobody knows how to do %s", action)
	}
	return true
}

// list has the controller see the Pods of the Job as they are.
func (w *world) list(action plan.Action, replyLost bool) {
	if replyLost {
		return
	}
	m := w.controller
	for key, object := range w.objects {
		if name, value, _ := strings.Cut(action.Selector, "="); key.Kind == action.Kind && object.GetLabels()[name] == value && controlled.By(action.Owner, object) {
			m.own[key] = copyOf(object)
		}
	}
	for key, object := range w.cache.objects {
		if key.Kind == action.Kind && w.objects[key] == nil {
			m.gone[object.GetUID()] = true
		}
	}
	m.outcomes = append(m.outcomes, plan.Outcome{Action: action})
}

func (w *world) create(action plan.Action, remember func(metav1.Object)) bool {
	key := ObjectKey{action.Kind, action.Name}
	if have := w.objects[key]; have != nil {
		if controlled.By(action.Owner, have) {
			remember(have) // A live look has found it, though no cache may ever have it.
			w.controller.strays[key] = copyOf(have)
			return true
		}
		w.controller.blocked[key] = plan.Block{Verb: action.Verb, Kind: action.Kind, Group: action.Group, Name: action.Name, Reason: plan.ReasonNameTaken, Message: "it is somebody else's"}
		return false
	}
	object := action.Object
	if object == nil {
		built, err := action.Build()
		if err != nil {
			w.t.Fatalf("building %s: %v", action.Name, err)
		}
		object = built
	}
	created := copyOf(object)
	created.SetUID(w.newUID())
	created.SetCreationTimestamp(metav1.NewTime(w.now.Truncate(time.Second)))
	if pod, ok := created.(*corev1.Pod); ok {
		pod.Status.Phase = corev1.PodPending
	}
	w.store(action.Kind, created)
	remember(created)
	delete(w.controller.blocked, key)
	return true
}
