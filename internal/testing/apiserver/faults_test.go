// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// onCreate has creations meet a fault, the first n of them.
func onCreate(n int, fault apiserver.Fault) apiserver.Hook {
	return func(r *apiserver.Request) apiserver.Fault {
		if r.Verb != apiserver.Create || n == 0 {
			return apiserver.Fault{}
		}
		n--
		return fault
	}
}

func podClient(t *testing.T, process *apiserver.Process) corev1client.PodInterface {
	t.Helper()
	return kubeClient(t, process.Config()).CoreV1().Pods(namespace)
}

func create(ctx context.Context, pods corev1client.PodInterface, name string) error {
	_, err := pods.Create(ctx, newPod(name), metav1.CreateOptions{})
	return err
}

func exists(server *apiserver.Server, name string) bool {
	return apiserver.Find[corev1.Pod](server, namespace, name) != nil
}

func TestRefusalsReachTheClientAsTheyAre(t *testing.T) {
	for name, tc := range map[string]struct {
		refusal error
		is      func(error) bool
		message string
	}{
		"quota":           {apiserver.QuotaExceeded("a", "team"), apierrors.IsForbidden, `pods "a" is forbidden: exceeded quota: team, requested: pods=1`},
		"webhook":         {apiserver.WebhookDenied("policy.dev", "no root"), apierrors.IsBadRequest, `admission webhook "policy.dev" denied the request: no root`},
		"webhook's fault": {apiserver.WebhookFailed("policy.dev"), apierrors.IsInternalError, `failed calling webhook "policy.dev"`},
		"unavailable":     {apiserver.Unavailable(), apierrors.IsServiceUnavailable, "etcdserver: no leader"},
		"invalid": {apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "a", nil),
			apierrors.IsInvalid, `Pod "a" is invalid`},
		"connection": {apiserver.ConnectionLost(), func(err error) bool { return errors.Is(err, syscall.ECONNRESET) }, "connection reset by peer"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, server *apiserver.Server) {
				server.SetHook(onCreate(1, apiserver.Fault{Refusal: tc.refusal}))
				err := create(t.Context(), podClient(t, server.Process("controller")), "a")
				if err == nil || !tc.is(err) || !strings.Contains(err.Error(), tc.message) {
					t.Errorf("the error is %v, want one with %q", err, tc.message)
				}
				if exists(server, "a") {
					t.Error("the Pod was created all the same")
				}
			})
		})
	}
}

func TestAClientWaitsAsLongAsItIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiserver.Server) {
		server.SetHook(onCreate(2, apiserver.Fault{Refusal: apiserver.TooManyRequests(7)}))
		begun := time.Now()
		if err := create(t.Context(), podClient(t, server.Process("controller")), "a"); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took != 14*time.Second {
			t.Errorf("it took %v, want two times 7s", took)
		}
		var codes []int
		for _, entry := range server.Writes() {
			codes = append(codes, entry.Code)
		}
		if len(codes) != 3 || codes[0] != 429 || codes[1] != 429 || codes[2] != 201 {
			t.Errorf("the journal has answers %v", codes)
		}
	})
}

func TestWhoGivesUpBeforeARequestArrivesGetsNothingDone(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiserver.Server) {
		server.SetHook(onCreate(1, apiserver.Fault{Before: 30 * time.Second}))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		begun := time.Now()
		if err := create(ctx, podClient(t, server.Process("controller")), "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
		if took := time.Since(begun); took != 10*time.Second {
			t.Errorf("it took %v", took)
		}
		time.Sleep(time.Minute)
		if exists(server, "a") {
			t.Error("the Pod was created")
		}
	})
}

func TestALateRequestIsCarriedOutAfterTheClientHasGivenUp(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiserver.Server) {
		server.SetHook(onCreate(1, apiserver.Fault{Before: 30 * time.Second, Late: true}))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := create(ctx, podClient(t, server.Process("controller")), "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
		time.Sleep(19 * time.Second)
		if exists(server, "a") {
			t.Error("the Pod was created too early")
		}
		time.Sleep(2 * time.Second)
		if !exists(server, "a") {
			t.Error("the Pod was not created")
		}
	})
}

