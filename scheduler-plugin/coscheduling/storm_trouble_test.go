// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// outage is a while in which all bindings of a gang are refused.
type outage struct {
	begun, until time.Time
	refused      map[types.UID]int
	// backoffs is how often the back-off may begin: once, and once more for each PodGroup that is made anew and each new scheduler.
	backoffs int
}

// refuseForAWhile has all bindings of a gang be refused for a while.
func (s *storm) refuseForAWhile() bool {
	g := pick(s, s.groups, func(g *stormGroup) bool { return g.exists && s.outages[g.Name] == nil })
	if g == nil {
		return false
	}
	d := time.Duration(200+s.random.IntN(800)) * time.Millisecond
	s.logf("the bindings of %s are refused for %v", g.Name, d)
	s.outages[g.Name] = &outage{begun: time.Now(), until: time.Now().Add(d), refused: map[types.UID]int{}, backoffs: 1}
	return true
}

// isOut says whether a binding is refused because of an outage, and holds against the
// back-off how often that was.
func (h *history) isOut(pod *stormPod) bool {
	o := h.outages[pod.group]
	if o == nil || time.Now().After(o.until) {
		return false
	}
	h.excuse(pod.group)
	o.refused[pod.uid]++
	// The back-off is doubled up to the longest one.
	const soon = 10
	if n, most := o.refused[pod.uid], soon*o.backoffs+int(time.Since(o.begun)/(stormBackoff*2/3)); n > most {
		h.violated("%s was to be bound %d times within %v, though it is refused", pod.name, n, time.Since(o.begun))
	}
	return true
}

// beginAnew lets the back-off of an outage begin once more: for another PodGroup of the name, of which the scheduler hears later, or for
// another scheduler.
func (o *outage) beginAnew() {
	if o != nil {
		o.backoffs++
	}
}

// outageLeft says whether bindings are refused. It forgets those outages that are over.
func (h *history) outageLeft() string {
	for name, o := range h.outages {
		if time.Now().Before(o.until) {
			return "the bindings of " + name + " are refused"
		}
		delete(h.outages, name)
	}
	return ""
}

// addService adds a Pod that never ends by itself.
func (s *storm) addService() bool {
	p := &stormPod{name: s.name("service"), cpu: 1 + s.random.IntN(2), priority: []int32{0, 10}[s.random.IntN(2)], serves: true}
	s.logf("add %s: %d cores, priority %d", p.name, p.cpu, p.priority)
	s.addPod(p, false)
	return true
}

// addDaemon adds the Pod of a DaemonSet on some node.
func (s *storm) addDaemon() bool {
	n := pick(s, s.nodes, any1)
	if n == nil {
		return false
	}
	p := &stormPod{name: s.name("daemon"), cpu: 1, serves: true, daemon: n.name}
	s.logf("add %s for %s", p.name, n.name)
	s.addPod(p, false)
	return true
}

// ofDaemonSet makes a Pod that of a DaemonSet on a node.
func ofDaemonSet(node string) podOption {
	return func(w *schedulertesting.PodWrapper) {
		yes := true
		w.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "uid-of-agent", Controller: &yes}}
		w.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
			}}},
		}}
	}
}

// daemonLeft: the Pod of a DaemonSet finds room on its node, even if the room is reserved for a gang. In three cases kube-scheduler
// wakes no Pod for five minutes: the room was that of a Pod which another scheduler has bound to another node; a Pod with a claim was
// nominated for the room; or the victims could not be evicted.
func (s *storm) daemonLeft() string {
	if s.someStay() || slices.ContainsFunc(s.allPods(), func(p stormPod) bool {
		return p.group == "" && (p.foreign || p.waits() && p.wantsDevice)
	}) {
		return ""
	}
	for _, p := range s.allPods() {
		if n := s.nodes[p.daemon]; p.waits() && n != nil && s.free(n, lowest) >= p.cpu {
			return fmt.Sprintf("%s waits, though there is room on %s", p.name, n.name)
		}
	}
	return ""
}

// stormClasses are the PriorityClasses that may exist, and classValues are their values.
var (
	stormClasses = []string{"modest", "great"}
	classValues  = map[string]int32{"modest": 5, "great": 15}
)

// priorityOf is the priority that a group ranks with: that of its members, or of its
// class if that is worth less.
func (h *history) priorityOf(g *stormGroup) int32 {
	if value, ok := h.classes[g.Spec.PriorityClassName]; ok {
		return min(value, g.priority)
	}
	return g.priority
}

