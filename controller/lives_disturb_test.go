// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// disturbance is a kind of thing that happens in a life besides the work of the
// controller and the nodes. A life has some kinds of them only, so that each is
// also met without the others.
type disturbance string

const (
	disturbRequests   disturbance = "requests"   // requests fail
	disturbAnswers    disturbance = "answers"    // requests are slow, answers are lost
	disturbLate       disturbance = "late"       // requests are carried out after their process has died
	disturbRefusals   disturbance = "refusals"   // Pods are refused for a while
	disturbWatches    disturbance = "watches"    // watches are dropped, behind, or miss something
	disturbCrashes    disturbance = "crashes"    // the controller dies
	disturbRestarts   disturbance = "restarts"   // the controller is told to end
	disturbPods       disturbance = "pods"       // others delete Pods
	disturbForce      disturbance = "force"      // others delete Pods by force
	disturbConfigMaps disturbance = "configmaps" // others delete ConfigMaps and PodGroups
	disturbBackground disturbance = "background" // others delete ConfigMaps in the background
	disturbLabels     disturbance = "labels"     // others change labels
	disturbNames      disturbance = "names"      // others take names
	disturbSpec       disturbance = "spec"       // the user changes the spec
	disturbGang       disturbance = "gang"       // the user makes a gang of it, or none
	disturbStop       disturbance = "stop"       // the user stops or deletes the Framework
	disturbNodes      disturbance = "nodes"      // nodes are lost, there is no room
	disturbFailures   disturbance = "failures"   // tasks fail
	disturbClock      disturbance = "clock"      // the API server's clock is wrong
)

var disturbances = []disturbance{
	disturbRequests, disturbAnswers, disturbLate, disturbRefusals, disturbWatches, disturbCrashes, disturbRestarts, disturbPods,
	disturbForce, disturbConfigMaps, disturbBackground, disturbLabels, disturbNames, disturbSpec, disturbGang, disturbStop,
	disturbNodes, disturbFailures, disturbClock,
}

// hinders says whether a disturbance may keep the controller from seeing or doing
// something at once.
func hinders(kind disturbance) bool {
	switch kind {
	case disturbPods, disturbForce, disturbConfigMaps, disturbSpec, disturbGang, disturbStop, disturbNodes, disturbFailures, disturbClock:
		return false
	}
	return true
}

// chooseDisturbances draws those of a life.
func chooseDisturbances(random *rand.Rand) []disturbance {
	if random.IntN(8) == 0 {
		return slices.Clone(disturbances)
	}
	var chosen []disturbance
	for _, index := range random.Perm(len(disturbances))[:random.IntN(7)] {
		chosen = append(chosen, disturbances[index])
	}
	return chosen
}

// watched are the resources that the controller watches.
var watched = []string{"pods", "configmaps", "frameworks", "podgroups"}

