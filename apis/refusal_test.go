// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package apis_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/testing/crd"
)

// TestObjectsAreChecked holds manifests against the schemas and rules of the CRDs,
// with the API server's own code. What kubectl makes of it is left to the end-to-end
// tests.
func TestObjectsAreChecked(t *testing.T) {
	const tooManyTasks = "spec.taskRoles: Invalid value: must have at most 10000 tasks in all, " +
		"which is the sum of taskNumber over spec.taskRoles: the status of more can't be stored in one object"
	tests := map[string]struct {
		manifest string
		want     []string // Empty if the object is taken.
	}{
		"as many tasks as there may be, in one role": {manifest: frameworkOf("max", frameworkv1.MaxTasks)},
		"as many tasks as there may be, in as many roles": {
			manifest: frameworkOf("max", slices.Concat(slices.Repeat([]int{39}, 255), []int{frameworkv1.MaxTasks - 255*39})...),
		},
		"no roles at all": {manifest: frameworkOf("none")},
		"one task more, in a role of its own": {
			manifest: frameworkOf("more", frameworkv1.MaxTasks, 1),
			want:     []string{tooManyTasks},
		},
		"the most tasks that 256 roles could have": {
			manifest: frameworkOf("most", slices.Repeat([]int{frameworkv1.MaxTasks}, 256)...),
			want:     []string{tooManyTasks},
		},

		"a Pod that is deleted by force at once": {manifest: frameworkWithGrace("0")},
		"a Pod that is never deleted by force":   {manifest: frameworkWithGrace("null")},
		"a negative time until a Pod is deleted by force": {
			manifest: frameworkWithGrace("-1"),
			want: []string{"spec.taskRoles[0].task.podGracefulDeletionTimeoutSec: Invalid value: -1: " +
				"spec.taskRoles[0].task.podGracefulDeletionTimeoutSec in body should be greater than or equal to 0"},
		},

		"a state of a Framework": {manifest: frameworkWithStatus("{state: AttemptRunning}")},
		"a state that no Framework has": {
			manifest: frameworkWithStatus("{state: Paused}"),
			want: []string{`status.state: Unsupported value: "Paused": supported values: "AttemptCreationPending", "AttemptCreationRequested", ` +
				`"AttemptPreparing", "AttemptRunning", "AttemptDeletionPending", "AttemptDeletionRequested", "AttemptDeleting", "AttemptCompleted", "Completed"`},
		},
		"tasks with fields that nobody knows": {manifest: frameworkWithTasks("[{index: 0, mood: good}]")},
		"tasks that are compressed":           {manifest: frameworkWithTasks("null")},
		"tasks that are no list": {
			manifest: frameworkWithTasks("{index: 0}"),
			want: []string{`status.attemptStatus.taskRoleStatuses[0].taskStatuses: Invalid value: "object": ` +
				`status.attemptStatus.taskRoleStatuses[0].taskStatuses in body must be of type array: "object"`},
		},
		"a task that is text": {
			manifest: frameworkWithTasks("[one]"),
			want: []string{`status.attemptStatus.taskRoleStatuses[0].taskStatuses[0]: Invalid value: "string": ` +
				`status.attemptStatus.taskRoleStatuses[0].taskStatuses[0] in body must be of type object: "string"`},
		},

		"a phase of a PodGroup": {manifest: podGroupWithStatus("{phase: Unknown}")},
		"a phase that no PodGroup has": {
			manifest: podGroupWithStatus("{phase: Paused}"),
			want:     []string{`status.phase: Unsupported value: "Paused": supported values: "Pending", "Running", "Unknown", "Completed"`},
		},
		"a phase that no PodGroup has, in a Framework": {
			manifest: frameworkWithStatus("{state: AttemptRunning, attemptStatus: {podGroup: {phase: Paused}}}"),
			want:     []string{`status.attemptStatus.podGroup.phase: Unsupported value: "Paused": supported values: "Pending", "Running", "Unknown", "Completed"`},
		},

		"a reason of a PodGroup's condition":         {manifest: podGroupWithReason("NotEnoughResources")},
		"a condition of a PodGroup without a reason": {manifest: podGroupWithReason("")},
		"a reason that no condition may have": {
			manifest: podGroupWithReason("not enough room"),
			want: []string{`status.conditions[0].reason: Invalid value: "not enough room": status.conditions[0].reason in body ` +
				"should match '^([A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?)?$'"},
		},

		// What a client can't read would keep it from reading any PodGroup at all.
		"a time of a PodGroup's condition": {
			manifest: podGroupWithStatus(`{conditions: [{type: Scheduled, status: "True", lastTransitionTime: "2026-01-01T00:00:00Z"}]}`),
		},
		"a time that no client can read": {
			manifest: podGroupWithStatus(`{conditions: [{type: Scheduled, status: "True", lastTransitionTime: "2026-01-01t00:00:00z"}]}`),
			want: []string{`status.conditions[0].lastTransitionTime: Invalid value: "2026-01-01t00:00:00z": status.conditions[0].lastTransitionTime in body ` +
				`should match '^\d{4}-\d{2}-\d{2}T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$'`},
		},
		"more members than a client can count": {
			manifest: "kind: PodGroup\nmetadata: {name: large}\nspec: {minMember: 1, minRoleMember: {w: 2147483648}}",
			want: []string{
				`<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.minRoleMember.w`,
				`spec.minRoleMember: Invalid value: every value of minRoleMember must be at most 2147483647`,
			},
		},

		"resources of members to come": {
			manifest: "kind: PodGroup\nmetadata: {name: spark}\nspec: {minMember: 1, minResources: {cpu: 13, memory: 48Gi, example.com/gpu: '2', pods: 1e1}}",
		},
		"resources that would take for ever to read": {
			manifest: podGroupAsking("1e2000000000"),
			want:     []string{`spec.minResources.cpu: Invalid value: "1e2000000000": spec.minResources.cpu in body should match '` + amounts + `'`},
		},
		"resources below nothing": {
			manifest: podGroupAsking("'-1'"),
			want:     []string{`spec.minResources.cpu: Invalid value: "-1": spec.minResources.cpu in body should match '` + amounts + `'`},
		},

		// API servers before 1.36 do not check the format of a number. kubectl's users are to be
		// told there, too.
		"more retries than a client can count": {
			manifest: "kind: Framework\nmetadata: {name: large}\nspec: {retryPolicy: {maxRetryCount: 2147483648}}",
			want: []string{
				`<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.retryPolicy.maxRetryCount`,
				`spec.retryPolicy.maxRetryCount: Invalid value: 2147483648: spec.retryPolicy.maxRetryCount in body should be less than or equal to 2147483647`,
			},
		},

		// Commands that nobody can obey are answered, not refused.
		"a Command": {manifest: "kind: Command\nmetadata: {name: c}\naction: AbortJob\nreason: r\nmessage: m\n" +
			"target: {apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: j, uid: u, controller: true}"},
		"a Command of an unknown action, for a queue": {manifest: "kind: Command\nmetadata: {name: c}\naction: Foo\ntarget: {apiVersion: v1, kind: Queue, name: q, uid: u}"},
		"a Command for nobody":                        {manifest: "kind: Command\nmetadata: {name: c}\naction: AbortJob"},
		"a Command for any Job of a name": {
			manifest: "kind: Command\nmetadata: {name: c}\naction: AbortJob\ntarget: {apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: j}",
			want:     []string{"target.uid: Required value"},
		},

		"a phase of a Job": {manifest: jobWithStatus("{state: {phase: Restarting}, runningDuration: 1m3s, pending: 0, conditions: [{status: Pending, lastTransitionTime: '2026-01-01T00:00:00Z'}]}")},
		"a phase that no Job has": {
			manifest: jobWithStatus("{state: {phase: Paused}}"),
			want: []string{`status.state.phase: Unsupported value: "Paused": supported values: "Pending", "Running", "Restarting", "Aborting", "Aborted", ` +
				`"Terminating", "Terminated", "Completing", "Completed", "Failed"`},
		},
		"a duration of a Job that no client can read": {
			manifest: jobWithStatus("{runningDuration: long}"),
			want: []string{`status.runningDuration: Invalid value: "long": status.runningDuration in body should match ` +
				`'^[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$'`},
		},

		"a gang of the longest name": {
			manifest: "kind: Framework\nmetadata: {name: " + strings.Repeat("x", 63) + "}\nspec: {gang: {}, taskRoles: [{name: w, taskNumber: 1}]}",
		},
	}
	validators := map[string]*crd.Validator{
		"Framework": crd.Of(t, "../manifests/crds/frameworkcontroller.microsoft.com_frameworks.yaml"),
		"Job":       crd.Of(t, "../manifests/volcano/batch.volcano.sh_jobs.yaml"),
		"Command":   crd.Of(t, "../manifests/volcano/bus.volcano.sh_commands.yaml"),
		"PodGroup":  crd.Of(t, "../manifests/crds/scheduling.lockstep.dev_podgroups.yaml"),
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			data, err := yaml.YAMLToJSON([]byte(tc.manifest))
			if err != nil {
				t.Fatal(err)
			}
			object := map[string]any{}
			if err := utiljson.Unmarshal(data, &object); err != nil {
				t.Fatal(err)
			}
			got := crd.Texts(validators[fmt.Sprint(object["kind"])].Create(t, object))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("unexpected problems (-want,+got):\n%s", diff)
			}
		})
	}
}

