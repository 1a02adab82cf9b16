// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// TestTopShowsWhatIsUsed: metrics-server answers in protobuf whoever takes that, as the clients for Pods do.
func TestTopShowsWhatIsUsed(t *testing.T) {
	u := someone(t)
	u.answers = func(r *http.Request) *http.Response {
		switch {
		case !strings.HasPrefix(r.URL.Path, "/apis/metrics.k8s.io/"):
			return nil
		case strings.Contains(r.Header.Get("Accept"), "protobuf"):
			return answered(http.StatusOK, "application/vnd.kubernetes.protobuf", "k8s\x00\n")
		default:
			return answered(http.StatusOK, "application/json", `{"items": [{"metadata": {"name": "train-worker-0"}, "containers": [{"usage": {"cpu": "250m"}}]}]}`)
		}
	}
	fw := u.has(frameworkv1.FrameworkAttemptRunning, 1)
	u.hasPod(fw, "worker", 0, func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
	})
	said := u.types("top", "train")
	u.sees(said, 0, "worker", "250m")
	if said.err != "" {
		t.Errorf("it complains: %s", said.err)
	}
}