// disturb does one random thing of the life's kinds.
func (l *shellLife) disturb() {
	if len(l.kinds) == 0 {
		return
	}
	kind := l.kinds[l.random.IntN(len(l.kinds))]
	f := l.frameworks[l.random.IntN(len(l.frameworks))]
	switch kind {
	case disturbRequests:
		l.changeOdds(faultConflict, faultThrottled, faultInternal, faultUnavailable, faultBroken)
	case disturbAnswers:
		l.changeOdds(faultLostAnswer, faultSlow, faultSlowAnswer)
	case disturbLate:
		l.changeOdds(faultLate)
		if l.random.IntN(3) == 0 {
			l.crash()
		}
	case disturbRefusals:
		l.refusePods(f)
	case disturbWatches:
		l.disturbWatch(watched[l.random.IntN(len(watched))])
	case disturbCrashes:
		l.crash()
	case disturbRestarts:
		if l.program == nil {
			l.startProgram()
		} else {
			l.stopProgram()
		}
	case disturbPods:
		l.deletePod(f, metav1.DeleteOptions{})
	case disturbForce:
		l.deletePod(f, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
	case disturbConfigMaps:
		l.deleteParts(f)
	case disturbBackground:
		l.deleteConfigMapInBackground(f)
	case disturbLabels:
		l.relabel(f)
	case disturbNames:
		l.takeName(f)
	case disturbSpec:
		l.edit(f, l.editRoles)
	case disturbGang:
		l.edit(f, l.editGang)
	case disturbStop:
		l.stopFramework(f)
	case disturbNodes:
		l.changeNodes()
	case disturbFailures:
		l.failing = !l.failing
	case disturbClock:
		l.server.SetSkew(time.Duration(l.random.IntN(121)-60) * time.Minute)
	}
}

// changeOdds makes faults of some kinds frequent, rare or impossible.
func (l *shellLife) changeOdds(kinds ...fault) {
	for _, kind := range kinds {
		if l.random.IntN(2) == 0 {
			l.odds[kind] = []int{0, 0, 3, 10, 40}[l.random.IntN(5)]
		}
	}
	l.trace.log("faults in percent: %v", l.odds)
	l.faults.set(maps.Clone(l.odds))
}

// refusePods has the API server refuse Pods of a Framework, a role or a task, or
// no longer.
func (l *shellLife) refusePods(f *frameworkv1.Framework) {
	if l.random.IntN(3) == 0 {
		l.faults.drop("")
		return
	}
	prefix := f.Name + "-"
	if roles := f.Spec.TaskRoles; len(roles) > 0 && l.random.IntN(2) == 0 {
		prefix += roles[l.random.IntN(len(roles))].Name + "-"
		if l.random.IntN(2) == 0 {
			prefix += fmt.Sprint(l.random.IntN(3))
		}
	}
	kinds := slices.Sorted(maps.Keys(podRefusals))
	kind := kinds[l.random.IntN(len(kinds))]
	l.faults.add(podsRefused(kind, prefix, podRefusals[kind]))
}

// disturbWatch disturbs the watch of a resource.
func (l *shellLife) disturbWatch(resource string) {
	p := l.program
	if p == nil {
		return
	}
	switch choice := l.random.IntN(8); choice {
	case 0:
		l.trace.log("%s sees no more %s", p.name, resource)
		p.process.Hold(resource)
	case 1:
		n := l.random.IntN(4)
		l.trace.log("%s sees %d events of %s", p.name, n, resource)
		p.process.Release(resource, n)
	case 2, 3:
		l.trace.log("%s sees all of %s", p.name, resource)
		p.process.ReleaseAll(resource)
	case 4:
		d := time.Duration(l.random.IntN(20)) * time.Second
		l.trace.log("%s sees %s later by %v", p.name, resource, d)
		p.process.Delay(resource, d)
	case 5:
		l.trace.log("%s loses the watch of %s", p.name, resource)
		p.process.DropWatches(resource)
	case 6:
		l.trace.log("the watch of %s expires for %s", resource, p.name)
		p.process.ExpireWatches(resource)
	case 7:
		l.trace.log("the past of %s is forgotten", resource)
		l.server.Forget(resource)
	}
}

// clearWatches lets the controller see all there is at once.
func (l *shellLife) clearWatches() {
	if p := l.program; p != nil {
		for _, resource := range watched {
			p.process.Delay(resource, 0)
			p.process.ReleaseAll(resource)
		}
	}
}

// crash has the controller die, now or between two of its next writes; or the next
// one begin.
func (l *shellLife) crash() {
	switch {
	case l.program == nil:
		l.startProgram()
	case l.random.IntN(3) == 0:
		l.trace.log("%s is killed", l.program.name)
		l.killProgram()
	default:
		n := l.random.IntN(12)
		l.trace.log("%s will die after %d writes", l.program.name, n)
		l.program.process.KillAfter(n)
	}
}

// podOf is a Pod of a Framework, nil if there is none.
func (l *shellLife) podOf(f *frameworkv1.Framework) *corev1.Pod {
	pods := slices.DeleteFunc(apiserver.All[corev1.Pod](l.server, f.Namespace), func(pod *corev1.Pod) bool {
		return pod.Annotations[frameworkv1.KeyFrameworkName] != f.Name
	})
	if len(pods) == 0 {
		return nil
	}
	return pods[l.random.IntN(len(pods))]
}

func (l *shellLife) deletePod(f *frameworkv1.Framework, options metav1.DeleteOptions) {
	if pod := l.podOf(f); pod != nil {
		l.trace.log("somebody deletes Pod %s", pod.Name)
		apiserver.DeleteObject[corev1.Pod](l.server, pod.Namespace, pod.Name, options)
	}
}

// deleteParts is somebody who deletes the ConfigMap as one does, or the PodGroup.
func (l *shellLife) deleteParts(f *frameworkv1.Framework) {
	if l.random.IntN(2) == 0 {
		l.trace.log("somebody deletes the PodGroup of %s", f.Name)
		apiserver.DeleteObject[schedulingv1alpha1.PodGroup](l.server, f.Namespace, frameworkv1.PodGroupName(f.Name), metav1.DeleteOptions{})
		return
	}
	l.trace.log("somebody deletes the ConfigMap of %s", f.Name)
	apiserver.DeleteObject[corev1.ConfigMap](l.server, f.Namespace, frameworkv1.AttemptName(f.Name), metav1.DeleteOptions{})
}

// deleteConfigMapInBackground leaves the Pods to the garbage collector, or to nobody.
func (l *shellLife) deleteConfigMapInBackground(f *frameworkv1.Framework) {
	name := frameworkv1.AttemptName(f.Name)
	if configMap := apiserver.Find[corev1.ConfigMap](l.server, f.Namespace, name); configMap == nil || metav1.GetControllerOf(configMap) == nil {
		return
	}
	policy := metav1.DeletePropagationBackground
	if l.random.IntN(4) == 0 {
		policy = metav1.DeletePropagationOrphan
	}
	l.trace.log("somebody deletes the ConfigMap of %s with the policy %s", f.Name, policy)
	l.book.loosen(f.UID)
	apiserver.DeleteObject[corev1.ConfigMap](l.server, f.Namespace, name, metav1.DeleteOptions{PropagationPolicy: &policy})
}

// relabel is somebody who takes or changes the label by which objects of a Framework
// are found. One that is being deleted already is taken for gone then.
func (l *shellLife) relabel(f *frameworkv1.Framework) {
	change := func(object metav1.Object) {
		labels := maps.Clone(object.GetLabels())
		if l.random.IntN(2) == 0 {
			delete(labels, frameworkv1.KeyFrameworkName)
		} else {
			labels[frameworkv1.KeyFrameworkName] = "another"
		}
		object.SetLabels(labels)
	}
	if l.random.IntN(3) == 0 {
		name := frameworkv1.AttemptName(f.Name)
		if configMap := apiserver.Find[corev1.ConfigMap](l.server, f.Namespace, name); configMap != nil && configMap.Labels != nil && configMap.DeletionTimestamp == nil {
			l.trace.log("somebody changes the label of ConfigMap %s", name)
			apiserver.ChangeAny(l.server, f.Namespace, name, func(object *corev1.ConfigMap) { change(object) })
		}
		return
	}
	if pod := l.podOf(f); pod != nil && pod.Labels != nil && pod.DeletionTimestamp == nil {
		l.trace.log("somebody changes the label of Pod %s", pod.Name)
		apiserver.ChangeAny(l.server, f.Namespace, pod.Name, func(object *corev1.Pod) { change(object) })
	}
}

// takeName is somebody who has an object of a name that the controller will want, or
// gives it back.
func (l *shellLife) takeName(f *frameworkv1.Framework) {
	if l.random.IntN(3) == 0 {
		l.giveNamesBack()
		return
	}
	meta := metav1.ObjectMeta{Namespace: f.Namespace, Labels: map[string]string{squatter: ""}}
	switch l.random.IntN(4) {
	case 0:
		if meta.Name = frameworkv1.AttemptName(f.Name); apiserver.Find[corev1.ConfigMap](l.server, f.Namespace, meta.Name) == nil {
			apiserver.Add(l.server, &corev1.ConfigMap{ObjectMeta: meta})
		}
	case 1:
		if meta.Name = frameworkv1.PodGroupName(f.Name); apiserver.Find[schedulingv1alpha1.PodGroup](l.server, f.Namespace, meta.Name) == nil {
			apiserver.Add(l.server, &schedulingv1alpha1.PodGroup{ObjectMeta: meta, Spec: schedulingv1alpha1.PodGroupSpec{MinMember: 1}})
		}
	default:
		if len(f.Spec.TaskRoles) == 0 {
			return
		}
		role := f.Spec.TaskRoles[l.random.IntN(len(f.Spec.TaskRoles))]
		if meta.Name = frameworkv1.PodName(f.Name, role.Name, int32(l.random.IntN(3))); apiserver.Find[corev1.Pod](l.server, f.Namespace, meta.Name) == nil {
			apiserver.Add(l.server, &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{NodeName: "node-0"}, Status: corev1.PodStatus{Phase: corev1.PodUnknown}})
		}
	}
}

