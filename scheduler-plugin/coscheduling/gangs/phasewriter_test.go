// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
)

// TestAGroupThatGoesBackwardsSaysWhatItIs: etcd was restored, and what was written since is lost.
func TestAGroupThatGoesBackwardsSaysWhatItIs(t *testing.T) {
	key := dialect.Key{Dialect: dialect.Volcano, Namespace: testNamespace, Name: "gang"}
	for version, want := range map[string]string{"900": dialect.PhaseInqueue, "1100": dialect.PhasePending, "7": dialect.PhasePending} {
		b := newBench()
		group := &dialect.Group{Key: key, UID: "u", Status: &dialect.Status{Phase: dialect.PhasePending}, ResourceVersion: "900"}
		b.Gangs.SetGroup(group)
		b.Reader.Remember(group, news.Record{Status: &dialect.Status{Phase: dialect.PhaseInqueue}, Version: "1000"})
		later := *group
		later.ResourceVersion = version
		b.Gangs.SetGroup(&later)
		known, _ := b.Look(key)
		if got := known.Record.StatusOf(known.Group, known.Foreign).Phase; got != want {
			t.Errorf("at version %s the group is taken for %s, want %s", version, got, want)
		}
	}
}

// TestWhenAStatusIsLeftToAnotherProgram: when that has changed what this scheduler wrote, twice
// within a minute, and for ten minutes.
func TestWhenAStatusIsLeftToAnotherProgram(t *testing.T) {
	key := dialect.Key{Dialect: dialect.Volcano, Namespace: testNamespace, Name: "gang"}
	type step struct {
		after time.Duration
		by    string
	}
	const ours, theirs = dialect.Writer, "vc-scheduler"
	for name, tc := range map[string]struct {
		steps       []step
		wantForeign bool
		// wantFor is for how long it is left to them, from the last step on.
		wantFor time.Duration
	}{
		"nobody has written it":                 {[]step{{0, ""}}, false, 0},
		"its maker has, before":                 {[]step{{0, "kuberay"}, {time.Second, ours}}, false, 0},
		"its maker has, and something else":     {[]step{{0, "kuberay"}, {time.Second, "kuberay"}, {time.Second, "kuberay"}}, false, 0},
		"another program has once":              {[]step{{0, ours}, {time.Second, theirs}}, true, 0},
		"another has left it out twice":         {[]step{{0, ours}, {time.Second, ""}, {time.Second, ours}, {time.Second, ""}}, true, writerPause},
		"it is seen again as it was":            {[]step{{0, ours}, {time.Second, theirs}, {time.Second, theirs}}, true, 0},
		"it is written back":                    {[]step{{0, ours}, {time.Second, theirs}, {time.Second, ours}}, false, 0},
		"another program has twice":             {[]step{{0, ours}, {time.Second, theirs}, {time.Second, ours}, {58 * time.Second, theirs}}, true, writerPause},
		"another program has twice, in a while": {[]step{{0, ours}, {time.Second, theirs}, {time.Second, ours}, {59 * time.Second, theirs}}, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			for _, s := range tc.steps {
				b.time = b.time.Add(s.after)
				b.Gangs.SetGroup(&dialect.Group{Key: key, UID: "u", Status: &dialect.Status{}, PhaseBy: s.by})
			}
			known, _ := b.Look(key)
			want := time.Time{}
			if tc.wantFor > 0 {
				want = b.time.Add(tc.wantFor)
			}
			if known.Foreign != tc.wantForeign || !known.YieldsUntil.Equal(want) {
				t.Errorf("another program has written it: %t, want %t; it is left to that until %v, want %v", known.Foreign, tc.wantForeign, known.YieldsUntil, want)
			}
			counted := map[string]int{}
			if tc.wantFor > 0 {
				counted["scheduling.volcano.sh"] = 1
			}
			if diff := cmp.Diff(counted, b.CountForeign()); diff != "" {
				t.Errorf("how many are left to others (-want, +got):\n%s", diff)
			}
			b.time = b.time.Add(tc.wantFor)
			if counts := b.CountForeign(); len(counts) > 0 {
				t.Errorf("later %v are left to others", counts)
			}
			b.Gangs.SetGroup(&dialect.Group{Key: key, UID: "another", Status: &dialect.Status{}})
			if known, _ := b.Look(key); known.Foreign || !known.YieldsUntil.IsZero() {
				t.Error("another group of the name is left to others")
			}
		})
	}
}
