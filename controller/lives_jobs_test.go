// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// What the lives of jobs of all kinds have in common.

// chooseOfJobs draws the disturbances of a life of jobs.
func chooseOfJobs(random *rand.Rand, all []disturbance) []disturbance {
	var chosen []disturbance
	for _, index := range random.Perm(len(all))[:random.IntN(7)] {
		chosen = append(chosen, all[index])
	}
	if random.IntN(8) == 0 {
		return slices.Clone(all)
	}
	return chosen
}

// disturbProgram does one random thing of a kind that has nothing to do with what the jobs are.
func (l *shellLife) disturbProgram(kind disturbance, watched []string) {
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
	case disturbNodes:
		l.changeNodes()
	case disturbFailures:
		l.failing = !l.failing
	case disturbClock:
		l.server.SetSkew(time.Duration(l.random.IntN(121)-60) * time.Minute)
	}
}

// podControlledBy is a Pod of an owner, nil if there is none.
func (l *shellLife) podControlledBy(owner metav1.Object) *corev1.Pod {
	pods := slices.DeleteFunc(apiserver.All[corev1.Pod](l.server, owner.GetNamespace()), func(pod *corev1.Pod) bool {
		return !metav1.IsControlledBy(pod, owner)
	})
	if len(pods) == 0 {
		return nil
	}
	return pods[l.random.IntN(len(pods))]
}

func (l *shellLife) deletePodOf(owner metav1.Object, options metav1.DeleteOptions) {
	if pod := l.podControlledBy(owner); pod != nil {
		l.trace.log("somebody deletes Pod %s", pod.Name)
		apiserver.DeleteObject[corev1.Pod](l.server, pod.Namespace, pod.Name, options)
	}
}

// takeNameOfPod is somebody who has a Pod of a name that the controller will want, or gives it
// back.
func (l *shellLife) takeNameOfPod(namespace, name string) {
	switch pod := apiserver.Find[corev1.Pod](l.server, namespace, name); {
	case pod == nil:
		l.trace.log("somebody takes the name %s", name)
		apiserver.Add(l.server, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{squatter: ""}},
			Spec:       corev1.PodSpec{NodeName: "node-0"}, Status: corev1.PodStatus{Phase: corev1.PodUnknown},
		})
	case pod.Labels[squatter] == "" && metav1.GetControllerOf(pod) == nil:
		apiserver.Remove[corev1.Pod](l.server, namespace, name)
	}
}

// endDisturbances ends all that disturbs. Pods get the label back that has the name of their
// owner: else they are looked at for ever.
func (l *shellLife) endDisturbances(label string, watched []string) {
	l.trace.log("peace begins")
	l.faults.set(nil)
	l.faults.drop("")
	clear(l.lostNodes)
	l.busy, l.failing, l.slowToEnd = false, false, false
	l.server.SetSkew(0)
	for _, pod := range apiserver.All[corev1.Pod](l.server, "") {
		owner := metav1.GetControllerOf(pod)
		if owner == nil {
			apiserver.Remove[corev1.Pod](l.server, pod.Namespace, pod.Name)
			continue
		}
		apiserver.ChangeAny(l.server, pod.Namespace, pod.Name, func(pod *corev1.Pod) { pod.Labels[label] = owner.Name })
	}
	if l.program == nil {
		l.startProgram()
	}
	l.program.process.KillAfter(-1)
	for _, resource := range watched {
		l.program.process.Delay(resource, 0)
		l.program.process.ReleaseAll(resource)
	}
}

// holdAtRest holds that no Pod is left that may not be, and that the controller does nothing,
// once all jobs have ended. The keys are theirs.
func (l *shellLife) holdAtRest(keys []string, mayStay func(*corev1.Pod) bool) {
	for range 10 {
		l.pass(30 * time.Second)
		l.runNodes(1)
	}
	for _, pod := range apiserver.All[corev1.Pod](l.server, "") {
		if !mayStay(pod) {
			l.t.Errorf("Pod %s is left behind", pod.Name)
		}
	}
	requests := func() int {
		total := 0
		for _, key := range keys {
			count, _ := l.faults.count(key)
			total += count
		}
		return total
	}
	before := requests()
	l.pass(time.Hour)
	if after := requests(); after != before {
		l.t.Errorf("there were %d requests in an hour in which there was nothing to do", after-before)
	}
}

// holdAllGone holds that nothing is left when all jobs are deleted. known is how many of them
// the controller remembers.
func (l *shellLife) holdAllGone(known func() int) {
	for range 5 {
		l.pass(10 * time.Second)
		l.runNodes(1)
	}
	if n := known(); n > 0 {
		l.t.Errorf("the controller remembers %d jobs when all are gone", n)
	}
	for _, pod := range apiserver.All[corev1.Pod](l.server, "") {
		l.t.Errorf("Pod %s is left behind when its job is gone", pod.Name)
	}
}