// squatter labels objects that are nobody's.
const squatter = "squatter"

// giveNamesBack removes what is nobody's, also what was orphaned and has outlived its
// Framework: that is for its user to remove.
func (l *shellLife) giveNamesBack() {
	known := map[string]bool{}
	for _, f := range apiserver.All[frameworkv1.Framework](l.server, "") {
		known[string(f.UID)] = true
	}
	for _, pod := range apiserver.All[corev1.Pod](l.server, "") {
		orphan := metav1.GetControllerOf(pod) == nil && !known[pod.Annotations[frameworkv1.KeyFrameworkUID]]
		if _, ok := pod.Labels[squatter]; ok || orphan {
			apiserver.Remove[corev1.Pod](l.server, pod.Namespace, pod.Name)
		}
	}
	for _, configMap := range apiserver.All[corev1.ConfigMap](l.server, "") {
		if _, ok := configMap.Labels[squatter]; ok {
			apiserver.Remove[corev1.ConfigMap](l.server, configMap.Namespace, configMap.Name)
		}
	}
	for _, group := range apiserver.All[schedulingv1alpha1.PodGroup](l.server, "") {
		if metav1.GetControllerOf(group) == nil { // Also one that was orphaned.
			apiserver.Remove[schedulingv1alpha1.PodGroup](l.server, group.Namespace, group.Name)
		}
	}
}

