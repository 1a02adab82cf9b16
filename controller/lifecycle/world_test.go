// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	"github.com/lockstep-k8s/lockstep/apis/framework/statuscodec"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// world is a model of an API server, its caches, a garbage collector, kubelets
// and one controller, for one Framework. Time moves only when a test says so.
type world struct {
	t    *testing.T
	now  time.Time
	rand *rand.Rand
	uids int

	framework *frameworkv1.Framework
	// written is the status at the API server, before is the one it has replaced.
	written, before *frameworkv1.FrameworkStatus
	configMap       *metav1.ObjectMeta
	podGroup        *schedulingv1alpha1.PodGroup
	pods            map[string]*corev1.Pod
	// deleted says that the Framework is gone.
	deleted bool

	// cache is what the controller sees; behind is what it has not yet been told,
	// by kind, because each kind has a watch of its own.
	cache  cache
	behind [kinds][]func(*cache)
	// prompt delivers every event at once.
	prompt bool

	controller *memory
	// refuse, if set, is asked before a Pod is created.
	refuse func(*corev1.Pod) error
	// blocked, if set, are the only creations that are said to be refused for now.
	blocked []Block
	// skew is how far the clock of the API server is ahead of the controller's.
	skew time.Duration
	// crashAfter counts writes down to a crash of the controller; negative never.
	crashAfter int
	// fate is what becomes of a request.
	fate func() fate
	// pendingGoAtOnce lets a Pod that has no node go when it is deleted, as the
	// API server does.
	pendingGoAtOnce bool
	// priorityOf, if set, is the value of a PriorityClass.
	priorityOf func(string) (int32, bool)
	// onPlan sees each decision.
	onPlan func(Snapshot, Plan)
	// onEvent is told what the user is.
	onEvent func(Event)
	// onWrite sees each status that is written, onAction each action that is
	// taken.
	onWrite  func(before, after *frameworkv1.FrameworkStatus)
	onAction func(Action)
	// writeFrom is the urgency from which a status is written in a round.
	writeFrom Persist
	options   Options
}

// kind is a kind of objects that is watched by itself.
type kind int

const (
	frameworkKind kind = iota
	configMapKind
	podGroupKind
	podKind
	kinds
)

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
	// framework is nil as long as the controller sees what the user does at once.
	framework *frameworkv1.Framework
	gone      bool
	configMap *metav1.ObjectMeta
	podGroup  *schedulingv1alpha1.PodGroup
	pods      map[string]*corev1.Pod
}

// memory is what a controller forgets in a crash.
type memory struct {
	persisted, status *frameworkv1.FrameworkStatus
	deleted, forced   map[types.UID]bool
	checked           map[types.UID]bool
	outcomes          []Outcome
	gone              map[types.UID]bool
	terminating       map[types.UID]time.Time
	// strays are Pods, by name, that a live look has found and the cache does not show.
	strays map[string]*corev1.Pod
	// listed are Pods, by name, as a list has shown them that the cache has older ones of.
	listed map[string]*listedPod
	// blocked are the creations that were refused for now, by role.
	blocked map[string]Block
	// current says that the status is known to be that of the API server, base is the
	// one that the controller began with or has written.
	current bool
	base    *frameworkv1.FrameworkStatus
	// takenOver is the Snapshot's.
	takenOver TakenOver
	// verdictOn is the Framework for which the end of the attempt was decided.
	verdictOn *frameworkv1.Framework
}

func newMemory(status *frameworkv1.FrameworkStatus) *memory {
	return &memory{
		persisted: status, status: status,
		deleted: map[types.UID]bool{}, forced: map[types.UID]bool{}, checked: map[types.UID]bool{}, gone: map[types.UID]bool{}, terminating: map[types.UID]time.Time{},
		strays: map[string]*corev1.Pod{}, listed: map[string]*listedPod{}, blocked: map[string]Block{},
	}
}

// listedPod is a Pod that a list has shown, and how many changes the cache is behind that.
type listedPod struct {
	pod    *corev1.Pod
	behind int
}