// frameworkOf is the manifest of a Framework with a role for each number of tasks.
func frameworkOf(name string, tasks ...int) string {
	roles := make([]string, len(tasks))
	for i, number := range tasks {
		roles[i] = fmt.Sprintf("{name: role%d, taskNumber: %d}", i, number)
	}
	return fmt.Sprintf("kind: Framework\nmetadata: {name: %s}\nspec: {taskRoles: [%s]}", name, strings.Join(roles, ", "))
}

func frameworkWithGrace(seconds string) string {
	return "kind: Framework\nmetadata: {name: grace}\nspec: {taskRoles: [{name: w, task: {podGracefulDeletionTimeoutSec: " + seconds + "}}]}"
}

func frameworkWithStatus(status string) string {
	return "kind: Framework\nmetadata: {name: status}\nspec: {}\nstatus: " + status
}

func frameworkWithTasks(tasks string) string {
	return frameworkWithStatus("{state: AttemptRunning, attemptStatus: {taskRoleStatuses: [{name: w, taskStatuses: " + tasks + "}]}}")
}

func podGroupWithStatus(status string) string {
	counts := "members: 0, scheduled: 0, running: 0, succeeded: 0, failed: 0, "
	return "kind: PodGroup\nmetadata: {name: status}\nspec: {minMember: 1}\nstatus: {" + counts + strings.TrimPrefix(status, "{")
}

func jobWithStatus(status string) string {
	return "kind: Job\nmetadata: {name: status}\nspec: {tasks: [{replicas: 1, template: {spec: {containers: [{name: c}]}}}]}\nstatus: " + status
}

// amounts is the pattern of minResources.
const amounts = `^([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$`

// podGroupAsking is a PodGroup that asks for so much CPU for its members to come.
func podGroupAsking(cpu string) string {
	return "kind: PodGroup\nmetadata: {name: spark}\nspec: {minMember: 1, minResources: {cpu: " + cpu + "}}"
}

func podGroupWithReason(reason string) string {
	return podGroupWithStatus("{conditions: [{type: Unschedulable, status: 'True', reason: '" + reason + "'}]}")
}
