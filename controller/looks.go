// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/controller/lifecycle"
	"github.com/lockstep-k8s/lockstep/controller/pacing"
	"github.com/lockstep-k8s/lockstep/internal/controlled"
)

// A live look asks the API server for what the caches can't tell: whether an object
// that has left them is gone, or has only lost its label; what an object is that has
// the name of one to be created; whether the status is the stored one.

// getter reads one object.
type getter[T metav1.Object] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
}

// lookFor returns the object of an action, or that it is gone.
func lookFor[T metav1.Object](ctx context.Context, client getter[T], action lifecycle.Action) (found T, gone types.UID, err error) {
	var none T
	live, err := client.Get(ctx, action.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return none, action.UID, nil
	case err != nil:
		return none, "", err
	case live.GetUID() != action.UID:
		return none, action.UID, nil
	default:
		return live, "", nil
	}
}

// ofOwner returns the object that has the name of one to be created, if it has the
// right owner.
func ofOwner[T metav1.Object](ctx context.Context, client getter[T], resource string, action lifecycle.Action) (T, error) {
	var none T
	live, err := client.Get(ctx, action.Name, metav1.GetOptions{})
	if err != nil {
		return none, fmt.Errorf("looking for the %s that has its name: %w", resource, err)
	}
	if !controlled.By(action.Owner, live) {
		taken := &nameTakenError{resource: resource, name: action.Name, object: live}
		if controller := metav1.GetControllerOfNoCopy(live); controller != nil {
			taken.controller = controller.Kind + " " + controller.Name
		}
		return none, taken
	}
	return live, nil
}

// presentOf returns the object of the action's name if the action's owner controls it,
// and the zero value if there is none.
func presentOf[T metav1.Object](ctx context.Context, client getter[T], action lifecycle.Action) (T, error) {
	var none T
	live, err := client.Get(ctx, action.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return none, nil
	case err != nil:
		return none, fmt.Errorf("looking for one that is there: %w", err)
	case !controlled.By(action.Owner, live):
		return none, nil
	default:
		return live, nil
	}
}

// fewLooks is how many Pods are looked at one by one. For more, one list of the
// namespace takes the API server less time.
const fewLooks = 10

// lookForMany says whether actions look for more Pods than are looked at one by one.
func lookForMany(actions []lifecycle.Action) bool {
	pods := 0
	for _, action := range actions {
		if action.Kind == lifecycle.LookForPod {
			pods++
		}
	}
	return pods > fewLooks
}

// look checks the status, and looks for many Pods at once.
func (p *pass) look(ctx context.Context, looks []lifecycle.Action) (acted bool, err error) {
	pods := map[types.UID]lifecycle.Action{}
	for _, action := range looks {
		if action.Kind == lifecycle.LookForPod {
			pods[action.UID] = action
			continue
		}
		switch current, err := p.checkStatus(ctx); {
		case err != nil:
			p.fail(ctx, action, err)
		case !current:
			return false, errCacheBehind
		default:
			p.memory.noteSeen(action.Seen)
			p.grant(action)
			acted = true
		}
	}
	if len(pods) == 0 {
		return acted, nil
	}
	looked, err := p.lookForPods(ctx, pods)
	if err != nil {
		p.pace.Refusals.Refused(cause{kind: lifecycle.LookForPod}, p.now(), pauseOf(err), p.controller.entropy.Between)
		p.controller.metrics.action(lifecycle.LookForPod, err)
		p.tellFailures(ctx, []error{fmt.Errorf("looking for %d Pods: %w", len(pods), err)}, true)
	}
	return acted || looked, nil
}

// fail notes a request that has failed, and tells of it.
func (p *pass) fail(ctx context.Context, action lifecycle.Action, err error) {
	p.controller.metrics.action(action.Kind, err)
	p.refuse(action, err)
	p.tellFailures(ctx, []error{fmt.Errorf("%s: %w", action, err)}, true)
}

// listPage is how many Pods a page of a list has.
const listPage = 500

// lookForPods lists the Pods of the namespace, and remembers which of the wanted ones
// are there and which are gone. It says whether it knows that of all.
func (p *pass) lookForPods(ctx context.Context, wanted map[types.UID]lifecycle.Action) (looked bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, pacing.RequestTime)
	defer cancel()
	pods := p.controller.kube.CoreV1().Pods(p.key.Namespace)
	found := map[types.UID]*corev1.Pod{}
	options := metav1.ListOptions{Limit: listPage}
	for {
		p.turn.requests++
		list, err := pods.List(ctx, options)
		if err != nil {
			return false, err
		}
		for i := range list.Items {
			if pod := &list.Items[i]; wanted[pod.UID].UID != "" {
				found[pod.UID] = read(pod)
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			break
		}
	}
	for uid, action := range wanted {
		r := result{action: action, pod: found[uid]}
		if r.pod == nil {
			r.gone = uid
		}
		p.memory.remember(r)
		p.noteLook(r)
		p.grant(action)
	}
	return true, nil
}

func isLook(action lifecycle.Action) bool {
	return action.Kind == lifecycle.LookForPod || action.Kind == lifecycle.LookForConfigMap
}

// noteMissing notes since when the objects are missing that a plan looks for.
func (p *pass) noteMissing(actions []lifecycle.Action) {
	missing := map[types.UID]bool{}
	for _, action := range actions {
		if isLook(action) {
			missing[action.UID] = true
			p.pace.Missing.First(action.UID, p.now())
		}
	}
	p.pace.Missing.Keep(func(uid types.UID) bool { return missing[uid] })
}

// withoutEarlyLooks leaves out looks for objects that have just left the caches, as an
// event may still tell of their end, and returns when all of them are due.
func (p *pass) withoutEarlyLooks(actions []lifecycle.Action) (kept []lifecycle.Action, due time.Time) {
	if !slices.ContainsFunc(actions, isLook) { // As in most rounds: thousands are not copied.
		return actions, due
	}
	kept = make([]lifecycle.Action, 0, len(actions))
	for _, action := range actions {
		if at := p.pace.Missing.At()[action.UID].Add(pacing.LookDelay); isLook(action) && at.After(p.now()) {
			if at.After(due) {
				due = at
			}
			continue
		}
		kept = append(kept, action)
	}
	return kept, due
}

// noteLook notes when an object was looked at that may not be in the caches.
func (p *pass) noteLook(r result) {
	switch {
	case r.pod != nil:
		p.pace.Looks.Last(r.pod.UID, p.now())
	case r.configMap != nil:
		p.pace.Looks.Last(r.configMap.UID, p.now())
	}
}

// looksAgain are the looks that are due at objects that the caches don't show, and
// when the next one is.
func (p *pass) looksAgain() (due []lifecycle.Action, next time.Time) {
	for uid, at := range p.pace.Looks.At() {
		again := at.Add(pacing.LookInterval)
		action := lifecycle.Action{UID: uid}
		switch stray := p.memory.strays[uid].(type) {
		case *corev1.Pod:
			action.Kind, action.Name = lifecycle.LookForPod, stray.Name
		case *corev1.ConfigMap:
			action.Kind, action.Name = lifecycle.LookForConfigMap, stray.Name
		default:
			continue
		}
		if !again.After(p.now()) {
			due = append(due, action)
		} else if next.IsZero() || again.Before(next) {
			next = again
		}
	}
	return due, next
}
