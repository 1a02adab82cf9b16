// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const gi = 1 << 30

// TestWhatNodesCanNotHaveIsNotAskedFor: tools write names of quotas, and what is no quantity.
func TestWhatNodesCanNotHaveIsNotAskedFor(t *testing.T) {
	tests := map[string]struct {
		list map[string]any
		want Amounts
	}{
		"what nodes have": {
			map[string]any{"cpu": "13", "memory": "48Gi", "ephemeral-storage": "1G", "pods": int64(7), "hugepages-2Mi": "4Mi", "example.com/gpu": "2"},
			Amounts{"cpu": 13000, "memory": 48 * gi, "ephemeral-storage": 1e9, "pods": 7, "hugepages-2Mi": 4 << 20, "example.com/gpu": 2},
		},
		"the larger one of a resource and of its quota": {
			map[string]any{"cpu": "2", "requests.cpu": "3", "memory": "2Gi", "requests.memory": "1Gi", "requests.example.com/gpu": "1"},
			Amounts{"cpu": 3000, "memory": 2 * gi, "example.com/gpu": 1},
		},
		"what only quotas know": {
			map[string]any{"cpu": "1", "limits.cpu": "9", "count/pods": "9", "count/jobs.batch": "9", "services": "9", "requests.storage": "9Gi",
				"gold.storageclass.storage.k8s.io/requests.storage": "9Gi", "limits.example.com/gpu": "9", "kubernetes.io/a": "9", "a/b/c": "9"},
			Amounts{"cpu": 1000},
		},
		"huge pages of no size": {
			map[string]any{"cpu": "1", "hugepages-": "9", "hugepages-large": "9", "hugepages-0": "9", "hugepages--2Mi": "9", "hugepages-2Mi/a b": "9",
				"hugepages-" + strings.Repeat("1", 1000): "9", "hugepages-" + strings.Repeat("0", 60) + "1": "9"},
			Amounts{"cpu": 1000},
		},
		"numbers": {map[string]any{"cpu": 1.5, "memory": int64(1024)}, Amounts{"cpu": 1500, "memory": 1024}},
		"what is no amount": {
			map[string]any{"cpu": "many", "memory": "-1Gi", "pods": nil, "ephemeral-storage": []any{"1"}, "example.com/gpu": ""},
			nil,
		},
		"what would take for ever to read": {map[string]any{"cpu": "1e2000000000", "memory": "1.0000000000000000001e2000000000"}, nil},
		"more than there is":               {map[string]any{"cpu": "9E", "memory": "999E"}, Amounts{"cpu": maxAmount, "memory": maxAmount}},
		"nothing":                          {nil, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Read(tc.list), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

// TestAListOfAnyLengthIsBounded: others write it.
func TestAListOfAnyLengthIsBounded(t *testing.T) {
	list := map[string]any{}
	for i := range 1000 {
		list[fmt.Sprintf("example.com/%d", i)] = "1"
	}
	if got := len(Read(list)); got != maxNames {
		t.Errorf("%d resources count, want %d", got, maxNames)
	}
}

// TestResourcesOfWhichNothingIsAskedHideNoOthers: a Pod may name any number of them.
func TestResourcesOfWhichNothingIsAskedHideNoOthers(t *testing.T) {
	raw, list := map[string]any{"cpu": "32", "z.example.com/gpu": "1"}, corev1.ResourceList{"cpu": resource.MustParse("32"), "z.example.com/gpu": resource.MustParse("1")}
	for i := range maxNames {
		name := fmt.Sprintf("a.example.com/r%d", i)
		raw[name], list[corev1.ResourceName(name)] = "0", resource.MustParse("0")
	}
	want := Amounts{"cpu": 32000, "z.example.com/gpu": 1}
	if diff := cmp.Diff(want, Read(raw)); diff != "" {
		t.Errorf("-want, +read:\n%s", diff)
	}
	if diff := cmp.Diff(want, Of(list)); diff != "" {
		t.Errorf("-want, +of:\n%s", diff)
	}
}

// TestBothWaysOfReadingAgree: lists of Lockstep's own groups come as quantities.
func TestBothWaysOfReadingAgree(t *testing.T) {
	raw, list := map[string]any{}, corev1.ResourceList{}
	for name, amount := range (Amounts{"cpu": 1500, "memory": 48 * gi, "example.com/gpu": 2}).List() {
		raw[string(name)], list[name] = amount.String(), amount
	}
	if diff := cmp.Diff(Read(raw), Of(list)); diff != "" {
		t.Errorf("-read, +of:\n%s", diff)
	}
}

// alike are members that take the same.
type alike struct {
	each Amounts
	n    int
}

func TestARestIsCut(t *testing.T) {
	tests := map[string]struct {
		rest, model Amounts
		toCome      int
		want        []alike
	}{
		"nothing": {Amounts{"cpu": 0}, Amounts{"cpu": 1}, 3, nil},
		"no larger than the model in any resource": {
			Amounts{"cpu": 4000, "memory": 12 * gi}, Amounts{"cpu": 2000, "memory": 2 * gi}, 0,
			[]alike{{Amounts{"cpu": 667, "memory": 2 * gi}, 4}, {Amounts{"cpu": 666, "memory": 2 * gi}, 2}},
		},
		"what the model does not take does not count": {
			Amounts{"cpu": 2000, "example.com/gpu": 5}, Amounts{"cpu": 1000}, 0,
			[]alike{{Amounts{"cpu": 1000, "example.com/gpu": 3}, 1}, {Amounts{"cpu": 1000, "example.com/gpu": 2}, 1}},
		},
		"one, if the model takes nothing of it": {Amounts{"cpu": 7000}, Amounts{"memory": gi}, 0, []alike{{Amounts{"cpu": 7000}, 1}}},
		"one for each place among the Pods of a node": {
			Amounts{"pods": 3, "cpu": 3000}, Amounts{"cpu": 5000}, 0, []alike{{Amounts{"cpu": 1000}, 3}},
		},
		"places alone": {Amounts{"pods": 2}, Amounts{"cpu": 1}, 0, []alike{{Amounts{}, 2}}},
		"devices are whole": {
			Amounts{"example.com/gpu": 2, "cpu": 3}, nil, 3,
			[]alike{{Amounts{"cpu": 1, "example.com/gpu": 1}, 2}, {Amounts{"cpu": 1}, 1}},
		},
		"huge pages are whole": {
			Amounts{"hugepages-2Mi": 6 << 20}, Amounts{"hugepages-2Mi": 4 << 20}, 0,
			[]alike{{Amounts{"hugepages-2Mi": 4 << 20}, 1}, {Amounts{"hugepages-2Mi": 2 << 20}, 1}},
		},
		"at most a thousand":                       {Amounts{"cpu": 1e9}, Amounts{"cpu": 1}, 0, []alike{{Amounts{"cpu": 1e6}, 1000}}},
		"at most a thousand that are said to come": {Amounts{"cpu": 1e9}, Amounts{"cpu": 1}, 1e9, []alike{{Amounts{"cpu": 1e6}, 1000}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Cut(tc.rest, tc.model, tc.toCome)
			var want []Amounts
			for _, some := range tc.want {
				for range some.n {
					want = append(want, some.each)
				}
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
			sum := Amounts{}
			for _, each := range got {
				sum.Add(each)
			}
			rest := maps.Clone(tc.rest)
			delete(rest, "pods")
			if !sum.Equal(rest) {
				t.Errorf("the virtual members take %s in all, and the rest is %s", sum, rest)
			}
		})
	}
}

func TestTheLargestIsTheModel(t *testing.T) {
	tests := map[string]struct {
		a, b Amounts
		want bool
	}{
		"more of all":         {Amounts{"cpu": 2, "memory": 2}, Amounts{"cpu": 1, "memory": 1}, true},
		"more devices":        {Amounts{"cpu": 1, "memory": 1, "a/b": 2}, Amounts{"cpu": 2, "memory": 2, "a/b": 1}, true},
		"more memory":         {Amounts{"cpu": 1, "memory": 2}, Amounts{"cpu": 2, "memory": 1}, true},
		"the same":            {Amounts{"cpu": 2}, Amounts{"cpu": 2}, false},
		"less":                {Amounts{"cpu": 1}, Amounts{"cpu": 2}, false},
		"what only one takes": {Amounts{"cpu": 1}, Amounts{"cpu": 1, "a/b": 1}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.a.Compare(tc.b) > 0; got != tc.want {
				t.Errorf("%s is larger than %s: %t", tc.a, tc.b, got)
			}
		})
	}
}

func TestAmountsAreCompared(t *testing.T) {
	a := Amounts{"cpu": 2, "memory": 0}
	if !a.Equal(Amounts{"cpu": 2}) || !(Amounts{"cpu": 2}).Equal(a) || a.Equal(Amounts{"cpu": 3}) || a.Equal(Amounts{"cpu": 2, "pods": 1}) {
		t.Error("what is not named is not 0")
	}
	if !a.Within(Amounts{"cpu": 2}) || a.Within(Amounts{"memory": 2}) {
		t.Error("more is within less")
	}
	if got := (Amounts{"cpu": 3, "memory": 1}).AtMost(Amounts{"cpu": 2}); !got.Equal(Amounts{"cpu": 2}) {
		t.Errorf("the smaller ones are %s", got)
	}
	if got := (Amounts{"cpu": 3, "memory": 1}).Less(Amounts{"cpu": 5}); !got.Equal(Amounts{"memory": 1}) {
		t.Errorf("left is %s", got)
	}
	if got := (Amounts{"memory": 48 * gi, "cpu": 12500, "example.com/gpu": 2}).String(); got != "12500m cpu, 48Gi memory, 2 example.com/gpu" {
		t.Errorf("got %q", got)
	}
	many := Amounts{}
	for i := range maxNames {
		many[corev1.ResourceName(fmt.Sprintf("example.com/%s-%d", strings.Repeat("a", 50), i))] = 1
	}
	if got := len(many.String()); got > maxText {
		t.Errorf("the text of many is of %d bytes, want %d at most", got, maxText)
	}
	if got := (Amounts{"cpu": 0}).String(); got != "nothing" {
		t.Errorf("got %q", got)
	}
}