// remembered is the memory of a controller that begins with a status that the API
// server has, or had.
func (w *world) remembered(stored *frameworkv1.FrameworkStatus) *memory {
	w.t.Helper()
	m := newMemory(w.readBack(stored))
	m.base = stored
	m.takenOver = TakeOver(m.persisted, w.now)
	return m
}

func newWorld(t *testing.T, framework *frameworkv1.Framework) *world {
	t.Helper()
	rules, err := NewPodFailureRules([]configv1alpha1.CompletionCodeInfo{})
	if err != nil {
		t.Fatalf("compiling no rules: %v", err)
	}
	w := &world{
		t:          t,
		now:        time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		rand:       rand.New(rand.NewPCG(1, 2)),
		framework:  framework,
		pods:       map[string]*corev1.Pod{},
		cache:      cache{pods: map[string]*corev1.Pod{}},
		prompt:     true,
		crashAfter: -1,
		fate:       func() fate { return done },
		writeFrom:  PersistLater,
		onWrite:    func(_, _ *frameworkv1.FrameworkStatus) {},
		onAction:   func(Action) {},
		onPlan:     func(Snapshot, Plan) {},
		onEvent:    func(Event) {},
		options: Options{
			GangSchedulerName:       "lockstep-scheduler",
			CreationTimeout:         5 * time.Minute,
			CompletedRetention:      30 * 24 * time.Hour,
			HistoryLimit:            10,
			MinConflictDelaySeconds: 60,
			MaxConflictDelaySeconds: 900,
			PodFailures:             rules,
		},
	}
	framework.UID = w.NewUID()
	return w
}

// NewUID and Between make the world an Entropy.
func (w *world) NewUID() types.UID {
	w.uids++
	return types.UID(fmt.Sprintf("uid-%d", w.uids))
}

func (w *world) Between(least, most int64) int64 {
	return least + w.rand.Int64N(most-least+1)
}

// readBack is a status of the API server, read back from JSON.
func (w *world) readBack(stored *frameworkv1.FrameworkStatus) *frameworkv1.FrameworkStatus {
	w.t.Helper()
	if stored == nil {
		return nil
	}
	data, err := statuscodec.Encode(stored, true)
	if err != nil {
		w.t.Fatalf("encoding: %v", err)
	}
	status, err := statuscodec.Decode(data)
	if err != nil {
		w.t.Fatalf("reading back the status: %v", err)
	}
	return status
}

// changed tells the cache of an object, sooner or later.
func (w *world) changed(kind kind, apply func(*cache)) {
	if w.prompt {
		apply(&w.cache)
		return
	}
	w.behind[kind] = append(w.behind[kind], apply)
}

// deliver tells the controller up to n changes of a kind.
func (w *world) deliver(kind kind, n int) {
	for range min(n, len(w.behind[kind])) {
		w.behind[kind][0](&w.cache)
		w.behind[kind] = w.behind[kind][1:]
		if kind == podKind && w.controller != nil {
			for _, listed := range w.controller.listed {
				listed.behind--
			}
		}
	}
}

// deliverAll tells the controller all that has changed.
func (w *world) deliverAll() {
	for kind := range kinds {
		w.deliver(kind, len(w.behind[kind]))
	}
}

// seen is the Framework as the controller sees it.
func (w *world) seen() *frameworkv1.Framework {
	if w.cache.framework != nil {
		return w.cache.framework
	}
	return w.framework
}

func (w *world) podChanged(pod *corev1.Pod) {
	seen := pod.DeepCopy()
	w.changed(podKind, func(c *cache) { c.pods[seen.Name] = seen })
}

func (w *world) podRemoved(name string) {
	last := w.pods[name]
	delete(w.pods, name)
	w.changed(podKind, func(c *cache) {
		if cached := c.pods[name]; cached != nil && last != nil && cached.UID == last.UID {
			delete(c.pods, name)
		}
		if m := w.controller; m != nil && last != nil && m.strays[name] != nil && m.strays[name].UID == last.UID {
			delete(m.strays, name)
		}
		if m := w.controller; m != nil && last != nil &&
			(last.DeletionTimestamp != nil || last.Spec.NodeName == "" && m.deleted[last.UID]) {
			m.gone[last.UID] = true
		}
	})
}

