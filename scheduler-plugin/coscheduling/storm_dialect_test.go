// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
)

// In a storm some gangs have PodGroups of scheduler-plugins, of Volcano's or of Kubernetes' own, or none at
// all, and contend with the others for one cluster. What the scheduler writes of these groups is judged as it
// happens: it is their status and nothing else, it says something new, a final phase stays, and neither
// counters nor anything else are written often. When all is calm, each says the phase or the condition that
// follows from its Pods.

// otherDialects are those of which a storm has PodGroups, beside Lockstep's.
var otherDialects = []dialect.Dialect{dialect.SchedulerPlugins, dialect.Volcano, dialect.Native}

// appLabel is what the members of a gang have in common, for selectors, that name it by no label.
const appLabel = "app"

// ruledPrefix begins the names of gangs that have no PodGroup: their Pods say by annotations what they are.
const ruledPrefix = "group/"

// ofRule has a Pod be a member of a gang without a PodGroup.
func ofRule(g *stormGroup) podOption {
	return func(w *schedulertesting.PodWrapper) {
		w.Pod.CreationTimestamp = g.CreationTimestamp
		w.Annotation("scheduling.lockstep.dev/group", g.Name).Annotation("scheduling.lockstep.dev/min-member", fmt.Sprint(g.Spec.MinMember))
	}
}

// groupOf is the group of a gang, nil if there is none.
func (h *history) groupOf(key dialect.Key) *stormGroup {
	return h.groups[strings.TrimPrefix(key.Name, ruledPrefix)]
}

// mostWrites is how often the status of one group may be written between two calms, besides once
// in each second: while its bindings are refused for a second, each of ten attempts has two reasons, as others take the resources meanwhile.
const mostWrites = 40

// told is what the scheduler has written of the groups of other dialects. The lock of their fake
// API server guards it.
type told struct {
	// version is the last resource version that a group has got.
	version int
	// writes are those since the last calm.
	writes map[types.UID]int
	// calm is when it was calm for the last time.
	calm time.Time
	// last is the last one that the present scheduler has made.
	last map[types.UID]time.Time
	// wrong is the first write that should not have been, empty for none.
	wrong string
}

// serveOthers has the API server serve PodGroups of other dialects.
func (s *storm) serveOthers() {
	s.told = &told{writes: map[types.UID]int{}, calm: time.Now(), last: map[types.UID]time.Time{}}
	s.otherWires = newWires(&s.foreign.Fake, s.foreign.Tracker())
	for _, of := range otherDialects {
		s.serveDialect(of)
	}
	s.foreign.PrependReactor("patch", dialect.Volcano.Resource().Resource, s.onTold)
}

// onTold judges a write of the status of a group.
func (s *storm) onTold(action clienttesting.Action) (bool, apiruntime.Object, error) {
	if done, object, err := s.onReport(action); done {
		return done, object, err
	}
	patch, resource := action.(clienttesting.PatchActionImpl), action.GetResource()
	if resource.Group == dialect.Native.Kind().Group {
		return s.onToldNative(patch)
	}
	object, err := s.foreign.Tracker().Get(resource, testNamespace, patch.GetName())
	if err != nil {
		return true, nil, err
	}
	group := object.(*unstructured.Unstructured)
	if readOther(group).Key.Dialect == dialect.Volcano && patch.GetSubresource() != "" {
		return true, nil, apierrors.NewNotFound(resource.GroupResource(), patch.GetName()) // its kind has none
	}
	var says struct {
		Metadata struct {
			UID             types.UID
			ResourceVersion string
		}
		Status map[string]any
	}
	var parts map[string]map[string]any
	if err := errors.Join(json.Unmarshal(patch.GetPatch(), &says), json.Unmarshal(patch.GetPatch(), &parts)); err != nil {
		return true, nil, err
	}
	if says.Metadata.UID != group.GetUID() {
		return true, nil, apierrors.NewConflict(resource.GroupResource(), patch.GetName(), errors.New("the UID is that of another group"))
	}
	// A scheduler that has just been elected may not have seen what the one before it wrote, and writes
	// the same. That is refused, and so costs nobody anything.
	if says.Metadata.ResourceVersion != group.GetResourceVersion() {
		return true, nil, apierrors.NewConflict(resource.GroupResource(), patch.GetName(), errors.New("it has changed"))
	}
	s.told.judge(group, patch, parts, says.Status)
	next := s.told.stamped(group.DeepCopy())
	next.Object["status"] = says.Status
	return true, next, s.foreign.Tracker().Update(resource, next, testNamespace)
}

