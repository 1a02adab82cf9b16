// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
)

func jobEvent(phase batchv1alpha1.JobPhase, version, retries int32) event {
	return event{job: &batchv1alpha1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "j", UID: "u"},
		Status:     batchv1alpha1.JobStatus{State: batchv1alpha1.JobState{Phase: phase}, Version: version, RetryCount: retries},
	}}
}

func jobPodEvent(name string, uid types.UID, version, retries int, phase corev1.PodPhase) event {
	return event{pod: &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: uid,
			OwnerReferences: []metav1.OwnerReference{{Kind: batchv1alpha1.JobKind, UID: "u", Controller: new(true)}},
			Annotations:     map[string]string{batchv1alpha1.KeyJobVersion: strconv.Itoa(version), batchv1alpha1.KeyJobRetryCount: strconv.Itoa(retries)},
		},
		Status: corev1.PodStatus{Phase: phase},
	}}
}

func isGone(e event) event {
	e.gone = true
	return e
}

func TestBrokenGuaranteesOfJobsAreFound(t *testing.T) {
	const (
		pp = batchv1alpha1.JobPending
		rr = batchv1alpha1.JobRunning
		rs = batchv1alpha1.JobRestarting
		cd = batchv1alpha1.JobCompleted
		cc = batchv1alpha1.JobCompleting
		ab = batchv1alpha1.JobAborting
		xx = batchv1alpha1.JobAborted
	)
	begun := []event{jobEvent("", 0, 0), jobEvent(pp, 0, 0), jobPodEvent("p", "1", 0, 0, corev1.PodRunning)}
	for name, tc := range map[string]struct {
		then []event
		want string
	}{
		"a Job that is restarted and ends": {then: []event{
			jobEvent(rr, 0, 0), jobEvent(rs, 1, 1), isGone(jobPodEvent("p", "1", 0, 0, corev1.PodRunning)), jobEvent(pp, 1, 1),
			jobPodEvent("p", "2", 1, 1, corev1.PodRunning), jobEvent(rr, 1, 1), jobPodEvent("p", "2", 1, 1, corev1.PodSucceeded), jobEvent(cd, 1, 1),
		}},
		"a Pod that is replaced": {then: []event{isGone(jobPodEvent("p", "1", 0, 0, corev1.PodRunning)), jobPodEvent("p", "2", 0, 0, "")}},
		"a Pod of a Job that is over": {then: []event{jobEvent(rr, 0, 0), jobEvent(cd, 0, 0), jobPodEvent("q", "2", 0, 0, "")},
			want: "Pod q was made for version 0, retry 0; Job j is Completed"},
		"a Pod of a Job that is gone":      {then: []event{isGone(jobEvent(pp, 0, 0)), jobPodEvent("q", "2", 0, 0, "")}, want: "its Job is gone"},
		"a Pod of an old version":          {then: []event{jobEvent(rs, 1, 1), jobEvent(pp, 1, 1), jobPodEvent("q", "2", 0, 0, "")}, want: "Pod q was made for version 0"},
		"Pods of two versions":             {then: []event{jobEvent(rs, 1, 1), jobEvent(pp, 1, 1), jobPodEvent("q", "2", 1, 1, "")}, want: "runs beside"},
		"an index that is run twice":       {then: []event{jobPodEvent("p", "1", 0, 0, corev1.PodFailed), isGone(jobPodEvent("p", "1", 0, 0, corev1.PodFailed)), jobPodEvent("p", "2", 0, 0, "")}, want: "was made again"},
		"a phase that is left out":         {then: []event{jobEvent(cd, 0, 0)}, want: `was "Pending" and is "Completed"`},
		"a phase after the last":           {then: []event{jobEvent(rr, 0, 0), jobEvent(cd, 0, 0), jobEvent(rr, 0, 0)}, want: `was "Completed" and is "Running"`},
		"a restart that counts twice":      {then: []event{jobEvent(rs, 1, 2)}, want: "with 0 retries to Restarting with 2"},
		"a restart that does not count":    {then: []event{jobEvent(rs, 1, 0)}, want: "with 0 retries to Restarting with 0"},
		"a number that goes back":          {then: []event{jobEvent(rs, 1, 1), jobEvent(pp, 0, 1)}, want: "back from version 1 to 0"},
		"a Pod that outlives the abort":    {then: []event{jobEvent(ab, 1, 0), jobEvent(xx, 1, 0)}, want: "is Aborted, and Pod p runs"},
		"a Pod that outlives CompleteJob":  {then: []event{jobEvent(cc, 1, 0), jobEvent(cd, 1, 0)}, want: "is Completed, and Pod p runs"},
		"a Pod that outlives the end":      {then: []event{jobEvent(rr, 0, 0), jobEvent(cd, 0, 0)}},
		"Pods of nobody, or somebody else": {then: []event{{pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "other", UID: "9"}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := brokenJobGuarantees(append(append([]event{}, begun...), tc.then...))
			if tc.want == "" && len(got) > 0 || tc.want != "" && (len(got) != 1 || !strings.Contains(got[0], tc.want)) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