// hidePod is somebody who takes the label from a Pod by which it is watched. What is
// being deleted already is taken for gone then.
func (w *world) hidePod(name string) {
	if pod := w.pods[name]; pod == nil || pod.DeletionTimestamp != nil {
		return
	}
	w.changed(podKind, func(c *cache) { delete(c.pods, name) })
}

// hideConfigMap does the same to the ConfigMap.
func (w *world) hideConfigMap() {
	if w.configMap == nil || w.configMap.DeletionTimestamp != nil {
		return
	}
	w.changed(configMapKind, func(c *cache) { c.configMap = nil })
}

func (w *world) configMapChanged() {
	var seen *metav1.ObjectMeta
	if w.configMap != nil {
		seen = w.configMap.DeepCopy()
	}
	w.changed(configMapKind, func(c *cache) {
		if m := w.controller; m != nil && seen == nil && c.configMap != nil && c.configMap.DeletionTimestamp != nil {
			m.gone[c.configMap.UID] = true
		}
		c.configMap = seen
	})
}

func (w *world) podGroupChanged() {
	var seen *schedulingv1alpha1.PodGroup
	if w.podGroup != nil {
		seen = w.podGroup.DeepCopy()
	}
	w.changed(podGroupKind, func(c *cache) { c.podGroup = seen })
}

// crash makes the controller forget. The next one starts with a full cache.
func (w *world) crash() {
	w.controller = nil
	w.deliverAll()
	w.crashAfter = -1
}

// reread has the controller read its status anew. What it knows of the Framework's objects it keeps.
func (w *world) reread() {
	before := w.controller
	w.controller = w.remembered(w.written)
	m := w.controller
	m.deleted, m.forced, m.gone, m.strays, m.listed = before.deleted, before.forced, before.gone, before.strays, before.listed
}

// run lets the controller work until it has nothing to do without an event, or a
// request fails. It returns the last plan.
func (w *world) run() Plan {
	w.t.Helper()
	for range 200 {
		if w.cache.gone {
			w.controller = nil
			return Plan{}
		}
		if w.controller == nil {
			w.controller = w.remembered(w.written)
		}
		plan, end := w.round()
		switch end {
		case crashed:
			w.crash()
		case outdated:
			w.reread()
		case atRest, failed:
			return plan
		}
	}
	w.t.Fatalf("the controller does not come to rest; its last plan: %v", w.plan(nil))
	return Plan{}
}

