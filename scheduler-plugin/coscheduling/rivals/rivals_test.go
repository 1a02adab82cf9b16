// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package rivals

import (
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// TestARivalIsKnownWhileItShows, and told once.
func TestARivalIsKnownWhileItShows(t *testing.T) {
	var known Known
	if len(known.Names(start)) > 0 {
		t.Error("a rival is known from the start")
	}
	lease := Sign{Name: "volcano", Lasts: LeaseLasts}
	if !known.Note(lease, start) {
		t.Error("the first sign is no news")
	}
	if known.Note(lease, start.Add(time.Minute)) {
		t.Error("a rival that goes on is news")
	}
	if names := known.Names(start.Add(2 * time.Minute)); !slices.Equal(names, []string{"volcano"}) {
		t.Errorf("rivals of %v are known", names)
	}
	later := start.Add(4 * time.Minute)
	if len(known.Names(later)) > 0 {
		t.Error("a rival is known that has not shown for three minutes")
	}
	if !known.Note(lease, later) {
		t.Error("a rival that comes back is no news")
	}
	known.Note(Sign{Name: "volcano", Lasts: BindingLasts}, later)
	known.Note(lease, later)
	if len(known.Names(later.Add(9*time.Minute))) != 1 {
		t.Error("a sign that lasts shorter ends one that lasts longer")
	}
}

// TestWhoHoldsALeaseIsThere, if it has renewed it lately.
func TestWhoHoldsALeaseIsThere(t *testing.T) {
	tests := map[string]struct {
		spec coordinationv1.LeaseSpec
		want bool
	}{
		"renewed a moment ago":        {coordinationv1.LeaseSpec{HolderIdentity: ptr.To("vc-0"), RenewTime: &metav1.MicroTime{Time: start.Add(-2 * time.Second)}}, true},
		"renewed in the future":       {coordinationv1.LeaseSpec{HolderIdentity: ptr.To("vc-0"), RenewTime: &metav1.MicroTime{Time: start.Add(time.Hour)}}, true},
		"not renewed for two minutes": {coordinationv1.LeaseSpec{HolderIdentity: ptr.To("vc-0"), RenewTime: &metav1.MicroTime{Time: start.Add(-2 * time.Minute)}}, false},
		"given up":                    {coordinationv1.LeaseSpec{HolderIdentity: ptr.To(""), RenewTime: &metav1.MicroTime{Time: start}}, false},
		"never held":                  {coordinationv1.LeaseSpec{}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "volcano-system", Name: "volcano"}, Spec: tc.spec}
			sign, held := new(Leases).Sign("volcano", lease, start)
			if held != tc.want {
				t.Fatalf("that somebody holds it is %v", held)
			}
			if held && (sign.Name != "volcano" || !strings.Contains(sign.Other, "vc-0, which holds the Lease volcano-system/volcano")) {
				t.Errorf("the sign is %+v", sign)
			}
		})
	}
}

// TestClocksThatDifferHideNoRivalAndInventNone: what counts is whether the Lease is renewed.
func TestClocksThatDifferHideNoRivalAndInventNone(t *testing.T) {
	for name, skew := range map[string]time.Duration{"behind": -time.Hour, "the same": 0, "ahead": time.Hour} {
		var leases Leases
		lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("vc-0")}}
		look := func(minute int) bool {
			_, held := leases.Sign("volcano", lease, start.Add(time.Duration(minute)*time.Minute))
			return held
		}
		for minute := range 3 {
			lease.Spec.RenewTime = &metav1.MicroTime{Time: start.Add(time.Duration(minute)*time.Minute + skew)}
			// An hour behind it looks dead at first sight, and is known from the second on.
			if held := look(minute); !held && (minute > 0 || skew >= 0) {
				t.Errorf("%s: a rival that renews its Lease is not known after %d minutes", name, minute)
			}
		}
		if look(3) || look(4) {
			t.Errorf("%s: a rival is known that has not renewed its Lease", name)
		}
	}
}

// TestALeaseLongDeadShowsNoRivalHoweverSoonItIsLookedAtAgain, as it may lie there for ever.
func TestALeaseLongDeadShowsNoRivalHoweverSoonItIsLookedAtAgain(t *testing.T) {
	var leases Leases
	lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("vc-0"), RenewTime: &metav1.MicroTime{Time: start.Add(-24 * time.Hour)}}}
	for _, later := range []time.Duration{0, time.Second, time.Minute - time.Millisecond} {
		if _, held := leases.Sign("volcano", lease, start.Add(later)); held {
			t.Errorf("a rival is known %v after the first look", later)
		}
	}
}

// TestWhereALeaseIsLookedFor: where others have it by default.
func TestWhereALeaseIsLookedFor(t *testing.T) {
	for name, want := range map[string]string{"volcano": "volcano-system/volcano", "default-scheduler": "kube-system/kube-scheduler"} {
		if got := LeaseOf(name).String(); got != want {
			t.Errorf("the Lease of %s is %s, want %s", name, got, want)
		}
	}
}
