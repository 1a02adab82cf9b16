// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// everyKey is what testdata/every-key.yaml says.
func everyKey() *ControllerConfiguration {
	return &ControllerConfiguration{
		TypeMeta:                           metav1.TypeMeta{APIVersion: "config.lockstep.dev/v1alpha1", Kind: "ControllerConfiguration"},
		KubeAPIServerAddress:               ptr.To("https://10.1.2.3:6443"),
		KubeConfigFilePath:                 ptr.To("/etc/lockstep/kubeconfig"),
		KubeClientQPS:                      ptr.To[float32](12.5),
		KubeClientBurst:                    ptr.To[int32](25),
		WorkerNumber:                       ptr.To[int32](7),
		LargeFrameworkCompression:          ptr.To(false),
		CRDEstablishedCheckIntervalSec:     ptr.To[int64](2),
		CRDEstablishedCheckTimeoutSec:      ptr.To[int64](20),
		ObjectLocalCacheCreationTimeoutSec: ptr.To[int64](90),
		FrameworkCompletedRetainSec:        ptr.To[int64](-1),
		FrameworkHistoryLimit:              ptr.To[int32](3),
		FrameworkMinRetryDelaySecForTransientConflictFailed: ptr.To[int64](5),
		FrameworkMaxRetryDelaySecForTransientConflictFailed: ptr.To[int64](50),
		LogObjectSnapshot: LogObjectSnapshot{
			Framework: LogFrameworkSnapshot{OnFrameworkRetry: ptr.To(false), OnFrameworkDeletion: ptr.To(false)},
			Task:      LogTaskSnapshot{OnTaskRetry: ptr.To(false), OnTaskDeletion: ptr.To(false)},
			Pod:       LogPodSnapshot{OnPodDeletion: ptr.To(false)},
			MaskEnv:   MaskEnv{Policy: ptr.To(MaskEnvByName), NameFragments: []string{"dsn"}},
		},
		PodFailureSpec: []CompletionCodeInfo{{
			Code:   ptr.To[frameworkv1.CompletionCode](221),
			Phrase: "OutOfQuota",
			Type: frameworkv1.CompletionType{
				Name:       frameworkv1.CompletionTypeFailed,
				Attributes: []frameworkv1.CompletionTypeAttribute{frameworkv1.AttributeTransient, frameworkv1.AttributeConflict},
			},
			PodPatterns: []*PodPattern{{
				NameRegex:    "-worker-",
				ReasonRegex:  "^Quota$",
				MessageRegex: "(?ms)exceeded",
				Containers: []*ContainerPattern{{
					NameRegex:    "^main$",
					ReasonRegex:  "^Error$",
					MessageRegex: "no space left",
					SignalRange:  Int32Range{Min: ptr.To[int32](9)},
					CodeRange:    Int32Range{Min: ptr.To[int32](1), Max: ptr.To[int32](127)},
				}},
			}},
		}},
		GangSchedulerName:    ptr.To("team-scheduler"),
		UnknownFields:        ptr.To(UnknownFieldsRefuse),
		StatusCoalesceWindow: &metav1.Duration{Duration: 250 * time.Millisecond},
		PodBatchSize:         ptr.To[int32](8),
		VolcanoJobs: VolcanoJobs{
			Enabled: ptr.To(true), SchedulerNames: []string{"team-scheduler"}, TopologyTiers: map[string]string{"1": "example.com/rack"},
		},
		KubeflowJobs: KubeflowJobs{
			Enabled: ptr.To(true), TakeJobs: ptr.To(TakeJobsScheduler), ForeignCRDs: ptr.To(true), Namespaces: []string{"team-a", "team-b"},
			SchedulerNames: []string{"team-scheduler"}, Gang: ptr.To(GangAlways), Services: ptr.To(ServicesPerJob), CustomClusterDomain: ptr.To("cluster.local"),
			PyTorchInitImage: ptr.To("registry.example.com/alpine:3"), PyTorchInitCommand: []string{"sh", "-c", "until nslookup $MASTER_ADDR; do sleep 2; done"}, PyTorchInitMaxTries: ptr.To[int32](5),
			ReconcilerSyncLoopPeriod: &metav1.Duration{Duration: 30 * time.Second},
		},
		Kueue:          Kueue{Enabled: ptr.To(true)},
		Tracing:        Tracing{Endpoint: ptr.To("https://traces.example.com/v1/traces")},
		LeaderElection: LeaderElection{Enabled: ptr.To(true), Namespace: ptr.To("batch"), Name: ptr.To("lockstep")},
	}
}

func TestDecodeReadsEveryKey(t *testing.T) {
	data, err := os.ReadFile("testdata/every-key.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(everyKey(), got); diff != "" {
		t.Errorf("Decode (-want,+got):\n%s", diff)
	}
	if errs := Validate(got); len(errs) > 0 {
		t.Errorf("Validate: %v", errs)
	}
	SetDefaults(got)
	if diff := cmp.Diff(everyKey(), got); diff != "" {
		t.Errorf("SetDefaults changed what was set (-want,+got):\n%s", diff)
	}
}