func TestALostAnswerIsOfARequestThatWasCarriedOut(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiserver.Server) {
		server.SetHook(onCreate(1, apiserver.Fault{LoseAnswer: true}))
		pods := podClient(t, server.Process("controller"))
		if err := create(t.Context(), pods, "a"); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the error is %v", err)
		}
		if err := create(t.Context(), pods, "a"); !apierrors.IsAlreadyExists(err) {
			t.Errorf("the second time the error is %v", err)
		}
		if entry := server.Writes()[0]; entry.Answered || entry.Code != 201 {
			t.Errorf("the journal has %v", entry)
		}
	})
}

func TestAnAnswerThatTakesLongComesAfterTheRequestWasCarriedOut(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiserver.Server) {
		server.SetHook(onCreate(1, apiserver.Fault{After: 30 * time.Second}))
		var err error
		answered := false
		go func() {
			err = create(t.Context(), podClient(t, server.Process("controller")), "a")
			answered = true
		}()
		time.Sleep(29 * time.Second)
		if !exists(server, "a") || answered {
			t.Error("either nothing was done, or the answer came at once")
		}
		time.Sleep(2 * time.Second)
		if err != nil || !answered {
			t.Errorf("there is no answer but %v", err)
		}
	})
}

func TestTheDeadDoNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiserver.Server) {
		process := server.Process("controller")
		pods := podClient(t, process)
		f := follow(t, podInformer(t, process))
		process.KillAfter(2)
		for _, name := range []string{"a", "b"} {
			if err := create(t.Context(), pods, name); err != nil {
				t.Fatal(err)
			}
		}
		f.saw("added a", "added b")
		if process.Dead() {
			t.Error("it died too early")
		}
		if err := create(t.Context(), pods, "c"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("the error is %v", err)
		}
		if _, err := pods.List(t.Context(), metav1.ListOptions{}); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("of a list the error is %v", err)
		}
		if exists(server, "c") || !process.Dead() {
			t.Error("it lives")
		}
		apiserver.Add(server, newPod("d"))
		f.saw()
		if err := create(t.Context(), podClient(t, server.Process("successor")), "c"); err != nil {
			t.Errorf("its successor has the error %v", err)
		}
	})
}

func TestADeathEndsRequestsThatAreUnderWay(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiserver.Server) {
		process := server.Process("controller")
		server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			return apiserver.Fault{Before: time.Minute, Late: r.Name == "late"}
		})
		pods := podClient(t, process)
		errs := make(chan error, 2)
		for _, name := range []string{"late", "lost"} {
			go func() { errs <- create(t.Context(), pods, name) }()
		}
		synctest.Wait()
		begun := time.Now()
		process.Kill()
		for range 2 {
			if err := <-errs; !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the error is %v", err)
			}
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("they ended %v after the death", took)
		}
		time.Sleep(2 * time.Minute)
		if !exists(server, "late") || exists(server, "lost") {
			t.Error("want the late one to be carried out, and nothing else")
		}
	})
}

func TestHooksSeeWhatIsSent(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiserver.Server) {
		var seen []string
		server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			text := r.String()
			if pod, ok := r.Object.(*corev1.Pod); ok {
				text += " " + pod.Labels["gang"]
			}
			seen = append(seen, text)
			return apiserver.Fault{}
		})
		pods := podClient(t, server.Process("controller"))
		if err := create(t.Context(), pods, "x"); err != nil {
			t.Fatal(err)
		}
		pod, err := pods.Get(t.Context(), "x", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		want := "controller: create pods ns/x a\ncontroller: get pods ns/x\ncontroller: update pods/status ns/x a"
		if got := strings.Join(seen, "\n"); got != want {
			t.Errorf("the hook saw\n%s\nwant\n%s", got, want)
		}
	})
}

func TestTheServersClockIsItsOwn(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiserver.Server) {
		server.SetSkew(-time.Hour)
		pods := podClient(t, server.Process("controller"))
		if err := create(t.Context(), pods, "a"); err != nil {
			t.Fatal(err)
		}
		if age := time.Since(apiserver.Find[corev1.Pod](server, namespace, "a").CreationTimestamp.Time); age != time.Hour {
			t.Errorf("a new Pod is %v old", age)
		}
	})
}
