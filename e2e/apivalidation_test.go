//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

// manifestOf is the manifest of a Framework or a PodGroup, with its spec in YAML
// flow style.
func manifestOf(kind, name, spec string) string {
	apiVersion := "frameworkcontroller.microsoft.com/v1"
	if kind == "PodGroup" {
		apiVersion = "scheduling.lockstep.dev/v1alpha1"
	}
	return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: %q}\nspec: %s\n", apiVersion, kind, name, spec)
}

// problemsIn are the problems that kubectl lists for an invalid object, sorted,
// because the API server finds them in no order, and without the remark that it
// adds when it left CEL rules out.
func problemsIn(output string) []string {
	_, list, ok := strings.Cut(output, " is invalid: ")
	if !ok {
		return []string{strings.TrimSpace(output)}
	}
	var problems []string
	for line := range strings.Lines(list) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "* ")
		if line != "" && !strings.Contains(line, "some validation rules were not checked") {
			problems = append(problems, line)
		}
	}
	slices.Sort(problems)
	return problems
}

// wrongValue is the value that a problem quotes.
var wrongValue = regexp.MustCompile(`Invalid value: ("[^"]*"|[0-9.-]+): `)

// asTold is what of problems every API server tells. Those before 1.36 quote the type of a
// value in place of the value, and let numbers pass that are too large for their format.
func asTold(problems []string) []string {
	if testbed.KubernetesVersion() == "" {
		return problems
	}
	var told []string
	for _, problem := range problems {
		if !strings.Contains(problem, " with format int32 ") {
			told = append(told, wrongValue.ReplaceAllString(problem, "Invalid value: "))
		}
	}
	return told
}

// refused is a manifest that the API server does not take, and what kubectl
// tells its user.
type refused struct {
	spec string
	name string
	want []string
}

