// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestValidate gives, for each rule, the values at both ends of the legal range
// and the nearest that are not legal, and the message for those.
func TestValidate(t *testing.T) {
	const (
		legalCode    = "must be at most -1000, from 1 to 199, or at least 220: the others are predefined"
		legalAddress = "must be http://host:port or https://host:port"
	)
	tests := map[string]struct {
		file string
		want []string
	}{
		"nothing is set": {file: ""},

		"addresses":          {file: "kubeApiServerAddress: http://10.10.10.10:8080"},
		"an address by name": {file: "kubeApiServerAddress: https://api.example.com:443"},
		"an IPv6 address":    {file: "kubeApiServerAddress: https://[fd00::1]:6443"},
		"an empty address":   {file: "kubeApiServerAddress: ''"},
		"an address without a port": {
			file: "kubeApiServerAddress: http://10.10.10.10",
			want: []string{`kubeApiServerAddress: Invalid value: "http://10.10.10.10": ` + legalAddress},
		},
		"an address without a scheme": {
			file: "kubeApiServerAddress: 10.10.10.10:8080",
			want: []string{`kubeApiServerAddress: Invalid value: "10.10.10.10:8080": ` + legalAddress},
		},
		"an address of another scheme": {
			file: "kubeApiServerAddress: ftp://10.10.10.10:8080",
			want: []string{`kubeApiServerAddress: Invalid value: "ftp://10.10.10.10:8080": ` + legalAddress},
		},
		"an address with a path": {
			file: "kubeApiServerAddress: http://10.10.10.10:8080/api",
			want: []string{`kubeApiServerAddress: Invalid value: "http://10.10.10.10:8080/api": ` + legalAddress},
		},
		"an address without a host": {
			file: "kubeApiServerAddress: http://:8080",
			want: []string{`kubeApiServerAddress: Invalid value: "http://:8080": ` + legalAddress},
		},
		"an address with port 0": {
			file: "kubeApiServerAddress: http://a:0",
			want: []string{`kubeApiServerAddress: Invalid value: "http://a:0": ` + legalAddress},
		},

		"a collector of traces":          {file: "tracing: {endpoint: 'http://collector:4318/v1/traces'}"},
		"a collector of traces over TLS": {file: "tracing: {endpoint: 'https://traces.example.com/otlp/v1/traces'}"},
		"no collector of traces":         {file: "tracing: {endpoint: ''}"},
		"a collector of traces without a scheme": {
			file: "tracing: {endpoint: 'collector:4318'}",
			want: []string{`tracing.endpoint: Invalid value: "collector:4318": must be http[s]://host[:port]/path, without user, query and fragment, of at most 1024 characters`},
		},
		"a collector of traces with a password": {
			file: "tracing: {endpoint: 'http://u:hunter2@collector:4318/v1/traces'}",
			want: []string{`tracing.endpoint: Invalid value: "http://u:xxxxx@collector:4318/v1/traces": must be http[s]://host[:port]/path, without user, query and fragment, of at most 1024 characters`},
		},
		"a collector of traces without a path": {
			file: "tracing: {endpoint: 'http://collector:4318'}",
			want: []string{`tracing.endpoint: Invalid value: "http://collector:4318": must be http[s]://host[:port]/path, without user, query and fragment, of at most 1024 characters`},
		},

		"least client rate":   {file: "{kubeClientQps: 0.1, kubeClientBurst: 0}"},
		"highest client rate": {file: "{kubeClientQps: 10000, kubeClientBurst: 10000}"},
		"client rate too low": {
			file: "{kubeClientQps: 0, kubeClientBurst: -1}",
			want: []string{
				"kubeClientQps: Invalid value: 0: must be more than 0 and at most 10000",
				"kubeClientBurst: Invalid value: -1: must be from 0 to 10000",
			},
		},
		"client rate too high": {
			file: "{kubeClientQps: 10000.5, kubeClientBurst: 10001}",
			want: []string{
				"kubeClientQps: Invalid value: 10000.5: must be more than 0 and at most 10000",
				"kubeClientBurst: Invalid value: 10001: must be from 0 to 10000",
			},
		},
		"one worker": {file: "workerNumber: 1"},
		"no worker": {
			file: "workerNumber: 0",
			want: []string{"workerNumber: Invalid value: 0: must be at least 1"},
		},

		"shortest times": {
			file: "{crdEstablishedCheckIntervalSec: 1, crdEstablishedCheckTimeoutSec: 10, objectLocalCacheCreationTimeoutSec: 60}",
		},
		"times too short, all at once": {
			file: "{crdEstablishedCheckIntervalSec: 0, crdEstablishedCheckTimeoutSec: 9, objectLocalCacheCreationTimeoutSec: 59}",
			want: []string{
				"crdEstablishedCheckIntervalSec: Invalid value: 0: must be at least 1",
				"crdEstablishedCheckTimeoutSec: Invalid value: 9: must be at least 10",
				"objectLocalCacheCreationTimeoutSec: Invalid value: 59: must be at least 60",
			},
		},
		"retention of any length": {file: "frameworkCompletedRetainSec: -9223372036854775808"},
		"retry delays of 0": {
			file: "{frameworkMinRetryDelaySecForTransientConflictFailed: 0, frameworkMaxRetryDelaySecForTransientConflictFailed: 0}",
		},
		"negative retry delays": {
			file: "{frameworkMinRetryDelaySecForTransientConflictFailed: -1, frameworkMaxRetryDelaySecForTransientConflictFailed: -1}",
			want: []string{
				"frameworkMinRetryDelaySecForTransientConflictFailed: Invalid value: -1: must be at least 0",
				"frameworkMaxRetryDelaySecForTransientConflictFailed: Invalid value: -1: must be at least 0",
			},
		},
		"largest retry delay below the least": {
			file: "{frameworkMinRetryDelaySecForTransientConflictFailed: 61, frameworkMaxRetryDelaySecForTransientConflictFailed: 60}",
			want: []string{
				"frameworkMaxRetryDelaySecForTransientConflictFailed: Invalid value: 60: must be at least frameworkMinRetryDelaySecForTransientConflictFailed, which is 61",
			},
		},
		"largest retry delay below the default of the least": {
			file: "frameworkMaxRetryDelaySecForTransientConflictFailed: 59",
			want: []string{
				"frameworkMaxRetryDelaySecForTransientConflictFailed: Invalid value: 59: must be at least frameworkMinRetryDelaySecForTransientConflictFailed, which is 60",
			},
		},
		"least retry delay above the default of the largest": {
			file: "frameworkMinRetryDelaySecForTransientConflictFailed: 901",
			want: []string{
				"frameworkMaxRetryDelaySecForTransientConflictFailed: Invalid value: 900: must be at least frameworkMinRetryDelaySecForTransientConflictFailed, which is 901",
			},
		},
		"shortest window": {file: "statusCoalesceWindow: 0s"},
		"longest window":  {file: "statusCoalesceWindow: 1m"},
		"a negative window": {
			file: "statusCoalesceWindow: -1ms",
			want: []string{`statusCoalesceWindow: Invalid value: "-1ms": must be from 0s to 1m`},
		},
		"a window that is too long": {
			file: "statusCoalesceWindow: 61s",
			want: []string{`statusCoalesceWindow: Invalid value: "1m1s": must be from 0s to 1m`},
		},

		"no history":      {file: "frameworkHistoryLimit: 0"},
		"longest history": {file: "frameworkHistoryLimit: 20"},
		"a history that is too long": {
			file: "frameworkHistoryLimit: 21",
			want: []string{"frameworkHistoryLimit: Invalid value: 21: must be from 0 to 20"},
		},
		"less than no history": {
			file: "frameworkHistoryLimit: -1",
			want: []string{"frameworkHistoryLimit: Invalid value: -1: must be from 0 to 20"},
		},

		"smallest batch": {file: "podBatchSize: 1"},
		"largest batch":  {file: "podBatchSize: 1000"},
		"no batch": {
			file: "podBatchSize: 0",
			want: []string{"podBatchSize: Invalid value: 0: must be from 1 to 1000"},
		},
		"a batch that is too large": {
			file: "podBatchSize: 1001",
			want: []string{"podBatchSize: Invalid value: 1001: must be from 1 to 1000"},
		},
		"Volcano Jobs of one scheduler, and of none": {
			file: `volcanoJobs: {enabled: true, schedulerNames: [""], topologyTiers: {"1": rack, spine: example.com/spine}}`,
		},
		"Volcano Jobs whose schedulers are not named": {
			file: "{gangSchedulerName: ours, volcanoJobs: {enabled: true}}",
			want: []string{`volcanoJobs.schedulerNames: Required value: set [ours] if Volcano runs in this cluster, too, ` +
				`or [ours, volcano, ""] if it does not, to also run Jobs that name Volcano's scheduler or none`},
		},
		"Volcano Jobs that are not run, and whose schedulers are not named": {
			file: "volcanoJobs: {enabled: false}",
		},
		"Volcano Jobs of no scheduler at all": {
			file: "volcanoJobs: {schedulerNames: []}",
			want: []string{"volcanoJobs.schedulerNames: Invalid value: 0: must have from 1 to 16 names"},
		},
		"schedulers of Volcano Jobs that no Pod can have": {
			file: "volcanoJobs: {schedulerNames: [a, a, " + strings.Repeat("b", 64) + ", A]}",
			want: []string{
				`volcanoJobs.schedulerNames[1]: Duplicate value: "a"`,
				`volcanoJobs.schedulerNames[2]: Invalid value: "` + strings.Repeat("b", 64) + `": must have at most 63 characters`,
				`volcanoJobs.schedulerNames[3]: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
			},
		},
		"tiers that no node can have a label for": {
			file: `volcanoJobs: {topologyTiers: {"": rack, "2": a/b/c}}`,
			want: []string{
				`volcanoJobs.topologyTiers: Invalid value: "": must have the number or the name of a tier as key`,
				`volcanoJobs.topologyTiers[2]: Invalid value: "a/b/c": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
			},
		},
		"Kubeflow's jobs of two namespaces, at the ends of what is legal": {
			file: `kubeflowJobs: {takeJobs: All, gang: Auto, namespaces: [a, b], customClusterDomain: "", pytorchInitMaxTries: 1, reconcilerSyncLoopPeriod: 1s}`,
		},
		"Kubeflow's jobs, at the other ends": {
			file: `kubeflowJobs: {pytorchInitMaxTries: 1000000, reconcilerSyncLoopPeriod: 5m, pytorchInitImage: ` + strings.Repeat("a", 1024) + `}`,
		},
		"settings of Kubeflow's jobs that nobody knows": {
			file: `kubeflowJobs: {takeJobs: some, gang: Never, services: PerPod}`,
			want: []string{
				`kubeflowJobs.takeJobs: Unsupported value: "some": supported values: "Managed", "Scheduler", "All"`,
				`kubeflowJobs.gang: Unsupported value: "Never": supported values: "Auto", "Always"`,
				`kubeflowJobs.services: Unsupported value: "PerPod": supported values: "PerReplica", "PerJob"`,
			},
		},
		"schedulers of Kubeflow's jobs that no template can name": {
			file: `kubeflowJobs: {schedulerNames: [a, "", a]}`,
			want: []string{
				`kubeflowJobs.schedulerNames[1]: Invalid value: "": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
				`kubeflowJobs.schedulerNames[2]: Duplicate value: "a"`,
			},
		},
		"namespaces of Kubeflow's jobs that can't be": {
			file: `kubeflowJobs: {namespaces: [a, a.b, a]}`,
			want: []string{
				`kubeflowJobs.namespaces[1]: Invalid value: "a.b": must not contain dots`,
				`kubeflowJobs.namespaces[2]: Duplicate value: "a"`,
			},
		},
		"too many namespaces of Kubeflow's jobs": {
			file: "kubeflowJobs: {namespaces: [" + manyNames(1001) + "]}",
			want: []string{"kubeflowJobs.namespaces: Invalid value: 1001: must have at most 1000 namespaces"},
		},
		"namespaces that can't be": {
			file: `namespaces: [a, a.b, a]`,
			want: []string{
				`namespaces[1]: Invalid value: "a.b": must not contain dots`,
				`namespaces[2]: Duplicate value: "a"`,
			},
		},
		"too many namespaces": {
			file: "namespaces: [" + manyNames(101) + "]",
			want: []string{"namespaces: Invalid value: 101: must have at most 100 namespaces"},
		},
		"a domain, an image, tries and a period that can't be": {
			file: `kubeflowJobs: {customClusterDomain: "a b", pytorchInitImage: "a b", pytorchInitMaxTries: 0, reconcilerSyncLoopPeriod: 5m1s}`,
			want: []string{
				`kubeflowJobs.customClusterDomain: Invalid value: "a b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
				`kubeflowJobs.pytorchInitImage: Invalid value: "a b": must have from 1 to 1024 characters, none of them a space`,
				"kubeflowJobs.pytorchInitMaxTries: Invalid value: 0: must be from 1 to 1000000",
				`kubeflowJobs.reconcilerSyncLoopPeriod: Invalid value: "5m1s": must be from 1s to 5m`,
			},
		},
		"a command that is too long": {
			file: `kubeflowJobs: {pytorchInitCommand: [` + strings.Repeat("a, ", 16) + strings.Repeat("a", 4097) + `]}`,
			want: []string{
				"kubeflowJobs.pytorchInitCommand: Too many: 17: must have at most 16 items",
				"kubeflowJobs.pytorchInitCommand[16]: Too long: may not be more than 4096 bytes",
			},
		},
		"no image, and too short a period": {
			file: `kubeflowJobs: {pytorchInitImage: "", reconcilerSyncLoopPeriod: 999ms}`,
			want: []string{
				`kubeflowJobs.pytorchInitImage: Invalid value: "": must have from 1 to 1024 characters, none of them a space`,
				`kubeflowJobs.reconcilerSyncLoopPeriod: Invalid value: "999ms": must be from 1s to 5m`,
			},
		},
		"names that no object can have": {
			file: "{gangSchedulerName: My_Scheduler, leaderElection: {namespace: a.b, name: A}}",
			want: []string{
				`gangSchedulerName: Invalid value: "My_Scheduler": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
				`leaderElection.namespace: Invalid value: "a.b": must not contain dots`,
				`leaderElection.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
			},
		},

		"every variable masked":                {file: "logObjectSnapshot: {maskEnv: {policy: All}}"},
		"no variable masked":                   {file: "logObjectSnapshot: {maskEnv: {policy: None}}"},
		"variables masked by configured names": {file: "logObjectSnapshot: {maskEnv: {nameFragments: [dsn]}}"},
		"a policy of masking that is none": {
			file: "logObjectSnapshot: {maskEnv: {policy: all}}",
			want: []string{`logObjectSnapshot.maskEnv.policy: Unsupported value: "all": supported values: "ByName", "All", "None"`},
		},
		"names to mask with a policy that has no use for them": {
			file: "logObjectSnapshot: {maskEnv: {policy: All, nameFragments: [dsn]}}",
			want: []string{"logObjectSnapshot.maskEnv.nameFragments: Forbidden: must be left out unless policy is ByName"},
		},
		"no names to mask": {
			file: "logObjectSnapshot: {maskEnv: {nameFragments: []}}",
			want: []string{"logObjectSnapshot.maskEnv.nameFragments: Required value: must have at least one fragment; policy None masks no variable"},
		},
		"an empty name to mask": {
			file: "logObjectSnapshot: {maskEnv: {nameFragments: [dsn, '']}}",
			want: []string{`logObjectSnapshot.maskEnv.nameFragments[1]: Invalid value: "": must not be empty; policy All masks every variable`},
		},

		"codes next to the predefined ones": {
			file: "podFailureSpec: [{code: -1000, podPatterns: [{}]}, {code: 1, podPatterns: [{}]}, {code: 199, podPatterns: [{}]}, {code: 220, podPatterns: [{}]}]",
		},
		"predefined codes": {
			file: "podFailureSpec: [{code: -999, podPatterns: [{}]}, {code: 0, podPatterns: [{}]}, {code: 200, podPatterns: [{}]}, {code: 219, podPatterns: [{}]}]",
			want: []string{
				"podFailureSpec[0].code: Invalid value: -999: " + legalCode,
				"podFailureSpec[1].code: Invalid value: 0: " + legalCode,
				"podFailureSpec[2].code: Invalid value: 200: " + legalCode,
				"podFailureSpec[3].code: Invalid value: 219: " + legalCode,
			},
		},
		"a code left out": {
			file: "podFailureSpec: [{phrase: Odd, podPatterns: [{}]}]",
			want: []string{"podFailureSpec[0].code: Required value: " + legalCode},
		},
		"a code twice": {
			file: "podFailureSpec: [{code: 221, podPatterns: [{}]}, {code: 222, podPatterns: [{}]}, {code: 221, podPatterns: [{}]}]",
			want: []string{"podFailureSpec[2].code: Invalid value: 221: must be unique, and is that of podFailureSpec[0] too"},
		},
		"a type without a name": {
			file: "podFailureSpec: [{code: 221, type: {attributes: [Permanent]}, podPatterns: [{}]}]",
		},
		"a type that is no failure": {
			file: "podFailureSpec: [{code: 221, type: {name: Succeeded}, podPatterns: [{}]}]",
			want: []string{`podFailureSpec[0].type.name: Unsupported value: "Succeeded": supported values: "Failed"`},
		},
		"an attribute that nothing knows": {
			file: "podFailureSpec: [{code: 221, type: {attributes: [Transient, Transcient]}, podPatterns: [{}]}]",
			want: []string{`podFailureSpec[0].type.attributes[1]: Unsupported value: "Transcient": supported values: "Transient", "Permanent", "Conflict"`},
		},
		"no patterns": {
			file: "podFailureSpec: [{code: 221}, {code: 222, podPatterns: []}]",
			want: []string{
				"podFailureSpec[0].podPatterns: Required value: must have at least one pattern; {} fits every failed Pod",
				"podFailureSpec[1].podPatterns: Required value: must have at least one pattern; {} fits every failed Pod",
			},
		},
		"patterns that are null": {
			file: "podFailureSpec: [{code: 221, podPatterns: [{}, null]}, {code: 222, podPatterns: [{containers: [null]}]}]",
			want: []string{
				"podFailureSpec[0].podPatterns[1]: Required value: must not be null; {} fits every failed Pod",
				"podFailureSpec[1].podPatterns[0].containers[0]: Required value: must not be null; {} fits every container",
			},
		},
		"expressions that can't be compiled, each": {
			file: `podFailureSpec: [{code: 221, podPatterns: [{nameRegex: '(', reasonRegex: '[', messageRegex: '(?<!a)', containers: [{nameRegex: '*', reasonRegex: 'a{2,1}', messageRegex: '\8'}]}]}]`,
			want: []string{
				`podFailureSpec[0].podPatterns[0].nameRegex: Invalid value: "(": must be a regular expression of Go (RE2): error parsing regexp: missing closing ): ` + "`(`",
				`podFailureSpec[0].podPatterns[0].reasonRegex: Invalid value: "[": must be a regular expression of Go (RE2): error parsing regexp: missing closing ]: ` + "`[`",
				`podFailureSpec[0].podPatterns[0].messageRegex: Invalid value: "(?<!a)": must be a regular expression of Go (RE2): error parsing regexp: invalid named capture: ` + "`(?<!a)`",
				`podFailureSpec[0].podPatterns[0].containers[0].nameRegex: Invalid value: "*": must be a regular expression of Go (RE2): error parsing regexp: missing argument to repetition operator: ` + "`*`",
				`podFailureSpec[0].podPatterns[0].containers[0].reasonRegex: Invalid value: "a{2,1}": must be a regular expression of Go (RE2): error parsing regexp: invalid repeat count: ` + "`{2,1}`",
				`podFailureSpec[0].podPatterns[0].containers[0].messageRegex: Invalid value: "\\8": must be a regular expression of Go (RE2): error parsing regexp: invalid escape sequence: ` + "`\\8`",
			},
		},
		"ranges of one number and with one end": {
			file: "podFailureSpec: [{code: 221, podPatterns: [{containers: [{signalRange: {min: 9, max: 9}, codeRange: {max: 3}}]}]}]",
		},
		"ranges the wrong way round": {
			file: "podFailureSpec: [{code: 221, podPatterns: [{containers: [{signalRange: {min: 9, max: 8}, codeRange: {min: 1, max: 0}}]}]}]",
			want: []string{
				"podFailureSpec[0].podPatterns[0].containers[0].signalRange.max: Invalid value: 8: must be at least min, which is 9",
				"podFailureSpec[0].podPatterns[0].containers[0].codeRange.max: Invalid value: 0: must be at least min, which is 1",
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			config, err := Decode([]byte(tc.file))
			if err != nil {
				t.Fatal(err)
			}
			SetDefaults(config)
			var got []string
			for _, err := range Validate(config) {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Validate (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestValidateIgnoresWhatIsNotSet(t *testing.T) {
	if errs := Validate(&ControllerConfiguration{}); len(errs) > 0 {
		t.Errorf("Validate without defaults: %v", errs)
	}
}

// manyNames is a list of n names.
func manyNames(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("n", i)
	}
	return strings.Join(names, ", ")
}
