//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package users

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

func TestAPersonFollowsAJobFromItsStartOverAFailureToItsEnd(t *testing.T) {
	v := opensPage(t)
	v.sees("No jobs are here")
	v.creates(jobs.MakeFramework("training").Gang().Retry(false, 2).Execution(frameworkv1.ExecutionCreate).
		Role("chief", 1, jobs.RunForever()).
		Role("worker", 3, jobs.RunForever().Completes(1, 3)))
	// Nobody reloads: the list is live.
	v.sees("training", "NotStarted")
	v.clicks("table tbody a")
	v.sees("training", "NotStarted", "All tasks are placed together, or none.")
	start(t, v.namespace, "training")
	v.sees("Running", "4 of 4 tasks running", "chief", "worker")
	v.finds(".lane.tasks rect.runs")
	v.sees("on ", " node", "Place")
	// A worker exits with 7: the attempt fails, and is retried.
	cluster.EndPod(t, v.namespace, "training-worker-0", 7)
	v.sees("attempt 1", "Failed", "History", "4 of 4 tasks running")
	v.finds(".lane.attempt rect.bad")
	framework, err := cluster.Lockstep.FrameworkcontrollerV1().Frameworks(v.namespace).Get(t.Context(), "training", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// It is retried at once, or a second later if it was over within one.
	v.sees("worker/", fmt.Sprintf("retried after %ds, counts", framework.Status.History[0].Retry.DelaySec))
	// In the second attempt they succeed.
	for i := range 3 {
		cluster.EndPod(t, v.namespace, fmt.Sprintf("training-worker-%d", i), 0)
	}
	v.sees("Succeeded", "Attempt ended with code")
	v.finds(".lane.attempt rect.good")
	if words := evaluates[string](v, `document.querySelector(".lane.attempt svg").getAttribute("aria-label")`); !strings.Contains(words, "attempt 0: waited for ") || !strings.Contains(words, "Failed") {
		t.Errorf("a screen reader says %q", words)
	}
}

func start(t *testing.T, namespace, name string) {
	t.Helper()
	if _, err := cluster.Lockstep.FrameworkcontrollerV1().Frameworks(namespace).Patch(t.Context(), name, types.MergePatchType,
		[]byte(`{"spec":{"executionType":"Start"}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestAGangThatWaitsSaysWhyOnItsPageAndInTheLine(t *testing.T) {
	v := opensPage(t)
	v.creates(jobs.MakeFramework("wide").Gang().Role("worker", 7, jobs.RunForever().CPU("7")))
	v.opens("/frameworks/" + v.namespace + "/wide")
	v.sees("Waits for", "why?")
	v.finds(".lane rect.waits")
	v.clicks("#why")
	v.sees("NotEnoughResources", "cpu", "What to do")
	v.opens("/queue")
	v.sees("wide", "7")
}

func TestTheMapOfNodesSaysWhoHoldsWhat(t *testing.T) {
	v := opensPage(t)
	v.creates(jobs.MakeFramework("holder").Gang().Role("worker", 2, jobs.RunForever().CPU("1")))
	v.opens("/nodes?text=" + v.namespace)
	v.sees(v.namespace+"/holder", "cpu")
	v.finds(".node rect[class^=hue]")
	v.clicks(".holders a")
	v.sees("holder", "Timeline")
}

// TestPagesFitOnAPhone: no page is wider than the screen, and whether it is live is to be seen.
func TestPagesFitOnAPhone(t *testing.T) {
	v := opensPage(t)
	v.creates(jobs.MakeFramework("narrow").Gang().Role("worker", 2, jobs.RunForever().CPU("1")))
	v.does(func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: 390, Height: 844, DeviceScaleFactor: 1, Mobile: true})
		return chromedp.Void{}, err
	})
	for _, path := range []string{"/?namespace=" + v.namespace, "/frameworks/" + v.namespace + "/narrow", "/queue", "/nodes", "/nonsense"} {
		v.opens(path)
		if wide := evaluates[int](v, `Math.max(document.documentElement.scrollWidth, Math.ceil(document.querySelector("#live").getBoundingClientRect().right))`); wide > 390 {
			t.Errorf("%s is %d pixels wide", path, wide)
		}
	}
}

func TestThePageIsForTheOneWhoHasItsAddress(t *testing.T) {
	v := opensPage(t)
	for what, ask := range map[string]struct {
		method, address string
		change          func(*http.Request)
		status          int
	}{
		"no token":            {"GET", v.origin + "/", nil, http.StatusForbidden},
		"a wrong token":       {"GET", v.origin + "/?token=guess", nil, http.StatusForbidden},
		"a stream, no token":  {"GET", v.origin + "/", func(r *http.Request) { r.Header.Set("Accept", "text/event-stream") }, http.StatusForbidden},
		"somebody's name":     {"GET", v.address, func(r *http.Request) { r.Host = "evil.example:80" }, http.StatusMisdirectedRequest},
		"a form":              {"POST", v.address, nil, http.StatusMethodNotAllowed},
		"the address printed": {"GET", v.address, nil, http.StatusSeeOther},
	} {
		t.Run(what, func(t *testing.T) {
			response := asks(t, ask.method, ask.address, ask.change)
			if response.StatusCode != ask.status {
				t.Errorf("the answer is %s, want %d", response.Status, ask.status)
			}
		})
	}
	if address := evaluates[string](v, "location.href"); strings.Contains(address, "token") {
		t.Errorf("the token stays in the address: %s", address)
	}
	if cookies := evaluates[string](v, "document.cookie"); cookies != "" {
		t.Errorf("a script reads %s", cookies)
	}
}