func checkRefused(t *testing.T, kind string, tests map[string]refused) {
	t.Helper()
	namespace := cluster.Namespace(t)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			object := tc.name
			if object == "" {
				object = "refused"
			}
			output, err := cluster.KubectlApply(t.Context(), namespace, manifestOf(kind, object, tc.spec))
			if err == nil {
				t.Fatalf("kubectl apply took it: %s", output)
			}
			if diff := cmp.Diff(asTold(tc.want), asTold(problemsIn(output))); diff != "" {
				t.Errorf("what kubectl says (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestWrongFrameworksAreRefused(t *testing.T) {
	const (
		wrongName     = "<nil>: Invalid value: metadata.name must be at most 63 lower-case letters, digits and hyphens, starting and ending with a letter or digit, because it is a label value and the prefix of every Pod name"
		wrongRoleName = "a task role's name must be 1 to 63 lower-case letters and digits, without hyphens"
		minMember     = "must be at most the number of tasks, which is the sum of taskNumber over spec.taskRoles: a larger gang could never start"
		roleMinMember = "must be at most the taskNumber of its role: a larger minimum could never be met"
		four          = "taskRoles: [{name: worker, taskNumber: 4}]"
	)
	checkRefused(t, "Framework", map[string]refused{
		"a name with a dot": {
			name: "a.b", spec: "{" + four + "}",
			want: []string{wrongName},
		},
		"a name of 64 characters": {
			name: strings.Repeat("x", 64), spec: "{" + four + "}",
			want: []string{wrongName},
		},
		"no spec": {
			spec: "null",
			want: []string{"spec: Required value"},
		},
		"a misspelt field": {
			spec: "{taskRole: []}",
			want: []string{`Error from server (BadRequest): error when creating "STDIN": Framework in version "v1" cannot be handled as a Framework: strict decoding error: unknown field "spec.taskRole"`},
		},
		"an executionType that is none": {
			spec: "{executionType: Run}",
			want: []string{`spec.executionType: Unsupported value: "Run": supported values: "Create", "Start", "Stop"`},
		},
		"a description that is too long": {
			spec: "{description: " + strings.Repeat("x", 32769) + "}",
			want: []string{"spec.description: Too long: may not be more than 32768 bytes"},
		},
		"a retry count below -2, of the Framework and of a task": {
			spec: "{retryPolicy: {maxRetryCount: -3}, taskRoles: [{name: worker, task: {retryPolicy: {maxRetryCount: -3}}}]}",
			want: []string{
				"spec.retryPolicy.maxRetryCount: Invalid value: -3: spec.retryPolicy.maxRetryCount in body should be greater than or equal to -2",
				"spec.taskRoles[0].task.retryPolicy.maxRetryCount: Invalid value: -3: spec.taskRoles[0].task.retryPolicy.maxRetryCount in body should be greater than or equal to -2",
			},
		},
		"a number that no 32 bits hold": {
			spec: "{retryPolicy: {maxRetryCount: 3000000000}}",
			want: []string{
				`<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.retryPolicy.maxRetryCount`,
				"spec.retryPolicy.maxRetryCount: Invalid value: 3000000000: spec.retryPolicy.maxRetryCount in body should be less than or equal to 2147483647",
			},
		},
		"a switch that is text": {
			spec: "{retryPolicy: {fancyRetryPolicy: perhaps}}",
			want: []string{`spec.retryPolicy.fancyRetryPolicy: Invalid value: "string": spec.retryPolicy.fancyRetryPolicy in body must be of type boolean: "string"`},
		},
		"a role without a name": {
			spec: "{taskRoles: [{taskNumber: 1}]}",
			want: []string{"spec.taskRoles[0].name: Required value"},
		},
		"a role with an empty name": {
			spec: "{taskRoles: [{name: '', taskNumber: 1}]}",
			want: []string{`spec.taskRoles[0].name: Invalid value: "": ` + wrongRoleName},
		},
		"a role's name with a hyphen": {
			spec: "{taskRoles: [{name: my-worker, taskNumber: 1}]}",
			want: []string{`spec.taskRoles[0].name: Invalid value: "my-worker": ` + wrongRoleName},
		},
		"a role's name that is too long": {
			spec: "{taskRoles: [{name: " + strings.Repeat("x", 64) + "}]}",
			want: []string{"spec.taskRoles[0].name: Too long: may not be more than 63 bytes"},
		},
		"two roles of one name": {
			spec: "{taskRoles: [{name: worker}, {name: ps}, {name: worker}]}",
			want: []string{`spec.taskRoles[2]: Duplicate value: {"name":"worker"}`},
		},
		"more roles than 256": {
			spec: "{taskRoles: [" + roles(257) + "]}",
			want: []string{"spec.taskRoles: Too many: 257: must have at most 256 items"},
		},
		"fewer tasks than none": {
			spec: "{taskRoles: [{name: worker, taskNumber: -1}]}",
			want: []string{"spec.taskRoles[0].taskNumber: Invalid value: -1: spec.taskRoles[0].taskNumber in body should be greater than or equal to 0"},
		},
		"more tasks than 10000": {
			spec: "{taskRoles: [{name: worker, taskNumber: 10001}]}",
			want: []string{
				"spec.taskRoles: Invalid value: must have at most 10000 tasks in all, which is the sum of taskNumber over spec.taskRoles: the status of more can't be stored in one object",
				"spec.taskRoles[0].taskNumber: Invalid value: 10001: spec.taskRoles[0].taskNumber in body should be less than or equal to 10000",
			},
		},
		"more tasks than 10000 in all roles together": {
			spec: "{taskRoles: [{name: ps, taskNumber: 1}, {name: worker, taskNumber: 10000}]}",
			want: []string{"spec.taskRoles: Invalid value: must have at most 10000 tasks in all, which is the sum of taskNumber over spec.taskRoles: the status of more can't be stored in one object"},
		},
		"completion policies below -1": {
			spec: "{taskRoles: [{name: worker, frameworkAttemptCompletionPolicy: {minFailedTaskCount: -2, minSucceededTaskCount: -2}}]}",
			want: []string{
				"spec.taskRoles[0].frameworkAttemptCompletionPolicy.minFailedTaskCount: Invalid value: -2: spec.taskRoles[0].frameworkAttemptCompletionPolicy.minFailedTaskCount in body should be greater than or equal to -1",
				"spec.taskRoles[0].frameworkAttemptCompletionPolicy.minSucceededTaskCount: Invalid value: -2: spec.taskRoles[0].frameworkAttemptCompletionPolicy.minSucceededTaskCount in body should be greater than or equal to -1",
			},
		},
		"a deletion timeout that is text": {
			spec: "{taskRoles: [{name: worker, task: {podGracefulDeletionTimeoutSec: long}}]}",
			want: []string{`spec.taskRoles[0].task.podGracefulDeletionTimeoutSec: Invalid value: "string": spec.taskRoles[0].task.podGracefulDeletionTimeoutSec in body must be of type integer: "string"`},
		},
		"a deletion timeout below 0": {
			spec: "{taskRoles: [{name: worker, task: {podGracefulDeletionTimeoutSec: -1}}]}",
			want: []string{"spec.taskRoles[0].task.podGracefulDeletionTimeoutSec: Invalid value: -1: spec.taskRoles[0].task.podGracefulDeletionTimeoutSec in body should be greater than or equal to 0"},
		},
		"a Pod template that is text": {
			spec: "{taskRoles: [{name: worker, task: {pod: busybox}}]}",
			want: []string{`spec.taskRoles[0].task.pod: Invalid value: "string": spec.taskRoles[0].task.pod in body must be of type object: "string"`},
		},
		"a gang of more than all tasks": {
			spec: "{gang: {minMember: 6}, taskRoles: [{name: ps, taskNumber: 1}, {name: worker, taskNumber: 4}]}",
			want: []string{"spec.gang.minMember: Invalid value: " + minMember},
		},
		"a gang of none, and timeouts of none": {
			spec: "{gang: {minMember: 0, scheduleTimeoutSeconds: 0, recoveryTimeoutSeconds: 0}, " + four + "}",
			want: []string{
				"spec.gang.minMember: Invalid value: 0: spec.gang.minMember in body should be greater than or equal to 1",
				"spec.gang.recoveryTimeoutSeconds: Invalid value: 0: spec.gang.recoveryTimeoutSeconds in body should be greater than or equal to 1",
				"spec.gang.scheduleTimeoutSeconds: Invalid value: 0: spec.gang.scheduleTimeoutSeconds in body should be greater than or equal to 1",
			},
		},
		"a role's minimum above its tasks": {
			spec: "{gang: {}, taskRoles: [{name: worker, taskNumber: 4, minMember: 5}]}",
			want: []string{"spec.taskRoles[0].minMember: Invalid value: " + roleMinMember},
		},
		"a role's minimum of none": {
			spec: "{gang: {}, taskRoles: [{name: worker, taskNumber: 4, minMember: 0}]}",
			want: []string{"spec.taskRoles[0].minMember: Invalid value: 0: spec.taskRoles[0].minMember in body should be greater than or equal to 1"},
		},
		"names in gang that are too long": {
			spec: fmt.Sprintf("{gang: {queue: %[1]s, priorityClassName: %[1]s}, %[2]s}", strings.Repeat("x", 254), four),
			want: []string{
				"spec.gang.priorityClassName: Too long: may not be more than 253 bytes",
				"spec.gang.queue: Too long: may not be more than 253 bytes",
			},
		},
		"a disruptionMode that is none": {
			spec: "{gang: {disruptionMode: Half}, " + four + "}",
			want: []string{`spec.gang.disruptionMode: Unsupported value: "Half": supported values: "Gang", "Pod"`},
		},
		"a topology mode that is none": {
			spec: "{gang: {topology: [{key: rack, mode: Always}]}, " + four + "}",
			want: []string{`spec.gang.topology[0].mode: Unsupported value: "Always": supported values: "Required", "Preferred"`},
		},
		"topology without a key and without a mode": {
			spec: "{gang: {topology: [{mode: Required}, {key: rack}]}, " + four + "}",
			want: []string{"spec.gang.topology[0].key: Required value", "spec.gang.topology[1].mode: Required value"},
		},
		"topology of more than four levels": {
			spec: "{gang: {topology: [" + levels(5) + "]}, " + four + "}",
			want: []string{"spec.gang.topology: Too many: 5: must have at most 4 items"},
		},
	})
}

func TestWrongPodGroupsAreRefused(t *testing.T) {
	checkRefused(t, "PodGroup", map[string]refused{
		"a name of 64 characters": {
			name: strings.Repeat("x", 64), spec: "{minMember: 1}",
			want: []string{"<nil>: Invalid value: metadata.name must be at most 63 characters, because Pods name their group in a label"},
		},
		"no minMember": {
			spec: "{}",
			want: []string{"spec.minMember: Required value"},
		},
		"a minMember of none": {
			spec: "{minMember: 0}",
			want: []string{"spec.minMember: Invalid value: 0: spec.minMember in body should be greater than or equal to 1"},
		},
		"a role's minimum of none": {
			spec: "{minMember: 1, minRoleMember: {ps: 1, worker: 0}}",
			want: []string{"spec.minRoleMember: Invalid value: every value of minRoleMember must be at least 1"},
		},
		"a misspelt field": {
			spec: "{minMember: 1, minMembers: 1}",
			want: []string{`Error from server (BadRequest): error when creating "STDIN": PodGroup in version "v1alpha1" cannot be handled as a PodGroup: strict decoding error: unknown field "spec.minMembers"`},
		},
		"a disruptionMode that is none": {
			spec: "{minMember: 1, disruptionMode: Half}",
			want: []string{`spec.disruptionMode: Unsupported value: "Half": supported values: "Gang", "Pod"`},
		},
		"a topology mode that is none": {
			spec: "{minMember: 1, topology: [{key: rack, mode: Always}]}",
			want: []string{`spec.topology[0].mode: Unsupported value: "Always": supported values: "Required", "Preferred"`},
		},
		"a topology key that is empty": {
			spec: "{minMember: 1, topology: [{key: '', mode: Required}]}",
			want: []string{`spec.topology[0].key: Invalid value: "": spec.topology[0].key in body should be at least 1 chars long`},
		},
		"topology of more than four levels": {
			spec: "{minMember: 1, topology: [" + levels(5) + "]}",
			want: []string{"spec.topology: Too many: 5: must have at most 4 items"},
		},
		"names that are too long": {
			spec: fmt.Sprintf("{minMember: 1, queue: %[1]s, priorityClassName: %[1]s, topology: [{key: %[2]s, mode: Required}]}", strings.Repeat("x", 254), strings.Repeat("x", 317)),
			want: []string{
				"spec.priorityClassName: Too long: may not be more than 253 bytes",
				"spec.queue: Too long: may not be more than 253 bytes",
				"spec.topology[0].key: Too long: may not be more than 316 bytes",
			},
		},
	})
}

// TestSpecChanges applies one spec after another to the same object.
func TestSpecChanges(t *testing.T) {
	const (
		immutable = "Invalid value: is immutable: delete the PodGroup and create it anew"
		full      = "priorityClassName: high, queue: research, topology: [{key: rack, mode: Required}], disruptionMode: Pod"
	)
	transition := func(from, to string) []string {
		return []string{fmt.Sprintf("spec.executionType: Invalid value: %[2]q: executionType cannot change from %[1]s to %[2]s: only Create to Start, Create to Stop and Start to Stop are possible", from, to)}
	}
	tests := map[string]struct {
		kind          string
		before, after string
		want          []string // Empty if the change is taken.
	}{
		"executionType from Create to Start": {kind: "Framework", before: "{executionType: Create}", after: "{executionType: Start}"},
		"executionType from Create to Stop":  {kind: "Framework", before: "{executionType: Create}", after: "{executionType: Stop}"},
		"executionType from Start to Stop":   {kind: "Framework", before: "{executionType: Start}", after: "{executionType: Stop}"},
		"executionType that stays":           {kind: "Framework", before: "{executionType: Stop}", after: "{executionType: Stop, description: over}"},
		"executionType from Start to Create": {
			kind: "Framework", before: "{executionType: Start}", after: "{executionType: Create}",
			want: transition("Start", "Create"),
		},
		"executionType from Stop to Start": {
			kind: "Framework", before: "{executionType: Stop}", after: "{executionType: Start}",
			want: transition("Stop", "Start"),
		},
		"executionType from Stop to Create": {
			kind: "Framework", before: "{executionType: Stop}", after: "{executionType: Create}",
			want: transition("Stop", "Create"),
		},
		"executionType from Stop to its default, by leaving it out": {
			kind: "Framework", before: "{executionType: Stop}", after: "{description: again}",
			want: transition("Stop", "Start"),
		},
		"a scale-down below the gang's minimum": {
			kind:   "Framework",
			before: "{executionType: Create, gang: {minMember: 3}, taskRoles: [{name: worker, taskNumber: 3}]}",
			after:  "{executionType: Create, gang: {minMember: 3}, taskRoles: [{name: worker, taskNumber: 2}]}",
			want:   []string{"spec.gang.minMember: Invalid value: must be at most the number of tasks, which is the sum of taskNumber over spec.taskRoles: a larger gang could never start"},
		},
		"a scale-down of a gang to nothing, which pauses it": {
			kind:   "Framework",
			before: "{executionType: Create, gang: {minMember: 3}, taskRoles: [{name: worker, taskNumber: 3}]}",
			after:  "{executionType: Create, gang: {minMember: 3}, taskRoles: [{name: worker, taskNumber: 0}]}",
		},

		"minMember and minRoleMember of a PodGroup": {
			kind: "PodGroup", before: "{minMember: 1}", after: "{minMember: 2, minRoleMember: {worker: 1}}",
		},
		"a PodGroup's immutable fields, set": {
			kind: "PodGroup", before: "{minMember: 1}", after: "{minMember: 1, " + full + "}",
			want: []string{"spec.disruptionMode: " + immutable, "spec.priorityClassName: " + immutable, "spec.queue: " + immutable, "spec.topology: " + immutable},
		},
		"a PodGroup's immutable fields, taken away": {
			kind: "PodGroup", before: "{minMember: 1, " + full + "}", after: "{minMember: 1}",
			want: []string{"spec.disruptionMode: " + immutable, "spec.priorityClassName: " + immutable, "spec.queue: " + immutable, "spec.topology: " + immutable},
		},
		"a PodGroup's topology, loosened": {
			kind: "PodGroup", before: "{minMember: 1, topology: [{key: rack, mode: Required}]}", after: "{minMember: 1, topology: [{key: rack, mode: Preferred}]}",
			want: []string{"spec.topology: " + immutable},
		},
		"a PodGroup's immutable fields, repeated": {
			kind: "PodGroup", before: "{minMember: 1, " + full + "}", after: "{minMember: 2, " + full + "}",
		},
	}
	namespace := cluster.Namespace(t)
	object := 0
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			object++
			name := fmt.Sprintf("changes-%d", object)
			if output, err := cluster.KubectlApply(t.Context(), namespace, manifestOf(tc.kind, name, tc.before)); err != nil {
				t.Fatalf("before: %v: %s", err, output)
			}
			output, err := cluster.KubectlApply(t.Context(), namespace, manifestOf(tc.kind, name, tc.after))
			if (err == nil) != (tc.want == nil) {
				t.Fatalf("kubectl apply: %v: %s", err, output)
			}
			if tc.want == nil {
				return
			}
			if diff := cmp.Diff(asTold(tc.want), asTold(problemsIn(output))); diff != "" {
				t.Errorf("what kubectl says (-want,+got):\n%s", diff)
			}
		})
	}
}

// roles are n task roles in YAML flow style.
func roles(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("{name: role%d}", i)
	}
	return strings.Join(list, ", ")
}

// levels are n levels of topology in YAML flow style.
func levels(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("{key: level-%d, mode: Preferred}", i)
	}
	return strings.Join(list, ", ")
}
