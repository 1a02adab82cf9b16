// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// TestAListIsAListHoweverManyAreFound, so that a program can read it; one that is asked for by its name is not in a list.
func TestAListIsAListHoweverManyAreFound(t *testing.T) {
	const kinds = "jsonpath={.kind} {.items[*].metadata.name}"
	u := someone(t)
	lists := func(want string) {
		t.Helper()
		if said := u.types("get", "-o", kinds); said.out != want {
			t.Errorf("%q, want %q %s", said.out, want, said.err)
		}
	}
	lists("List ")
	u.has(frameworkv1.FrameworkAttemptRunning, 1)
	lists("List train")
	other := failedTwice()
	other.Namespace, other.Name, other.UID = "a", "other", "u-2"
	apiserver.Add(u.api, other)
	lists("List other train")
	for args, want := range map[string]string{"train": "Framework ", "train other": "List train other"} {
		if said := u.types(append([]string{"get", "-o", kinds}, strings.Fields(args)...)...); said.out != want {
			t.Errorf("%s: %q, want %q %s", args, said.out, want, said.err)
		}
	}
}

// TestATerminalIsNotSteeredByWhatOthersHaveWritten, whatever the output; a program gets it as it is.
func TestATerminalIsNotSteeredByWhatOthersHaveWritten(t *testing.T) {
	u := someone(t)
	fw := failedTwice()
	fw.Namespace, fw.Spec.Description = "a", "one\ntwo \x1b[2J\u009b2J\u202e"
	apiserver.Add(u.api, fw)
	for _, output := range []string{"jsonpath={.spec.description}", "go-template={{.spec.description}}", "json"} {
		u.terminal = false
		raw := u.types("get", "train", "-o", output)
		u.terminal = true
		shown := u.types("get", "train", "-o", output)
		if strings.ContainsAny(shown.out, "\x1b\u009b\u202e") || !strings.Contains(shown.out, "two") {
			t.Errorf("%s shows %q %s", output, shown.out, shown.err)
		}
		if output != "json" && raw.out != fw.Spec.Description {
			t.Errorf("%s hands %q to a program", output, raw.out)
		}
	}
}

// TestTabsOfATemplateStayTabsOnATerminal, as the user wrote them.
func TestTabsOfATemplateStayTabsOnATerminal(t *testing.T) {
	u := someone(t)
	u.terminal = true
	u.has(frameworkv1.FrameworkAttemptRunning, 1)
	for _, output := range []string{`jsonpath={.metadata.namespace}{"\t"}{.metadata.name}{"\n"}`, `go-template={{.metadata.namespace}}{{"\t"}}{{.metadata.name}}{{"\n"}}`} {
		if said := u.types("get", "train", "-o", output); said.out != "a\ttrain\n" {
			t.Errorf("%s shows %q %s", output, said.out, said.err)
		}
	}
}

// TestJobsAreSortedAndFailedOnesSayWhy, in the table.
func TestJobsAreSortedAndFailedOnesSayWhy(t *testing.T) {
	u := someone(t)
	u.has(frameworkv1.FrameworkAttemptRunning, 1)
	failed := &frameworkv1.Framework{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "zz"}, Status: &frameworkv1.FrameworkStatus{State: frameworkv1.FrameworkCompleted}}
	failed.Status.AttemptStatus.CompletionStatus = &frameworkv1.FrameworkAttemptCompletionStatus{
		CompletionStatus: frameworkv1.CompletionStatus{Code: 1, Diagnostics: `Pod failed: PodPattern unmatched: {"containers":[{"name":"main","message":"CUDA out of memory","code":1}]}`},
		Trigger:          &frameworkv1.CompletionPolicyTriggerStatus{TaskRoleName: "worker"},
	}
	apiserver.Add(u.api, failed)
	said := u.types("get", "--sort-by=state")
	u.sees(said, 0, "worker/0 exited with 1: CUDA out of memory")
	if strings.Index(said.out, "zz ") > strings.Index(said.out, "train ") {
		t.Errorf("what failed is not first:\n%s", said.out)
	}
	u.sees(u.types("get", "--sort-by=colour"), 2, `unknown order "colour"`, "orders are name, age")
}

// TestTheVersionIsThatOfThisProgramAndOfTheCluster, each with that of Kubernetes or with its image.
func TestTheVersionIsThatOfThisProgramAndOfTheCluster(t *testing.T) {
	u := someone(t)
	said := u.types("version", "--client")
	if !regexp.MustCompile(`^kubectl-lockstep version v\S+ \(Kubernetes v1\.\d+\.\d+\)\n$`).MatchString(said.out) {
		t.Errorf("it prints %q", said.out)
	}
	u.answers = func(r *http.Request) *http.Response {
		if r.URL.Path != "/apis/apps/v1/deployments" || r.URL.Query().Get("labelSelector") != "app.kubernetes.io/part-of=lockstep" {
			t.Errorf("it asks for %s", r.URL)
		}
		return answered(http.StatusOK, "application/json", `{"kind":"DeploymentList","apiVersion":"apps/v1","items":[{"metadata":{"name":"lockstep-controller"},
			"spec":{"template":{"spec":{"containers":[{"name":"controller","image":"registry.example.com/controller:v1"}]}}}}]}`)
	}
	u.sees(u.types("version"), 0, "lockstep-controller image registry.example.com/controller:v1")
}

// TestAWrongOutputIsRefusedBeforeTheAPIServerIsAsked.
func TestAWrongOutputIsRefusedBeforeTheAPIServerIsAsked(t *testing.T) {
	u := someone(t)
	u.answers = func(r *http.Request) *http.Response {
		t.Errorf("it was asked for %s", r.URL.Path)
		return nil
	}
	u.sees(u.types("get", "-o", "foo"), 2, "-o takes wide")
	u.sees(u.types("fly"), 2, "see kubectl lockstep --help")
}