// changeClass makes or deletes a PriorityClass.
func (s *storm) changeClass() bool {
	name := stormClasses[s.random.IntN(len(stormClasses))]
	if _, ok := s.classes[name]; ok {
		s.logf("delete PriorityClass %s", name)
		delete(s.classes, name)
		s.wires.bury(classResource, "", name)
	} else {
		s.logf("create PriorityClass %s", name)
		s.classes[name] = classValues[name]
		if err := s.kube.Tracker().Create(classResource, priorityClass(name, classValues[name], corev1.PreemptLowerPriority), ""); err != nil {
			panic(err)
		}
	}
	for name := range s.groups {
		s.touch(name)
	}
	return true
}

// changeBudget makes or deletes a PodDisruptionBudget that protects all of a gang.
func (s *storm) changeBudget() bool {
	g := pick(s, s.groups, any1)
	if g == nil {
		return false
	}
	if s.budgets[g.Name] {
		s.logf("delete the budget of %s", g.Name)
		delete(s.budgets, g.Name)
		s.wires.bury(budgetResource, testNamespace, g.Name)
		return true
	}
	s.logf("protect %s by a budget", g.Name)
	s.budgets[g.Name] = true
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: g.Name},
		Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{g.link(): g.Name}}}}
	if err := s.kube.Tracker().Create(budgetResource, budget, testNamespace); err != nil {
		panic(err)
	}
	return true
}

// unseenByListers says what the scheduler's informers of other objects have not seen.
func (s *storm) unseenByListers() string {
	informers := anyPlugin(s.engine().plugins).handle.SharedInformerFactory()
	classes, err := informers.Scheduling().V1().PriorityClasses().Lister().List(labels.Everything())
	if err != nil || len(classes) != len(s.classes) {
		return fmt.Sprintf("%d PriorityClasses are seen of %d (%v)", len(classes), len(s.classes), err)
	}
	for _, class := range classes {
		if _, ok := s.classes[class.Name]; !ok {
			return "a PriorityClass is still known"
		}
	}
	budgets, err := informers.Policy().V1().PodDisruptionBudgets().Lister().List(labels.Everything())
	if err != nil || len(budgets) != len(s.budgets) {
		return fmt.Sprintf("%d PodDisruptionBudgets are seen of %d (%v)", len(budgets), len(s.budgets), err)
	}
	return ""
}

// lightFuse has the scheduler die at one of its next requests for Pods: bindings, evictions
// and conditions. The request may be the last that is done.
func (s *storm) lightFuse() bool {
	n := 1 + s.random.IntN(8)
	s.logf("the scheduler will die at request %d", n)
	s.process.fuse.Store(int64(n))
	return true
}

// replica is a scheduler that watches, and does not schedule before it leads.
type replica struct {
	process *process
	sched   *scheduler.Scheduler
	lead    func() (stop func())
}

func (s *storm) prepare() *replica {
	p := &process{burnt: make(chan struct{})}
	s.client = mortal{s.kube, p}
	lead := s.standBy()
	return &replica{process: p, sched: s.sched, lead: lead}
}

// skewClocks makes the conditions of all groups older or younger: the clock of whoever has
// written them was wrong.
func (s *storm) skewClocks() {
	s.lock.Lock()
	defer s.lock.Unlock()
	by := time.Duration(s.random.IntN(7200)-3600) * time.Second
	for _, g := range s.sortedGroups() {
		if g.isTheirs() {
			continue // it has none
		}
		object, err := s.lock.Tracker().Get(groupResource, testNamespace, g.Name)
		if err != nil {
			panic(err)
		}
		group := object.(*schedulingv1alpha1.PodGroup).DeepCopy()
		for i := range group.Status.Conditions {
			c := &group.Status.Conditions[i]
			c.LastTransitionTime = metav1.NewTime(c.LastTransitionTime.Add(by))
		}
		if err := s.lock.Tracker().Update(groupResource, group, testNamespace); err != nil {
			panic(err)
		}
	}
}

// onReport has a scheduler that is dead write no conditions of PodGroups.
func (s *storm) onReport(clienttesting.Action) (bool, apiruntime.Object, error) {
	if p := s.writer.Load(); p != nil && p.dead.Load() {
		return true, nil, errDead
	}
	return false, nil, nil
}
