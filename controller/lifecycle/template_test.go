// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// TestATemplateThatIsTooLargeIsRefused holds that a template costs the controller
// little memory, however much a Pod would take that is made from it.
func TestATemplateThatIsTooLargeIsRefused(t *testing.T) {
	containers := func(n int, container string) string {
		return `{"spec":{"containers":[` + container + strings.Repeat(","+container, n-1) + `]}}`
	}
	args := func(text string) string { return `{"spec":{"containers":[{"args":["` + text + `"]}]}}` }
	tests := map[string]struct{ template, want string }{
		"400,000 empty containers": {containers(400_000, "{}"), "at most 20000 JSON values"},
		"400,000 empty containers that differ by task": {
			containers(400_000, "{}")[:1_200_000] + `,{"name":"{{FC_TASK_INDEX}}"}]}}`, "at most 20000 JSON values"},
		"600,000 numbers":        {`{"spec":{"containers":[1` + strings.Repeat(",1", 600_000) + `]}}`, "at most 20000 JSON values"},
		"nested lists":           {strings.Repeat("[", 30_000) + strings.Repeat("]", 30_000), "at most 20000 JSON values"},
		"a text of 1.2 MB":       {args(strings.Repeat("x", 1_200_000)), "at most 1048576 bytes"},
		"many placeholders":      {args(strings.Repeat("{{FC_FRAMEWORK_NAMESPACE}}{{FC_POD_NAME}}", 25_000)), "at most 1048576 bytes"},
		"1,001 containers":       {containers(1001, "{}"), "at most 1000 containers"},
		"1,001 of each task":     {containers(1001, `{"name":"{{FC_TASK_INDEX}}"}`), "at most 1000 containers"},
		"1,001 init containers":  {strings.Replace(containers(1001, "{}"), "containers", "initContainers", 1), "at most 1000 containers"},
		"600 of each kind":       {strings.Replace(containers(600, "{}"), "]", `],"initContainers":[{}`+strings.Repeat(",{}", 599)+"]", 1), "at most 1000 containers"},
		"600 ephemeral and more": {strings.Replace(containers(600, "{}"), "]", `],"ephemeralContainers":[{}`+strings.Repeat(",{}", 599)+"]", 1), "at most 1000 containers"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f, status := attempted(t, nil, tc.template)
			f.Namespace = strings.Repeat("n", 63)
			for _, role := range status.AttemptStatus.TaskRoleStatuses {
				for _, task := range role.TaskStatuses {
					task.AttemptStatus.PodName = strings.Repeat("p", 140)
				}
			}
			build := recipe(f, status, 1)
			before := allocated()
			_, err := build()
			if took := allocated() - before; took > 8<<20 {
				t.Errorf("the refusal took %d bytes of memory", took)
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "spec.taskRoles[w].task.pod") {
				t.Fatalf("got %v, want an error that names the role and says %q", err, tc.want)
			}
			if got := PodRefusal(errTemplate{err}).Diagnostics; !strings.Contains(got, tc.want) {
				t.Errorf("the diagnostics are %q, want them to say %q", got, tc.want)
			}
		})
	}
}

// allocated is how many bytes were ever allocated.
func allocated() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}

// TestALargeTemplateIsTaken holds what the bounds leave room for.
func TestALargeTemplateIsTaken(t *testing.T) {
	script := strings.Repeat(`{\"a\": [1, 2, 3]},`, 50_000)
	var thousand strings.Builder
	for i := range 1000 {
		if i > 0 {
			thousand.WriteString(",")
		}
		thousand.WriteString(`{"name":"c` + strconv.Itoa(i) + `","image":"i","env":[{"name":"A","value":"1"},{"name":"B"}],"ports":[{"containerPort":80}]}`)
	}
	tests := map[string]string{
		"a long text that looks like JSON": `{"spec":{"containers":[{"args":["` + script + `"]}]}}`,
		"one that differs by task":         `{"spec":{"containers":[{"args":["` + script + `","{{FC_TASK_INDEX}}"]}]}}`,
		"1,000 containers":                 `{"spec":{"containers":[` + thousand.String() + `]}}`,
		"thousands of volumes":             `{"spec":{"volumes":[{}` + strings.Repeat(",{}", 9_000) + `]}}`,
	}
	for name, template := range tests {
		t.Run(name, func(t *testing.T) {
			f, status := attempted(t, nil, template)
			build := recipe(f, status, 0)
			before := allocated()
			if _, err := build(); err != nil {
				t.Fatal(err)
			}
			if took := allocated() - before; took > 32<<20 {
				t.Errorf("the Pod took %d bytes of memory", took)
			}
		})
	}
}
