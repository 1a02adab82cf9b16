// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"io/fs"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

func TestSetDefaults(t *testing.T) {
	want := &ControllerConfiguration{
		KubeClientQPS:                                       ptr.To[float32](1000),
		KubeClientBurst:                                     ptr.To[int32](2000),
		WorkerNumber:                                        ptr.To[int32](16),
		LargeFrameworkCompression:                           ptr.To(true),
		CRDEstablishedCheckIntervalSec:                      ptr.To[int64](1),
		CRDEstablishedCheckTimeoutSec:                       ptr.To[int64](60),
		ObjectLocalCacheCreationTimeoutSec:                  ptr.To[int64](300),
		FrameworkCompletedRetainSec:                         ptr.To[int64](2592000),
		FrameworkHistoryLimit:                               ptr.To[int32](10),
		FrameworkMinRetryDelaySecForTransientConflictFailed: ptr.To[int64](60),
		FrameworkMaxRetryDelaySecForTransientConflictFailed: ptr.To[int64](900),
		LogObjectSnapshot: LogObjectSnapshot{
			Framework: LogFrameworkSnapshot{OnFrameworkRetry: ptr.To(true), OnFrameworkDeletion: ptr.To(true)},
			Task:      LogTaskSnapshot{OnTaskRetry: ptr.To(true), OnTaskDeletion: ptr.To(true)},
			Pod:       LogPodSnapshot{OnPodDeletion: ptr.To(true)},
			MaskEnv: MaskEnv{
				Policy:        ptr.To(MaskEnvByName),
				NameFragments: []string{"password", "secret", "token", "key", "credential"},
			},
		},
		PodFailureSpec:       DefaultPodFailureSpec(),
		GangSchedulerName:    ptr.To("lockstep-scheduler"),
		UnknownFields:        ptr.To(UnknownFieldsWarn),
		StatusCoalesceWindow: &metav1.Duration{Duration: 100 * time.Millisecond},
		PodBatchSize:         ptr.To[int32](64),
		VolcanoJobs:          VolcanoJobs{Enabled: ptr.To(false)},
		KubeflowJobs: KubeflowJobs{
			Enabled: ptr.To(false), TakeJobs: ptr.To(TakeJobsManaged), ForeignCRDs: ptr.To(false), SchedulerNames: []string{"lockstep-scheduler"}, Gang: ptr.To(GangAuto), Services: ptr.To(ServicesPerReplica),
			CustomClusterDomain: ptr.To(""), PyTorchInitImage: ptr.To("lockstep.dev/frameworkbarrier:dev"), PyTorchInitMaxTries: ptr.To[int32](100),
			ReconcilerSyncLoopPeriod: &metav1.Duration{Duration: 15 * time.Second},
		},
		Kueue:   Kueue{Enabled: ptr.To(false)},
		Tracing: Tracing{Endpoint: ptr.To("")},
	}
	got := &ControllerConfiguration{}
	SetDefaults(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("SetDefaults (-want,+got):\n%s", diff)
	}
	if errs := Validate(got); len(errs) > 0 {
		t.Errorf("the defaults are not valid: %v", errs)
	}
}

func TestSetDefaultsKeepsAnEmptyPodFailureSpec(t *testing.T) {
	config := &ControllerConfiguration{PodFailureSpec: []CompletionCodeInfo{}}
	SetDefaults(config)
	if len(config.PodFailureSpec) != 0 {
		t.Errorf("podFailureSpec: got %d codes, want the empty list that was set", len(config.PodFailureSpec))
	}
}

func TestSetDefaultsNamesTypesFailed(t *testing.T) {
	config := &ControllerConfiguration{PodFailureSpec: []CompletionCodeInfo{{
		Code: ptr.To[frameworkv1.CompletionCode](221), PodPatterns: []*PodPattern{{}},
	}}}
	SetDefaults(config)
	if got := config.PodFailureSpec[0].Type.Name; got != frameworkv1.CompletionTypeFailed {
		t.Errorf("type.name: got %q, want Failed", got)
	}
}

