// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// withJobsWithSecrets is inCluster with a Volcano Job v and an MPIJob m whose Pods log into each other.
func withJobsWithSecrets(t *testing.T, test func(t *testing.T, c *cluster)) {
	quiet(t)
	inClusterWith(t, func(c *cluster) {
		runJobs(c)
		runTraining(c)
	}, func(t *testing.T, c *cluster) {
		volcano := newJob(newTask("master", 1), newTask("worker", 2))
		volcano.Name, volcano.Spec.Plugins = "v", map[string]batchv1alpha1.PluginFlags{batchv1alpha1.PluginMPI: nil}
		apiserver.Add(c.server, volcano)
		mpi := newMPIJob(map[string]int32{"Launcher": 1, "Worker": 2})
		mpi.Name = "m"
		apiserver.Add(c.server, mpi)
		test(t, c)
	})
}

// asked are the verbs of the requests about Secrets since the journal was cleared.
func (c *cluster) asked(verbs ...apiserver.Verb) (requests []string) {
	for _, entry := range c.server.Journal() {
		if entry.Resource == "secrets" && slices.Contains(verbs, entry.Verb) {
			requests = append(requests, string(entry.Verb)+" "+entry.Name)
		}
	}
	slices.Sort(requests)
	return requests
}

// TestSecretsAreReadByTheirNamesAlone: a controller that was taken over could list those of the whole cluster if it had the right to.
func TestSecretsAreReadByTheirNamesAlone(t *testing.T) {
	withJobsWithSecrets(t, func(t *testing.T, c *cluster) {
		c.awaitPhase(t, "v", batchv1alpha1.JobRunning)
		c.awaitTraining(t, "m", kubeflowv1.JobRunning)
		keys := func(name string) string {
			secret := apiserver.Find[corev1.Secret](c.server, "ns", name)
			if secret == nil {
				return ""
			}
			return string(secret.UID)
		}
		before := keys("v-ssh") + keys("m-ssh")

		c.killProgram() // The next controller finds them.
		c.startProgram()
		c.pass(2 * time.Minute)
		if got := keys("v-ssh") + keys("m-ssh"); got != before || before == "" {
			t.Errorf("after another controller has taken over, the Secrets are %q, they were %q", got, before)
		}
		if got := c.asked(apiserver.Create); !slices.Equal(got, []string{"create m-ssh", "create v-ssh"}) {
			t.Errorf("the creations were %v, want one of each", got)
		}

		for _, name := range []string{"v-ssh", "m-ssh"} {
			apiserver.Remove[corev1.Secret](c.server, "ns", name)
		}
		c.pass(time.Minute)
		if keys("v-ssh") == "" || keys("m-ssh") == "" {
			t.Error("a Secret that was deleted is not there again within a minute")
		}
		c.wantEvent(t, "v", corev1.EventTypeWarning, "PluginError", "v-ssh")

		c.ends = succeed
		c.awaitPhase(t, "v", batchv1alpha1.JobCompleted)
		c.awaitTraining(t, "m", kubeflowv1.JobSucceeded)
		c.pass(time.Minute)
		if keys("v-ssh") != "" {
			t.Error("the Secret of a Volcano Job that is over is still there")
		}
		if got := c.asked(apiserver.List, apiserver.Watch); len(got) > 0 {
			t.Errorf("Secrets were listed or watched: %v", got)
		}
		c.server.ClearJournal()
		c.pass(time.Hour)
		if got := c.asked(apiserver.Get); len(got) > 0 {
			t.Errorf("jobs that are over had Secrets looked at: %v", got)
		}
	})
}

// TestAJobWithoutTheRightToSecretsIsToldSo, and all others run.
func TestAJobWithoutTheRightToSecretsIsToldSo(t *testing.T) {
	withJobsWithSecrets(t, func(t *testing.T, c *cluster) {
		c.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			if r.Resource != "secrets" {
				return apiserver.Fault{}
			}
			return apiserver.Fault{Refusal: apierrors.NewForbidden(corev1.Resource("secrets"), r.Name, nil)}
		})
		other := newJob(newTask("a", 1))
		apiserver.Add(c.server, other)
		c.awaitPhase(t, "j", batchv1alpha1.JobRunning)
		c.pass(10 * time.Minute)
		for _, job := range []string{"v", "m"} {
			if !slices.ContainsFunc(apiserver.All[corev1.Event](c.server, "ns"), func(event *corev1.Event) bool {
				return event.InvolvedObject.Name == job && event.Type == corev1.EventTypeWarning && strings.Contains(event.Message, "manifests/secrets")
			}) {
				t.Errorf("the user of the job %s is not told which role is missing", job)
			}
			if slices.ContainsFunc(c.podNames(), func(name string) bool { return strings.HasPrefix(name, job+"-") }) {
				t.Errorf("the job %s has Pods without its keys: %v", job, c.podNames())
			}
		}
		c.server.ClearJournal()
		c.pass(10 * time.Minute)
		if got := c.asked(apiserver.Get, apiserver.Create); len(got) > 60 {
			t.Errorf("%d requests for the Secrets of two jobs in ten minutes, want 60 at most", len(got))
		}
		c.server.SetHook(nil)
		c.awaitPhase(t, "v", batchv1alpha1.JobRunning)
		c.awaitTraining(t, "m", kubeflowv1.JobRunning)
	})
}

// TestKeysThatAQuotaRefusesAreMadeOnce: an RSA key takes tenths of a second, and the creation is tried again for as long as the quota is full.
func TestKeysThatAQuotaRefusesAreMadeOnce(t *testing.T) {
	withJobsWithSecrets(t, func(t *testing.T, c *cluster) {
		var mu sync.Mutex
		tries, made := map[string]int{}, map[string]map[string]bool{"v-ssh": {}, "m-ssh": {}}
		c.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			secret, isSecret := r.Object.(*corev1.Secret)
			if r.Verb != apiserver.Create || !isSecret {
				return apiserver.Fault{}
			}
			mu.Lock()
			defer mu.Unlock()
			tries[r.Name]++
			made[r.Name][string(secret.Data["id_rsa"])+string(secret.Data[corev1.SSHAuthPrivateKey])] = true
			return apiserver.Fault{Refusal: apierrors.NewForbidden(corev1.Resource("secrets"), r.Name, errors.New("exceeded quota: q, requested: secrets=1, used: secrets=3, limited: secrets=3"))}
		})
		c.pass(10 * time.Minute)
		mu.Lock()
		for name, keys := range made {
			if tries[name] < 5 || len(keys) != 1 {
				t.Errorf("%s was tried %d times with %d keys, want one key", name, tries[name], len(keys))
			}
		}
		mu.Unlock()
		c.wantEvent(t, "m", corev1.EventTypeWarning, "FailedCreateSecret", "exceeded quota")
		c.wantEvent(t, "v", corev1.EventTypeWarning, "FailedCreate", "exceeded quota")
		c.server.SetHook(nil)
		c.awaitPhase(t, "v", batchv1alpha1.JobRunning)
		c.awaitTraining(t, "m", kubeflowv1.JobRunning)
	})
}