// stopFramework is the user who has had enough, in one of several ways.
func (l *shellLife) stopFramework(f *frameworkv1.Framework) {
	switch l.random.IntN(6) {
	case 0:
		l.trace.log("the user deletes %s in the foreground", f.Name)
		apiserver.DeleteObject[frameworkv1.Framework](l.server, f.Namespace, f.Name, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)})
	case 1:
		l.trace.log("the user deletes %s", f.Name)
		l.book.loosen(f.UID)
		apiserver.DeleteObject[frameworkv1.Framework](l.server, f.Namespace, f.Name, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)})
	case 2:
		l.edit(f, func(spec *frameworkv1.FrameworkSpec) { spec.ExecutionType = frameworkv1.ExecutionStop })
	case 3:
		if apiserver.Find[frameworkv1.Framework](l.server, f.Namespace, f.Name) == nil {
			l.trace.log("the user creates another %s", f.Name)
			*f = *apiserver.Add(l.server, l.newFramework(f.Namespace, f.Name))
		}
	default:
		l.edit(f, func(spec *frameworkv1.FrameworkSpec) {
			if spec.ExecutionType == frameworkv1.ExecutionCreate {
				spec.ExecutionType = frameworkv1.ExecutionStart
			}
		})
	}
}

// changeNodes loses a node or gets it back, or the cluster has room or not.
func (l *shellLife) changeNodes() {
	node := nodeNames[l.random.IntN(len(nodeNames))]
	switch {
	case l.random.IntN(3) == 0:
		l.busy = !l.busy
	case l.lostNodes[node]:
		delete(l.lostNodes, node)
	default:
		l.trace.log("%s is lost", node)
		l.lostNodes[node] = true
		for _, pod := range apiserver.All[corev1.Pod](l.server, "") {
			if pod.Spec.NodeName == node && pod.DeletionTimestamp == nil && l.random.IntN(2) == 0 {
				apiserver.DeleteObject[corev1.Pod](l.server, pod.Namespace, pod.Name, metav1.DeleteOptions{})
			}
		}
	}
}

// edit is the user who changes a spec.
func (l *shellLife) edit(f *frameworkv1.Framework, change func(*frameworkv1.FrameworkSpec)) {
	if edited := apiserver.ChangeAny(l.server, f.Namespace, f.Name, func(f *frameworkv1.Framework) {
		change(&f.Spec)
		keepValid(&f.Spec)
	}); edited != nil {
		*f = *edited
	}
}

// keepValid keeps what the schema of Frameworks asks for.
func keepValid(spec *frameworkv1.FrameworkSpec) {
	tasks := int32(0)
	for _, role := range spec.TaskRoles {
		tasks += role.TaskNumber
	}
	if spec.Gang != nil && spec.Gang.MinMember != nil && tasks > 0 {
		spec.Gang.MinMember = ptr.To(min(*spec.Gang.MinMember, tasks))
	}
}

