// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"fmt"
	"strings"
	"testing"

	cliflag "k8s.io/component-base/cli/flag"
)

// TestTheHelpTellsTheDefaultsThatRun: without --config and without the flags of the same
// names, the configuration has these values.
func TestTheHelpTellsTheDefaultsThatRun(t *testing.T) {
	p, err := New(Defaults{Name: "some-scheduler", LeaseNamespace: "some-namespace", QPS: 12, Burst: 34, Plugin: "Some"})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := p.Configuration()
	if err != nil {
		t.Fatal(err)
	}
	for flag, want := range map[string]string{
		"kube-api-qps":                    fmt.Sprint(cfg.ClientConnection.QPS),
		"kube-api-burst":                  fmt.Sprint(cfg.ClientConnection.Burst),
		"leader-elect-resource-name":      cfg.LeaderElection.ResourceName,
		"leader-elect-resource-namespace": cfg.LeaderElection.ResourceNamespace,
	} {
		var told []string
		for _, set := range p.Flags().FlagSets {
			if f := set.Lookup(flag); f != nil {
				told = append(told, f.DefValue)
			}
		}
		if len(told) != 1 || told[0] != want {
			t.Errorf("the help of --%s tells %q, want %q", flag, told, want)
		}
	}
}

// TestAFlagThatKubeSchedulerDropsIsNoticed, and not passed over.
func TestAFlagThatKubeSchedulerDropsIsNoticed(t *testing.T) {
	err := (&Defaults{}).tell(&cliflag.NamedFlagSets{})
	if err == nil || !strings.Contains(err.Error(), "kube-scheduler has no flag --") {
		t.Errorf("it said %v", err)
	}
}
