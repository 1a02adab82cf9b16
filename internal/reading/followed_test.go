// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
	"github.com/lockstep-k8s/lockstep/internal/view"
)

// TestAFollowedFrameworkIsShownAsOneThatIsReadOnce: what is left out of Pods is missed by nobody.
func TestAFollowedFrameworkIsShownAsOneThatIsReadOnce(t *testing.T) {
	fw := &frameworkv1.Framework{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "training", UID: "of-training"}}
	fw.Spec.TaskRoles = []frameworkv1.TaskRoleSpec{{Name: "worker", TaskNumber: 3}}
	role := &frameworkv1.TaskRoleStatus{Name: "worker"}
	var pods []corev1.Pod
	for i, status := range []corev1.PodStatus{
		{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "no room"}}},
		{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{Name: "main", Image: "x", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "not found"}}}}},
		{Phase: corev1.PodPending, InitContainerStatuses: []corev1.ContainerStatus{{Name: "init", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}},
	} {
		pod := corev1.Pod{Status: status}
		pod.Namespace, pod.Name, pod.UID = "a", string(rune('p'+i)), types.UID(rune('0'+i))
		pod.Annotations = map[string]string{frameworkv1.KeyFrameworkUID: "of-training", frameworkv1.KeyTaskRoleName: "worker", "notes": "long"}
		pod.Spec.NodeName, pod.Spec.Containers = "node-0", []corev1.Container{{Name: "main"}}
		pods = append(pods, pod)
		task := &frameworkv1.TaskStatus{Index: int32(i), State: frameworkv1.TaskAttemptPreparing}
		task.AttemptStatus.PodUID = &pods[i].UID
		role.TaskStatuses = append(role.TaskStatuses, task)
	}
	fw.Status = &frameworkv1.FrameworkStatus{State: frameworkv1.FrameworkAttemptPreparing}
	fw.Status.AttemptStatus.TaskRoleStatuses = []*frameworkv1.TaskRoleStatus{role}

	var small []corev1.Pod
	for i := range pods {
		object, err := reduced(pods[i].DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		pod := object.(*corev1.Pod)
		if len(pod.Spec.Containers) > 0 || pod.Annotations["notes"] != "" {
			t.Errorf("all of a Pod is kept: %+v", pod)
		}
		small = append(small, *pod)
	}
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	want, got := view.OfFramework(view.Objects{Framework: fw, Pods: pods}, now), view.OfFramework(view.Objects{Framework: fw, Pods: small}, now)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-read once +followed)\n%s", diff)
	}
	if reason := got.Attempt.Roles[0].Tasks[1].Reason; reason != "ImagePullBackOff" {
		t.Errorf("the second task waits for %q", reason)
	}
}

// TestWhatCanBeReadAgainIsNotSaidToBeUnread: an API server that is away for a moment leaves no trace.
func TestWhatCanBeReadAgainIsNotSaidToBeUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apiserver.New(t)
		apiserver.Add(api, &frameworkv1.Framework{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "training"}})
		reader, err := New(api.Config())
		if err != nil {
			t.Fatal(err)
		}
		api.SetHook(func(r *apiserver.Request) apiserver.Fault {
			if r.Resource == "pods" {
				return apiserver.Fault{Refusal: apierrors.NewServiceUnavailable("away")}
			}
			return apiserver.Fault{}
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		followed := reader.Follow(ctx, "a", "training")
		synctest.Wait()
		if unread := followed.Objects().Unread; len(unread) != 1 || !strings.Contains(unread[0], "Pods can't be shown") {
			t.Errorf("while Pods can't be read it says %q", unread)
		}
		api.SetHook(nil)
		time.Sleep(time.Minute) // Informers try again by then.
		synctest.Wait()
		if unread := followed.Objects().Unread; len(unread) > 0 {
			t.Errorf("when Pods are read it says %q", unread)
		}
		cancel()
		synctest.Wait()
	})
}

// TestAFrameworkIsNotSaidToBeGoneBeforeItWasLookedFor: what is not there yet, what may not be followed, and what is gone
// are three things.
func TestAFrameworkIsNotSaidToBeGoneBeforeItWasLookedFor(t *testing.T) {
	for name, c := range map[string]struct {
		refused string
		begun   bool
		unread  string
	}{
		"it is gone":                 {begun: true},
		"it may not be followed":     {refused: "frameworks", unread: "Frameworks can't be shown: you may not read them."},
		"its Pods may not be listed": {refused: "pods", begun: true, unread: "Pods can't be shown: you may not read them."},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := apiserver.New(t)
				reader, err := New(api.Config())
				if err != nil {
					t.Fatal(err)
				}
				api.SetHook(func(r *apiserver.Request) apiserver.Fault {
					if r.Resource == c.refused {
						return apiserver.Fault{Refusal: apierrors.NewForbidden(schema.GroupResource{Resource: r.Resource}, "", errors.New("no"))}
					}
					return apiserver.Fault{}
				})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				followed := reader.Follow(ctx, "a", "training")
				time.Sleep(time.Second)
				synctest.Wait()
				select {
				case <-followed.Changed():
				default:
					t.Error("nothing tells that it is known now")
				}
				if followed.Begun() != c.begun || strings.Join(followed.Objects().Unread, "") != c.unread {
					t.Errorf("begun: %t, unread: %q; want %t, %q", followed.Begun(), followed.Objects().Unread, c.begun, c.unread)
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}