// onToldNative judges a write of the conditions of a PodGroup of Kubernetes.
func (s *storm) onToldNative(patch clienttesting.PatchActionImpl) (bool, apiruntime.Object, error) {
	resource, wrong := patch.GetResource(), ""
	object, err := s.foreign.Tracker().Get(resource, testNamespace, patch.GetName())
	if err != nil {
		return true, nil, err
	}
	group, applied := object.(*unstructured.Unstructured), &unstructured.Unstructured{}
	if err := applied.UnmarshalJSON(patch.GetPatch()); err != nil {
		return true, nil, err
	}
	if applied.GetUID() != group.GetUID() {
		return true, nil, apierrors.NewConflict(resource.GroupResource(), patch.GetName(), errors.New("the UID is that of another group"))
	}
	if applied.GetResourceVersion() != group.GetResourceVersion() { // as in onTold
		return true, nil, apierrors.NewConflict(resource.GroupResource(), patch.GetName(), errors.New("it has changed"))
	}
	next := s.told.stamped(group.DeepCopy())
	next.Object["status"] = applied.Object["status"]
	before, after := conditionsOf(group), conditionsOf(next)
	switch {
	case patch.GetSubresource() != "status" || patch.GetPatchType() != types.ApplyPatchType || applied.Object["spec"] != nil:
		wrong = "more than the status is written"
	case strings.Contains(before, initiallyScheduled) && !strings.Contains(after, initiallyScheduled):
		wrong = "it was scheduled once, and that is for good"
	case s.told.tooOften(group.GetUID()):
		wrong = fmt.Sprintf("it was written %d times since the last calm", s.told.writes[group.GetUID()])
	}
	if wrong != "" && s.told.wrong == "" {
		s.told.wrong = fmt.Sprintf("PodGroup %s of Kubernetes said %q and says %q: %s", group.GetName(), before, after, wrong)
	}
	s.told.writes[group.GetUID()]++
	return true, next, s.foreign.Tracker().Update(resource, next, testNamespace)
}

// initiallyScheduled begins the condition of a PodGroup of Kubernetes whose minimum was bound once.
const initiallyScheduled = "PodGroupInitiallyScheduled=True"

// stamped gives a group a new resource version.
func (w *told) stamped(group *unstructured.Unstructured) *unstructured.Unstructured {
	w.version++
	group.SetResourceVersion(fmt.Sprint(w.version))
	return group
}

// tooOften says whether another write of a group is one too many.
func (w *told) tooOften(uid types.UID) bool {
	return w.writes[uid] >= mostWrites+int(time.Since(w.calm)/time.Second)
}

// judge notes a write of a group, and what is wrong with it.
func (w *told) judge(group *unstructured.Unstructured, patch clienttesting.PatchActionImpl, parts map[string]map[string]any, status map[string]any) {
	uid := group.GetUID()
	of, subresource := readOther(group).Key.Dialect, "status"
	if of == dialect.Volcano {
		subresource = "" // its kind has none
	}
	before := readOther(group).Status
	after := group.DeepCopy()
	after.Object["status"] = status
	next := readOther(after).Status
	onlyCounts := *before
	onlyCounts.Running, onlyCounts.Succeeded, onlyCounts.Failed, onlyCounts.OccupiedBy = next.Running, next.Succeeded, next.Failed, next.OccupiedBy
	wrong := ""
	switch {
	case patch.GetSubresource() != subresource || patch.GetPatchType() != types.MergePatchType || len(parts) != 2 || len(parts["metadata"]) != 2:
		wrong = "more than the status is written"
	case of == dialect.SchedulerPlugins && (before.Phase == dialect.PhaseFinished || before.Phase == dialect.PhaseFailed):
		wrong = "the phase was final"
	case before.SaysTheSameAs(next):
		wrong = "it said so already"
	case onlyCounts.SaysTheSameAs(next) && time.Since(w.last[uid]) < 10*time.Second:
		wrong = fmt.Sprintf("only counters have changed, %v after the last write", time.Since(w.last[uid]))
	case w.tooOften(uid):
		wrong = fmt.Sprintf("it was written %d times since the last calm", w.writes[uid])
	}
	if wrong != "" && w.wrong == "" {
		w.wrong = fmt.Sprintf("PodGroup %s of %s was %+v and is %+v: %s", group.GetName(), of.Kind().Group, *before, *next, wrong)
	}
	w.writes[uid]++
	w.last[uid] = time.Now()
}