func (w *world) plan(outcomes []Outcome) Plan {
	snapshot := Snapshot{
		Framework: w.seen(),
		ConfigMap: w.cache.configMap,
		PodGroup:  w.cache.podGroup,
		Pods:      make(map[string]*corev1.Pod, len(w.cache.pods)),
		Options:   w.options,

		PriorityOf: w.priorityOf,
		TakenOver:  w.controller.takenOver,

		Known: plan.Known[frameworkv1.FrameworkStatus]{
			Persisted:   w.controller.persisted,
			Status:      w.controller.status,
			Deleted:     w.controller.deleted,
			Forced:      w.controller.forced,
			Gone:        w.controller.gone,
			Current:     w.controller.current,
			Checked:     w.controller.checked,
			Terminating: w.controller.terminating,
			Outcomes:    outcomes,
		},
	}
	snapshot.Blocked = w.blocked
	for _, block := range w.controller.blocked {
		if w.blocked == nil {
			snapshot.Blocked = append(snapshot.Blocked, block)
		}
	}
	maps.Copy(snapshot.Pods, w.cache.pods)
	for name, stray := range w.controller.strays {
		if cached := w.cache.pods[name]; w.controller.gone[stray.UID] || cached != nil && cached.UID == stray.UID {
			delete(w.controller.strays, name)
		} else {
			snapshot.Pods[name] = stray
		}
	}
	for name, listed := range w.controller.listed {
		if cached := w.cache.pods[name]; listed.behind <= 0 || cached == nil || cached.UID != listed.pod.UID || w.controller.gone[cached.UID] {
			delete(w.controller.listed, name)
		} else {
			snapshot.Pods[name] = listed.pod
		}
	}
	for _, pod := range snapshot.Pods {
		if _, seen := w.controller.terminating[pod.UID]; pod.DeletionTimestamp != nil && !seen {
			w.controller.terminating[pod.UID] = w.now
		}
	}
	plan := Decide(snapshot, w.now, w)
	w.onPlan(snapshot, plan)
	return plan
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

// round is one gather, decide, persist and act, as the controller does it.
func (w *world) round() (Plan, roundEnd) {
	w.t.Helper()
	plan := w.plan(w.controller.outcomes)
	w.controller.outcomes = nil
	if plan.Err != nil {
		w.t.Fatalf("deciding: %v", plan.Err)
	}
	if before := w.controller.status; before != nil && before.AttemptStatus.CompletionStatus == nil {
		w.controller.verdictOn = w.seen()
	}
	w.controller.status = plan.Status
	end := atRest
	if plan.Persist >= w.writeFrom && plan.Persist != PersistNone {
		if end = w.persist(plan.Status); end != progressed {
			return plan, end
		}
	}
	for _, event := range plan.Events {
		w.onEvent(event)
	}
	w.forgetBlocks(plan)
	for _, action := range plan.Actions {
		if w.writeFails() {
			return plan, crashed
		}
		fate := w.fate()
		if fate == refused {
			end = failed
			continue
		}
		if action.Does() == CheckStatus && w.controller.base != w.written {
			return plan, outdated
		}
		outcome, ok := w.act(action)
		w.onAction(action)
		found := w.found(outcome)
		switch {
		case fate == replyLost:
			end = failed
		case ok && found:
			end = progressed // It is there already, and is seen from now on.
		case ok:
			w.remember(outcome)
			w.controller.outcomes = append(w.controller.outcomes, outcome)
			if end == atRest {
				end = progressed
			}
		}
	}
	return plan, end
}

// found says whether an action has found an object of the name that is there.
func (w *world) found(outcome Outcome) bool {
	switch outcome.Action.Does() {
	case CreateConfigMap, CreatePod:
		return outcome.UID == "" && outcome.Refused == nil
	case ConfirmNoConfigMap:
		return w.configMap != nil
	case ConfirmNoPod:
		return w.pods[outcome.Action.Name] != nil
	default:
		return false
	}
}

// forgetBlocks forgets the refusals of what is not to be created any more.
func (w *world) forgetBlocks(plan Plan) {
	maps.DeleteFunc(w.controller.blocked, func(role string, _ Block) bool {
		return !slices.ContainsFunc(plan.Actions, func(a Action) bool { return a.Does() == CreatePod && a.Group == role })
	})
}

// persist writes a status.
func (w *world) persist(status *frameworkv1.FrameworkStatus) roundEnd {
	fate := w.fate()
	switch {
	case w.writeFails():
		return crashed
	case fate == refused || w.deleted:
		return failed
	case w.controller.base != w.written:
		return outdated
	}
	w.before = w.written
	w.written = status
	w.onWrite(w.before, status)
	if fate == replyLost {
		// The next try conflicts, and finds the status to be its own.
		w.controller.base = status
		return failed
	}
	w.controller.persisted, w.controller.base, w.controller.current = status, status, true
	return progressed
}

// remember notes what the API server has told.
func (w *world) remember(outcome Outcome) {
	switch outcome.Action.Does() {
	case CheckStatus:
		w.controller.current = true
		for _, uid := range outcome.Action.Seen {
			w.controller.checked[uid] = true
		}
	case DeleteConfigMap, DeletePod, DeleteFramework:
		w.controller.deleted[outcome.Action.UID] = true
	case ForceDeletePod:
		w.controller.forced[outcome.Action.UID] = true
	}
}

// writeFails counts down to the crash.
func (w *world) writeFails() bool {
	if w.crashAfter < 0 {
		return false
	}
	w.crashAfter--
	return w.crashAfter < 0
}
