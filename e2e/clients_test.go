//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// TestPlainHTTPClient does with the paths and bodies of FrameworkController's
// manual what that documents, as a client without any library of ours, and looks
// at the codes.
func TestPlainHTTPClient(t *testing.T) {
	t.Parallel()
	namespace := cluster.Namespace(t)
	client := cluster.Lockstep.FrameworkcontrollerV1().RESTClient()
	const api = "/apis/frameworkcontroller.microsoft.com/v1"
	all := api + "/namespaces/" + namespace + "/frameworks"
	one := all + "/plain"
	object, err := json.Marshal(&frameworkv1.Framework{
		TypeMeta:   metav1.TypeMeta{APIVersion: "frameworkcontroller.microsoft.com/v1", Kind: "Framework"},
		ObjectMeta: metav1.ObjectMeta{Name: "plain"},
		Spec:       jobs.MakeFramework("plain").Role("a", 1, jobs.RunForever()).Obj().Spec,
	})
	if err != nil {
		t.Fatal(err)
	}
	const start = `[{"op": "replace", "path": "/spec/executionType", "value": "Start"}]`
	for _, tc := range []struct {
		name, verb, path, body string
		want                   int
	}{
		{"create", http.MethodPost, all, string(object), http.StatusCreated},
		{"create one that is there", http.MethodPost, all, string(object), http.StatusConflict},
		{"get", http.MethodGet, one, "", http.StatusOK},
		{"get one that is not there", http.MethodGet, all + "/none", "", http.StatusNotFound},
		{"list of a namespace", http.MethodGet, all, "", http.StatusOK},
		{"list of all namespaces", http.MethodGet, api + "/frameworks", "", http.StatusOK},
		{"start", http.MethodPatch, one, start, http.StatusOK},
		{"start one that is not there", http.MethodPatch, all + "/none", start, http.StatusNotFound},
		{"rescale with a wrong index", http.MethodPatch, one,
			`[{"op": "test", "path": "/spec/taskRoles/0/name", "value": "b"}, {"op": "replace", "path": "/spec/taskRoles/0/taskNumber", "value": 2}]`,
			http.StatusUnprocessableEntity},
		{"delete", http.MethodDelete, one, `{"propagationPolicy": "Foreground"}`, http.StatusOK},
	} {
		request := client.Verb(tc.verb).RequestURI(tc.path)
		if tc.body != "" {
			request = request.Body([]byte(tc.body)).SetHeader("Content-Type", "application/json")
		}
		if tc.verb == http.MethodPatch {
			request = request.SetHeader("Content-Type", string(types.JSONPatchType))
		}
		var got int
		if answer := request.Do(t.Context()).StatusCode(&got); got != tc.want {
			t.Errorf("%s: %d (%v), want %d", tc.name, got, answer.Error(), tc.want)
		}
	}
}

// TestWatch watches Frameworks by the manual's paths and by the parameter that has
// taken their place.
func TestWatch(t *testing.T) {
	t.Parallel()
	namespace := cluster.Namespace(t)
	cluster.CreateFramework(t, namespace, jobs.MakeFramework("watched").Execution(frameworkv1.ExecutionCreate).Role("a", 1, jobs.RunForever()).Obj())
	const api = "/apis/frameworkcontroller.microsoft.com/v1"
	for _, path := range []string{
		api + "/watch/namespaces/" + namespace + "/frameworks/watched",
		api + "/watch/namespaces/" + namespace + "/frameworks",
		api + "/watch/frameworks",
		api + "/namespaces/" + namespace + "/frameworks?watch=true",
	} {
		stream, err := cluster.Lockstep.FrameworkcontrollerV1().RESTClient().Get().RequestURI(path).Stream(t.Context())
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		// Whatever is there is told first.
		line, err := bufio.NewReader(stream).ReadString('\n')
		stream.Close()
		if err != nil || !strings.Contains(line, `"type":"ADDED"`) || !strings.Contains(line, `"kind":"Framework"`) {
			t.Errorf("%s: the first event is %.200q (%v)", path, line, err)
		}
	}
}