func TestSetConnectionDefaults(t *testing.T) {
	tests := map[string]struct {
		config      ControllerConfiguration
		env         map[string]string
		files       []string
		wantAddress string
		wantFile    string
	}{
		"in a Pod nothing is set": {},
		"KUBECONFIG goes before the home directory": {
			env:      map[string]string{"KUBECONFIG": "/k", "HOME": "/home/me"},
			files:    []string{"/k", "/home/me/.kube/config"},
			wantFile: "/k",
		},
		"a KUBECONFIG that is no file does not count": {
			env:      map[string]string{"KUBECONFIG": "/k", "HOME": "/home/me"},
			files:    []string{"/home/me/.kube/config"},
			wantFile: "/home/me/.kube/config",
		},
		"no kubeconfig at all": {
			env: map[string]string{"HOME": "/home/me"},
		},
		"an address beside a kubeconfig": {
			env:         map[string]string{"KUBE_APISERVER_ADDRESS": "http://api:8080", "KUBECONFIG": "/k"},
			files:       []string{"/k"},
			wantAddress: "http://api:8080",
			wantFile:    "/k",
		},
		"the configuration goes before the environment, even where it is empty": {
			config:      ControllerConfiguration{KubeAPIServerAddress: ptr.To("http://mine:1"), KubeConfigFilePath: ptr.To("")},
			env:         map[string]string{"KUBE_APISERVER_ADDRESS": "http://api:8080", "KUBECONFIG": "/k"},
			files:       []string{"/k"},
			wantAddress: "http://mine:1",
			wantFile:    "",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			SetConnectionDefaults(&tc.config,
				func(name string) string { return tc.env[name] },
				func(path string) bool { return slices.Contains(tc.files, path) })
			got := []string{*tc.config.KubeAPIServerAddress, *tc.config.KubeConfigFilePath}
			if diff := cmp.Diff([]string{tc.wantAddress, tc.wantFile}, got); diff != "" {
				t.Errorf("address and file (-want,+got):\n%s", diff)
			}
		})
	}
}

// TestReplicasInPodsElectOneThatActs: a configuration that says nothing of it, as a file of FrameworkController, must
// not have both replicas of a Deployment act; and the Lease has to be where the role of the Pod allows it.
func TestReplicasInPodsElectOneThatActs(t *testing.T) {
	pod := map[string]string{"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
	for name, tc := range map[string]struct {
		config ControllerConfiguration
		env    map[string]string
		files  map[string]string
		want   LeaderElection
	}{
		"in a Pod": {
			env:   pod,
			files: map[string]string{ServiceAccountNamespace: "gangs"},
			want:  LeaderElection{Enabled: ptr.To(true), Namespace: ptr.To("gangs"), Name: ptr.To("lockstep-controller")},
		},
		"in a Pod that asks an API server by its address": {
			config: ControllerConfiguration{KubeAPIServerAddress: ptr.To("http://10.10.10.10:8080")},
			env:    pod,
			files:  map[string]string{ServiceAccountNamespace: "gangs"},
			want:   LeaderElection{Enabled: ptr.To(true), Namespace: ptr.To("lockstep-system"), Name: ptr.To("lockstep-controller")},
		},
		"by hand": {
			config: ControllerConfiguration{KubeConfigFilePath: ptr.To("/home/me/.kube/config")},
			want:   LeaderElection{Enabled: ptr.To(false), Namespace: ptr.To("lockstep-system"), Name: ptr.To("lockstep-controller")},
		},
		"as the configuration says": {
			config: ControllerConfiguration{LeaderElection: LeaderElection{Enabled: ptr.To(false), Namespace: ptr.To("batch"), Name: ptr.To("mine")}},
			env:    pod,
			files:  map[string]string{ServiceAccountNamespace: "gangs"},
			want:   LeaderElection{Enabled: ptr.To(false), Namespace: ptr.To("batch"), Name: ptr.To("mine")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			SetDefaults(&tc.config)
			SetConnectionDefaults(&tc.config, func(string) string { return "" }, func(string) bool { return false })
			SetElectionDefaults(&tc.config, func(name string) string { return tc.env[name] }, func(path string) ([]byte, error) {
				content, found := tc.files[path]
				if !found {
					return nil, fs.ErrNotExist
				}
				return []byte(content), nil
			})
			if diff := cmp.Diff(tc.want, tc.config.LeaderElection); diff != "" {
				t.Errorf("leaderElection (-want,+got):\n%s", diff)
			}
		})
	}
}