func TestDecode(t *testing.T) {
	tests := map[string]struct {
		file    string
		want    *ControllerConfiguration
		wantErr string
	}{
		"an empty file": {
			file: "",
			want: &ControllerConfiguration{},
		},
		"nothing but comments, as FrameworkController's file of defaults": {
			file: "# all defaults\n#workerNumber: 500\n",
			want: &ControllerConfiguration{},
		},
		"no apiVersion and kind, as FrameworkController's file": {
			file: "kubeClientQps: 200\n",
			want: &ControllerConfiguration{KubeClientQPS: ptr.To[float32](200)},
		},
		"a key without a value is left out": {
			file: "kubeConfigFilePath:\nworkerNumber: 3\n",
			want: &ControllerConfiguration{WorkerNumber: ptr.To[int32](3)},
		},
		"a zero is a value": {
			file: "kubeClientBurst: 0\nframeworkCompletedRetainSec: 0\nlargeFrameworkCompression: false\n",
			want: &ControllerConfiguration{
				KubeClientBurst: ptr.To[int32](0), FrameworkCompletedRetainSec: ptr.To[int64](0), LargeFrameworkCompression: ptr.To(false),
			},
		},
		"an empty podFailureSpec is not a missing one": {
			file: "podFailureSpec: []\n",
			want: &ControllerConfiguration{PodFailureSpec: []CompletionCodeInfo{}},
		},
		"JSON": {
			file: `{"workerNumber": 3}`,
			want: &ControllerConfiguration{WorkerNumber: ptr.To[int32](3)},
		},
		"a document that begins with dashes": {
			file: "---\nworkerNumber: 3\n",
			want: &ControllerConfiguration{WorkerNumber: ptr.To[int32](3)},
		},

		"an unknown key": {
			file:    "workerNumbers: 3\n",
			wantErr: `unknown field "workerNumbers"`,
		},
		"a key in the wrong case": {
			file:    "WorkerNumber: 3\n",
			wantErr: `unknown field "WorkerNumber"`,
		},
		"unknown keys at any depth, all at once": {
			file:    "colour: red\npodFailureSpec:\n- code: 1\n  podPatterns:\n  - containers:\n    - exitCode: 3\n",
			wantErr: `unknown field "colour"; unknown field "podFailureSpec[0].podPatterns[0].containers[0].exitCode"`,
		},
		"a key that is there twice": {
			file:    "workerNumber: 3\nworkerNumber: 4\n",
			wantErr: `yaml: unmarshal errors: line 2: key "workerNumber" already set in map`,
		},
		"values of wrong types, all at once": {
			file: "workerNumber: many\nkubeClientQps: fast\nlargeFrameworkCompression: 1\nstatusCoalesceWindow: soon\npodFailureSpec: {code: 1}\nleaderElection: true\n",
			wantErr: "kubeClientQps: got string, want a number; largeFrameworkCompression: got number, want true or false; " +
				"leaderElection: got bool, want a mapping; podFailureSpec: got object, want a list; " +
				`statusCoalesceWindow: time: invalid duration "soon"; workerNumber: got string, want a whole number of 32 bits`,
		},
		"a fraction where a whole number is wanted": {
			file:    "workerNumber: 1.5\n",
			wantErr: "workerNumber: got number 1.5, want a whole number of 32 bits",
		},
		"a number that is too large": {
			file:    "podFailureSpec:\n- code: 3000000000\n",
			wantErr: "podFailureSpec.code: got number 3000000000, want a whole number of 32 bits",
		},
		"a list": {
			file:    "- workerNumber: 3\n",
			wantErr: "a configuration is a mapping of keys to values",
		},
		"text": {
			file:    "hello\n",
			wantErr: "a configuration is a mapping of keys to values",
		},
		"no YAML": {
			file:    "workerNumber: [3\n",
			wantErr: "yaml: line",
		},
		"two documents": {
			file:    "workerNumber: 3\n---\npodBatchSize: 3\n",
			wantErr: "more than one YAML document",
		},
		"another apiVersion": {
			file:    "apiVersion: config.lockstep.dev/v1\n",
			wantErr: `apiVersion: got "config.lockstep.dev/v1", want "config.lockstep.dev/v1alpha1" or nothing`,
		},
		"another kind": {
			file:    "kind: KubeSchedulerConfiguration\n",
			wantErr: `kind: got "KubeSchedulerConfiguration", want "ControllerConfiguration" or nothing`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Decode([]byte(tc.file))
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("error: got %v, want %s", err, tc.wantErr)
				}
				if strings.Contains(err.Error(), "\n") {
					t.Errorf("error is not one line: %q", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Decode (-want,+got):\n%s", diff)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("workerNumber: 3\n")
	f.Add("podFailureSpec: [{code: 1, podPatterns: [null]}]\n---\n")
	f.Fuzz(func(t *testing.T, file string) {
		config, err := Decode([]byte(file))
		if (config == nil) == (err == nil) {
			t.Errorf("Decode: got %v and %v, want one of them", config, err)
		}
		if config != nil {
			SetDefaults(config)
			Validate(config)
		}
	})
}
