//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"encoding/json"
	"strings"
	"testing"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// TestLogsOfJSONAreJSON: with --logging-format=json each line is an object, and those about a
// Framework name it by fields that a query can ask for.
func TestLogsOfJSONAreJSON(t *testing.T) {
	controller := cluster.StartController(t, localenv.ControllerOptions{Args: []string{"--logging-format=json"}})
	namespace := cluster.Namespace(t)
	fw := jobs.MakeFramework("structured").Role("worker", 2, jobs.RunForever()).Obj()
	cluster.CreateFramework(t, namespace, fw)
	cluster.WaitFrameworkState(t, namespace, fw.Name, frameworkv1.FrameworkAttemptRunning)
	for index := range int32(2) {
		cluster.EndPod(t, namespace, frameworkv1.PodName(fw.Name, "worker", index), 0)
	}
	cluster.WaitFrameworkState(t, namespace, fw.Name, frameworkv1.FrameworkCompleted)
	controller.WaitLog(t, `"reason":"Completed"`)
	if err := controller.Terminate(t); err != nil {
		t.Fatal(err)
	}
	var told []string
	for line := range strings.Lines(controller.Log(t)) {
		var entry struct {
			Message   string            `json:"msg"`
			Reason    string            `json:"reason"`
			Framework map[string]string `json:"framework"`
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("a line is no JSON (%v): %s", err, line)
		}
		if entry.Framework["namespace"] == namespace && entry.Framework["name"] == fw.Name {
			told = append(told, entry.Reason)
		}
	}
	if got := strings.Join(told, " "); got != "AttemptStarted AttemptRunning AttemptCompleted Completed" {
		t.Errorf("the lines about the Framework are %s, want one for each turn", got)
	}
}
