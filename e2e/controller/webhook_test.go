//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// askWebhook has the API server ask a handler about the creation of Pods in a
// namespace, those of one role or, if that is empty, all. It returns when the API
// server does so: it learns of webhooks by a watch.
func askWebhook(t *testing.T, namespace, role string, handler http.HandlerFunc) {
	t.Helper()
	// The first Pod is one that is not stored. Once the webhook is asked about it, its creation is given up.
	probing, asked := context.WithCancel(t.Context())
	defer asked()
	server := httptest.NewTLSServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		if probing.Err() == nil {
			asked()
			return
		}
		handler(response, request)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	objects := &metav1.LabelSelector{}
	if role != "" {
		objects.MatchLabels = map[string]string{frameworkv1.KeyTaskRoleName: role}
	}
	configurations := cluster.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	configuration, err := configurations.Create(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "pods.e2e.lockstep.dev",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL:      &server.URL,
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}},
			ObjectSelector:          objects,
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			TimeoutSeconds:          ptr.To[int32](30),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context()) // It has ended.
		if err := configurations.Delete(ctx, configuration.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	probe := testbed.MakePod("probe", func(pod *corev1.Pod) { pod.Labels = objects.MatchLabels })
	testbed.Eventually(t, "the webhook to be asked", func(context.Context) (bool, string, error) {
		_, err := cluster.Kube.CoreV1().Pods(namespace).Create(probing, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return probing.Err() != nil, fmt.Sprint(err), nil
	})
}

// TestARoleThatIsRefusedHoldsBackNoOther has a webhook that fails for the Pods of the
// first role. Those of the second run.
func TestARoleThatIsRefusedHoldsBackNoOther(t *testing.T) {
	cluster.StartController(t, localenv.ControllerOptions{}).WaitReady(t)
	namespace := cluster.Namespace(t)
	askWebhook(t, namespace, "a", func(response http.ResponseWriter, _ *http.Request) {
		http.Error(response, "out of order", http.StatusInternalServerError)
	})
	fw := jobs.MakeFramework("half").Role("a", 3, jobs.RunForever()).Role("b", 3, jobs.RunForever()).Obj()
	cluster.CreateFramework(t, namespace, fw)
	cluster.WaitFramework(t, namespace, fw.Name, "run with its second role", func(fw *frameworkv1.Framework) bool {
		return fw.Status != nil && fw.Status.Tasks != nil && fw.Status.Tasks.Running == 3
	})
	cluster.WaitBlocked(t, namespace, fw.Name, frameworkv1.ReasonCreationRefused, "failed calling webhook")
}

// TestASlowWebhookCostsOnlyItsOwn has a webhook that takes half a minute for each Pod of
// one namespace, in which there are more Frameworks than workers. One of another
// namespace comes to its end as fast as ever.
func TestASlowWebhookCostsOnlyItsOwn(t *testing.T) {
	const frameworks = 60
	cluster.StartController(t, localenv.ControllerOptions{}).WaitReady(t)
	calm := cluster.RunSmall(t)
	namespace := cluster.Namespace(t)
	asked := make(chan struct{}, frameworks)
	askWebhook(t, namespace, "", func(_ http.ResponseWriter, request *http.Request) {
		select {
		case asked <- struct{}{}:
		default:
		}
		// Who has not read all of a request does not hear that it was given up.
		_, _ = io.Copy(io.Discard, request.Body)
		<-request.Context().Done()
	})
	for i := range frameworks {
		cluster.CreateFramework(t, namespace, jobs.MakeFramework(fmt.Sprintf("slow-%d", i)).Role("worker", 4, jobs.RunForever()).Obj())
	}
	const workers = 16
	for range 2 * workers {
		select {
		case <-asked:
		case <-time.After(time.Minute):
			t.Fatal("the webhook is not asked about as many Pods as there are workers")
		}
	}
	cluster.WantUntroubled(t, calm)
}
