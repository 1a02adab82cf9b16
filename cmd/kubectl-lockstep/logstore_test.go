// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// failedTwice is a Framework in its second attempt; the status tells of the first.
func failedTwice() *frameworkv1.Framework {
	at := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	end := metav1.NewTime(at.Add(time.Hour))
	fw := &frameworkv1.Framework{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "train", UID: "u-1"}}
	fw.Spec.TaskRoles = []frameworkv1.TaskRoleSpec{{Name: "worker", TaskNumber: 2}, {Name: "ps", TaskNumber: 1}}
	fw.Status = &frameworkv1.FrameworkStatus{History: []frameworkv1.AttemptRecord{{ID: 0, StartTime: metav1.NewTime(at), CompletionTime: &end}}}
	fw.Status.AttemptStatus.ID = 1
	return fw
}

// TestALogStoreIsAskedForEachTaskOfAnAttemptThatIsOver, by its name and its times, with the token of the environment.
func TestALogStoreIsAskedForEachTaskOfAnAttemptThatIsOver(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.URL.String()+" "+r.Header.Get("Authorization"))
		mu.Unlock()
		switch {
		case strings.Contains(r.URL.Path, "ps-0"):
			http.Error(w, "nothing", http.StatusNotFound)
		default:
			_, _ = w.Write([]byte(`{"_msg": "hello of ` + r.URL.Path + `"}` + "\n"))
		}
	}))
	defer server.Close()
	t.Setenv(tokenVariable, "secret")
	store, err := newLogStore(server.URL+"/{namespace}/{pod}?attempt={attempt}&from={start}&to={end}", "_msg")
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := storedTasks(failedTwice(), 0, chosen{index: -1})
	if err != nil {
		t.Fatal(err)
	}
	var out, notes bytes.Buffer
	o := &logOptions{session: &session{out: &out, errOut: &notes}}
	if err := o.showStored(t.Context(), store, tasks); err != nil {
		t.Fatal(err)
	}
	slices.Sort(asked)
	const times = "?attempt=0&from=2026-11-25T12%3A00%3A00Z&to=2026-11-25T13%3A00%3A00Z Bearer secret"
	if want := []string{"/team/train-ps-0" + times, "/team/train-worker-0" + times, "/team/train-worker-1" + times}; !slices.Equal(asked, want) {
		t.Errorf("the store was asked for %q", asked)
	}
	for _, want := range []string{"[worker/0] hello of /team/train-worker-0\n", "[worker/1] hello of /team/train-worker-1\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in %q", want, out.String())
		}
	}
	if !strings.Contains(notes.String(), "The log of ps/0 can't be shown: the log store answers 404") {
		t.Errorf("notes: %q", notes.String())
	}
	one, err := storedTasks(failedTwice(), 0, chosen{role: "worker", index: 1})
	if err != nil || len(one) != 1 || one[0].index != 1 {
		t.Errorf("one task is %+v, %v", one, err)
	}
	if _, err := storedTasks(failedTwice(), 7, chosen{index: -1}); err == nil {
		t.Error("an attempt of which nothing is known has logs")
	}
}

func TestALogStoreThatIsNoneIsRefused(t *testing.T) {
	for template, want := range map[string]string{
		"logs.example.com/{pod}":         "is not the URL of a log store",
		"ftp://logs.example.com/{pod}":   "is not the URL of a log store",
		"https://logs.example.com/{job}": "--log-store has no placeholder {job}",
	} {
		if _, err := newLogStore(template, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", template, err)
		}
	}
	if store, err := newLogStore("", ""); store != nil || err != nil {
		t.Errorf("%v, %v", store, err)
	}
}
