// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"strings"
	"testing"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
)

func TestAPortThatThereCantBeIsRefusedByItsFlag(t *testing.T) {
	for plugin, flag := range map[string]string{
		"tensorflow": "port=0", "pytorch": "port=70000", "mpi": "port=-1", "ray": "dashboardPort=65536",
	} {
		t.Run(plugin, func(t *testing.T) {
			s := given(t, withSpec(job(ofTask("head", 1), ofTask("master", 1)), func(s *batchv1alpha1.JobSpec) {
				s.Plugins = map[string]batchv1alpha1.PluginFlags{plugin: {"--" + flag}}
			}), nil)
			s.after(3).hasPods()
			name, _, _ := strings.Cut(flag, "=")
			state := s.written.State
			for _, part := range []string{"spec.plugins[" + plugin + "]", "--" + name + " ", "from 1 to 65535"} {
				if state.Reason != ReasonInvalidJob || !strings.Contains(state.Message, part) {
					t.Errorf("the state is %+v, want %q in it", state, part)
				}
			}
		})
	}
}

func TestTheUserIsToldThatRayIsNotStarted(t *testing.T) {
	s := given(t, withSpec(job(ofTask("head", 1), ofTask("worker", 1)), func(s *batchv1alpha1.JobSpec) {
		s.Plugins = map[string]batchv1alpha1.PluginFlags{"ray": {"--headContainer=c"}}
	}), nil)
	s.until(rr)
	warned := 0
	for _, event := range s.events {
		if event.Warning && event.Reason == ReasonPluginError {
			warned++
			if !strings.Contains(event.Message, `--workerContainer must name one of c`) {
				t.Errorf("the warning is %q", event.Message)
			}
		}
	}
	if warned != 1 {
		t.Errorf("%d warnings, want one: of the worker's container", warned)
	}
}