// key is that of the gang.
func (g *stormGroup) key() dialect.Key {
	if g.isRuled() {
		return dialect.Key{Dialect: g.of, Namespace: testNamespace, Name: ruledPrefix + g.Name}
	}
	return dialect.Key{Dialect: g.of, Namespace: testNamespace, Name: g.Name}
}

// isRuled says whether it is a gang without a PodGroup, which is there as long as its Pods are.
func (g *stormGroup) isRuled() bool {
	return g.of == dialect.Rules
}

// isTheirs says whether the group is one of another dialect.
func (g *stormGroup) isTheirs() bool {
	return g.of != dialect.Own
}

// link is the label that the members have, by which they name the group unless it is one of Volcano's.
func (g *stormGroup) link() string {
	switch g.of {
	case dialect.SchedulerPlugins:
		return labelsOfSchedulerPlugins[0]
	case dialect.Volcano, dialect.Native, dialect.Rules:
		return appLabel
	default:
		return schedulingv1alpha1.LabelPodGroup
	}
}

// readOther is the Group that an object of another dialect stands for.
func readOther(object *unstructured.Unstructured) *dialect.Group {
	if object.GroupVersionKind().Group == dialect.Volcano.Kind().Group {
		return dialect.FromVolcano(nil)(object)
	}
	return dialect.FromSchedulerPlugins(object)
}

// beOf has a gang have a PodGroup of another dialect, which asks for no more than a minimum.
func (g *stormGroup) beOf(of dialect.Dialect) {
	g.of = of
	g.Spec = schedulingv1alpha1.PodGroupSpec{MinMember: g.Spec.MinMember, DisruptionMode: schedulingv1alpha1.DisruptGang}
}

// other is the group as its dialect has it.
func (g *stormGroup) other() *unstructured.Unstructured {
	group := makeForeignGroup(g.of, g.Name, int64(g.Spec.MinMember))
	if g.of == dialect.Native {
		group.Object["spec"] = map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{"minCount": int64(g.Spec.MinMember)}},
			"disruptionMode": map[string]any{"all": map[string]any{}}}
	}
	if g.asks > 0 {
		if err := unstructured.SetNestedField(group.Object, fmt.Sprint(g.asks), "spec", "minResources", "cpu"); err != nil {
			panic(err)
		}
	}
	group.SetUID(g.UID)
	group.SetGeneration(g.Generation)
	group.SetCreationTimestamp(g.CreationTimestamp)
	return group
}

// createOther creates the group, which says nothing yet.
func (s *storm) createOther(g *stormGroup) {
	if g.isRuled() {
		g.UID, g.Generation = dialect.ImpliedUID, 0
		return
	}
	s.foreign.Lock()
	defer s.foreign.Unlock()
	if err := s.foreign.Tracker().Create(g.of.Resource(), s.told.stamped(g.other()), testNamespace); err != nil {
		panic(err)
	}
}

// updateOther brings the spec of the group up to date.
func (s *storm) updateOther(g *stormGroup) {
	if g.isRuled() {
		g.Generation = 0
		for _, name := range slices.Sorted(maps.Keys(s.pods)) {
			if s.pods[name].group == g.Name {
				s.updatePod(name, func(pod *corev1.Pod) {
					pod.Annotations["scheduling.lockstep.dev/min-member"] = fmt.Sprint(g.Spec.MinMember)
				})
			}
		}
		return
	}
	s.foreign.Lock()
	defer s.foreign.Unlock()
	object, err := s.foreign.Tracker().Get(g.of.Resource(), testNamespace, g.Name)
	if err != nil {
		panic(err)
	}
	next := g.other()
	if status, ok := object.(*unstructured.Unstructured).Object["status"]; ok {
		next.Object["status"] = status
	}
	if err := s.foreign.Tracker().Update(g.of.Resource(), s.told.stamped(next), testNamespace); err != nil {
		panic(err)
	}
}