// editRoles rescales, or changes a policy.
func (l *shellLife) editRoles(spec *frameworkv1.FrameworkSpec) {
	for range 1 + l.random.IntN(2) {
		if len(spec.TaskRoles) == 0 {
			spec.TaskRoles = append(spec.TaskRoles, l.newRole("z"))
			return
		}
		chosen := l.random.IntN(len(spec.TaskRoles))
		r := &spec.TaskRoles[chosen]
		switch l.random.IntN(8) {
		case 0, 1, 2:
			r.TaskNumber = int32(l.random.IntN(4))
		case 3:
			r.FrameworkAttemptCompletionPolicy = l.newThresholds()
		case 4:
			r.Task.RetryPolicy = l.newPolicy()
			spec.RetryPolicy = l.newPolicy()
		case 5:
			r.Task.PodGracefulDeletionTimeoutSec = l.newTimeout()
		case 6:
			spec.TaskRoles = slices.Delete(spec.TaskRoles, chosen, chosen+1)
		case 7:
			if !slices.ContainsFunc(spec.TaskRoles, func(r frameworkv1.TaskRoleSpec) bool { return r.Name == "z" }) {
				spec.TaskRoles = append(spec.TaskRoles, l.newRole("z"))
			}
		}
	}
}

// editGang makes a gang of a Framework, or none, or changes what it needs.
func (l *shellLife) editGang(spec *frameworkv1.FrameworkSpec) {
	switch {
	case spec.Gang == nil:
		spec.Gang = l.newGang()
	case l.random.IntN(3) == 0:
		spec.Gang = nil
	default:
		spec.Gang.MinMember = ptr.To(int32(1 + l.random.IntN(3)))
		spec.Gang.ScheduleTimeoutSeconds = ptr.To(int32(30 * (1 + l.random.IntN(3))))
	}
}

// newFramework is what a user might want.
func (l *shellLife) newFramework(namespace, name string) *frameworkv1.Framework {
	f := &frameworkv1.Framework{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       frameworkv1.FrameworkSpec{ExecutionType: frameworkv1.ExecutionStart, RetryPolicy: l.newPolicy()},
	}
	for _, role := range []string{"w", "x"}[:1+l.random.IntN(2)] {
		f.Spec.TaskRoles = append(f.Spec.TaskRoles, l.newRole(role))
	}
	if l.random.IntN(3) == 0 {
		f.Spec.Gang = l.newGang()
	}
	if l.random.IntN(12) == 0 {
		f.Spec.ExecutionType = frameworkv1.ExecutionCreate
	}
	keepValid(&f.Spec)
	return f
}

func (l *shellLife) newGang() *frameworkv1.GangSpec {
	gang := &frameworkv1.GangSpec{}
	if l.random.IntN(2) == 0 {
		gang.MinMember = ptr.To(int32(1 + l.random.IntN(3)))
	}
	if l.random.IntN(2) == 0 {
		gang.ScheduleTimeoutSeconds, gang.RecoveryTimeoutSeconds = ptr.To[int32](30), ptr.To[int32](30)
	}
	return gang
}

func (l *shellLife) newRole(name string) frameworkv1.TaskRoleSpec {
	return frameworkv1.TaskRoleSpec{
		Name: name, TaskNumber: int32(l.random.IntN(4)),
		FrameworkAttemptCompletionPolicy: l.newThresholds(),
		Task:                             frameworkv1.TaskSpec{RetryPolicy: l.newPolicy(), PodGracefulDeletionTimeoutSec: l.newTimeout()},
	}
}

func (l *shellLife) newPolicy() frameworkv1.RetryPolicySpec {
	return frameworkv1.RetryPolicySpec{FancyRetryPolicy: l.random.IntN(2) == 0, MaxRetryCount: int32(l.random.IntN(4) - 1)}
}

func (l *shellLife) newThresholds() frameworkv1.CompletionPolicySpec {
	return frameworkv1.CompletionPolicySpec{
		MinFailedTaskCount:    ptr.To(int32(l.random.IntN(4) - 1)),
		MinSucceededTaskCount: ptr.To(int32(l.random.IntN(4) - 1)),
	}
}

func (l *shellLife) newTimeout() *int64 {
	if l.random.IntN(2) == 0 {
		return nil
	}
	return ptr.To([]int64{0, 20, 120}[l.random.IntN(3)])
}
