// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package barrier

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// makeFramework makes default/train with the given roles, without a status.
func makeFramework(roles ...frameworkv1.TaskRoleSpec) *frameworkv1.Framework {
	return &frameworkv1.Framework{
		TypeMeta:   metav1.TypeMeta{APIVersion: "frameworkcontroller.microsoft.com/v1", Kind: "Framework"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "train", ResourceVersion: "1"},
		Spec:       frameworkv1.FrameworkSpec{TaskRoles: roles},
	}
}

func role(name string, number int32) frameworkv1.TaskRoleSpec {
	return frameworkv1.TaskRoleSpec{Name: name, TaskNumber: number}
}

// withStatus gives a Framework a status with the given roles.
func withStatus(f *frameworkv1.Framework, roles ...*frameworkv1.TaskRoleStatus) *frameworkv1.Framework {
	f.Status = &frameworkv1.FrameworkStatus{
		State:         frameworkv1.FrameworkAttemptPreparing,
		AttemptStatus: frameworkv1.FrameworkAttemptStatus{TaskRoleStatuses: roles},
	}
	return f
}

// tasks are a role's tasks with the given addresses: "" is a Pod without one yet,
// "-" no Pod, and one that begins with "x" is of a task that is being deleted.
func tasks(name string, ips ...string) *frameworkv1.TaskRoleStatus {
	status := &frameworkv1.TaskRoleStatus{Name: name}
	for i, ip := range ips {
		task := &frameworkv1.TaskStatus{Index: int32(i), State: frameworkv1.TaskAttemptPreparing}
		if ip != "" && ip[0] == 'x' {
			task.DeletionPending, ip = true, ip[1:]
		}
		if ip != "-" {
			task.AttemptStatus.PodIP = ptr.To(ip)
		}
		status.TaskStatuses = append(status.TaskStatuses, task)
	}
	return status
}

func TestCheck(t *testing.T) {
	tests := map[string]struct {
		framework  *frameworkv1.Framework
		want       Readiness
		wantPassed bool
	}{
		"no status yet": {
			framework: makeFramework(role("worker", 2)),
			want:      Readiness{Total: 2, Missing: []string{"worker[0]", "worker[1]"}},
		},
		"no tasks are wanted, and there is no status": {
			framework:  makeFramework(role("worker", 0)),
			wantPassed: true,
		},
		"a Pod without an address, and no Pod": {
			framework: withStatus(makeFramework(role("worker", 3)), tasks("worker", "10.0.0.1", "", "-")),
			want:      Readiness{Ready: 1, Total: 3, Missing: []string{"worker[1]", "worker[2]"}},
		},
		"all have addresses": {
			framework: withStatus(makeFramework(role("ps", 1), role("worker", 2)),
				tasks("worker", "10.0.0.1", "10.0.0.2"), tasks("ps", "10.0.0.3")),
			want:       Readiness{Ready: 3, Total: 3},
			wantPassed: true,
		},
		"a role that the controller has not seen yet": {
			framework: withStatus(makeFramework(role("ps", 1), role("worker", 1)), tasks("ps", "10.0.0.3")),
			want:      Readiness{Ready: 1, Total: 2, Missing: []string{"worker[0]"}},
		},
		"scaled up, not seen yet": {
			framework: withStatus(makeFramework(role("worker", 2)), tasks("worker", "10.0.0.1")),
			want:      Readiness{Ready: 1, Total: 2, Missing: []string{"worker[1]"}},
		},
		"scaled down: tasks beyond the number are ignored, marked or not": {
			framework: withStatus(makeFramework(role("worker", 1)),
				tasks("worker", "10.0.0.1", "-", "x-"), tasks("gone", "-")),
			want:       Readiness{Ready: 1, Total: 1},
			wantPassed: true,
		},
		"scaled down and up again: the doomed task is not the wanted one": {
			framework: withStatus(makeFramework(role("worker", 2)), tasks("worker", "10.0.0.1", "x10.0.0.2")),
			want:      Readiness{Ready: 1, Total: 2, Missing: []string{"worker[1]"}},
		},
		"surplus in one role does not make up for another": {
			framework: withStatus(makeFramework(role("ps", 1), role("worker", 1)),
				tasks("ps", "10.0.0.1", "10.0.0.2"), tasks("worker", "-")),
			want: Readiness{Ready: 1, Total: 2, Missing: []string{"worker[0]"}},
		},
		"names only the first missing": {
			framework: withStatus(makeFramework(role("worker", 9)), tasks("worker", "10.0.0.1")),
			want: Readiness{Ready: 1, Total: 9,
				Missing: []string{"worker[1]", "worker[2]", "worker[3]", "worker[4]", "worker[5]"}},
		},
		"nulls in the status are missing tasks": {
			framework: withStatus(makeFramework(role("worker", 1)),
				nil, &frameworkv1.TaskRoleStatus{Name: "worker", TaskStatuses: []*frameworkv1.TaskStatus{nil}}),
			want: Readiness{Total: 1, Missing: []string{"worker[0]"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Check(tc.framework)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("readiness (-want,+got):\n%s", diff)
			}
			if got.Passed() != tc.wantPassed {
				t.Errorf("passed is %v, want %v", got.Passed(), tc.wantPassed)
			}
		})
	}
}

func TestReadinessString(t *testing.T) {
	got := Readiness{Ready: 1, Total: 9, Missing: []string{"ps[0]", "worker[3]"}}.String()
	want := "1 of 9 tasks have an address, missing ps[0], worker[3] and 6 more"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