// removeOther deletes the group.
func (s *storm) removeOther(g *stormGroup) {
	if g.isRuled() {
		return
	}
	s.foreign.Lock()
	defer s.foreign.Unlock()
	s.otherWires.bury(g.of.Resource(), testNamespace, g.Name)
}

// stirOthers has some members of these gangs run, and now and then breaks the watch of the groups.
// It draws apart from all else that happens, so that a seed has the storm that it had without them.
func (s *storm) stirOthers() {
	s.kube.Lock()
	defer s.kube.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.pods)) {
		p := s.pods[name]
		g := s.groups[p.group]
		if g == nil || !g.isTheirs() || !p.runs() || p.deleting || p.started || p.foreign || s.dialects.IntN(2) == 0 {
			continue
		}
		p.started = true
		s.logf("%s runs", name)
		s.updatePod(name, func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodRunning })
	}
	if s.dialects.IntN(8) == 0 {
		s.foreign.Lock()
		defer s.foreign.Unlock()
		if kinds := s.otherWires.kinds(); len(kinds) > 0 {
			s.logf("the watch of PodGroups of other dialects breaks")
			s.otherWires.cut(kinds[0])
		}
	}
}

// toldWrong says what was written of a group of another dialect that should not have been.
func (s *storm) toldWrong() string {
	s.foreign.Lock()
	defer s.foreign.Unlock()
	return s.told.wrong
}

// untold: a group of another dialect that has members says the phase that follows from them,
// unless its phase is final. That it has ended is said only if it had.
func (s *storm) untold() string {
	s.foreign.Lock()
	defer s.foreign.Unlock()
	for _, g := range s.sortedGroups() {
		if !g.isTheirs() || g.isRuled() {
			continue
		}
		var census dialect.Census
		for _, p := range s.pods {
			if p.group != g.Name {
				continue
			}
			pod := &corev1.Pod{}
			switch {
			case p.succeeded:
				pod.Status.Phase = corev1.PodSucceeded
			case p.started:
				pod.Status.Phase = corev1.PodRunning
			}
			pod.Spec.NodeName = p.node
			census.Add(pod)
		}
		object, err := s.foreign.Tracker().Get(g.of.Resource(), testNamespace, g.Name)
		if err != nil {
			return err.Error()
		}
		if g.of == dialect.Native {
			if says := conditionsOf(object.(*unstructured.Unstructured)); s.isWhole(g) && !strings.Contains(says, initiallyScheduled) {
				return fmt.Sprintf("PodGroup %s of Kubernetes says %q, and its minimum is bound", g.Name, says)
			}
			continue
		}
		group := readOther(object.(*unstructured.Unstructured))
		says := group.Status.Phase
		unschedulable := news.ConditionOf(group.Conditions, schedulingv1alpha1.ConditionUnschedulable)
		want := group.NextStatus(dialect.Status{}, dialect.Facts{Pods: census, Lacks: unschedulable != nil && unschedulable.Status == metav1.ConditionTrue}).Phase
		if says == dialect.PhaseFinished && g.finished || census.Exist == 0 {
			continue
		}
		if says != want {
			return fmt.Sprintf("PodGroup %s of %s says %q of %+v, want %q", g.Name, g.of.Kind().Group, says, census, want)
		}
	}
	return ""
}

// hasFinished says whether enough members of a group have succeeded that it has ended, since the
// last calm: the scheduler hears of Pods and of groups one after the other.
func (h *history) hasFinished(g *stormGroup) bool {
	succeeded := 0
	for _, p := range h.pods {
		if p.group == g.Name && p.succeeded {
			succeeded++
		}
	}
	g.mostSucceeded = max(g.mostSucceeded, succeeded)
	return g.mostSucceeded >= max(1, int(g.leastMin))
}

// calmOthers forgets what was told since the last calm.
func (s *storm) calmOthers() {
	s.foreign.Lock()
	defer s.foreign.Unlock()
	clear(s.told.writes)
	s.told.calm = time.Now()
	for _, g := range s.groups {
		g.mostSucceeded = 0
	}
}
