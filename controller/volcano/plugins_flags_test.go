// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFlagsOfPlugins(t *testing.T) {
	type values struct {
		Text   string
		Number int32
		On     bool
	}
	defaults := values{"d", 1, false}
	tests := map[string]struct {
		flags   []string
		want    values
		problem string
	}{
		"none":                         {want: defaults},
		"with two hyphens":             {flags: []string{"--text=a", "--number=2", "--on=true"}, want: values{"a", 2, true}},
		"with one":                     {flags: []string{"-text=a", "-number=2", "-on=true"}, want: values{"a", 2, true}},
		"with the value as next entry": {flags: []string{"--text", "a", "--number", "2"}, want: values{"a", 2, false}},
		"a switch without value":       {flags: []string{"--on", "--text=a"}, want: values{"a", 1, true}},
		"the last of two counts":       {flags: []string{"--text=a", "--text=b"}, want: values{"b", 1, false}},
		"a value with equals signs":    {flags: []string{"--text=a=b"}, want: values{"a=b", 1, false}},
		"an empty value":               {flags: []string{"--text="}, want: values{"", 1, false}},
		"a number in another base":     {flags: []string{"--number=0x10"}, want: values{"d", 16, false}},
		"an unknown one ends it":       {flags: []string{"--text=a", "--more=1", "--number=2"}, want: values{"a", 1, false}, problem: "Plugin p: flag provided but not defined: -more: this flag and all flags after it are ignored"},
		"a bad number ends it":         {flags: []string{"--number=two", "--text=a"}, want: defaults, problem: `Plugin p: invalid value "two" for flag -number: strconv.ParseInt: parsing "two": invalid syntax: this flag and all flags after it are ignored`},
		"a number that is too large":   {flags: []string{"--number=2147483648"}, want: defaults, problem: `Plugin p: invalid value "2147483648" for flag -number: strconv.ParseInt: parsing "2147483648": value out of range: this flag and all flags after it are ignored`},
		"a bad switch ends it":         {flags: []string{"--on=maybe", "--text=a"}, want: defaults, problem: `Plugin p: invalid boolean value "maybe" for -on: strconv.ParseBool: parsing "maybe": invalid syntax: this flag and all flags after it are ignored`},
		"a plain word ends it":         {flags: []string{"--on", "true", "--text=a"}, want: values{"d", 1, true}, problem: `Plugin p: "true" is no flag: this entry and all entries after it are ignored`},
		"a flag that lacks its value":  {flags: []string{"--text"}, want: defaults, problem: "Plugin p: flag needs an argument: -text: this flag and all flags after it are ignored"},
		"help is no flag":              {flags: []string{"--help", "--text=a"}, want: defaults, problem: "Plugin p: flag: help requested: this flag and all flags after it are ignored"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := defaults
			f := newPluginFlags("p")
			f.text(&got.Text, "text")
			f.number(&got.Number, "number")
			f.toggle(&got.On, "on")
			if problem := f.parse(tc.flags); problem != tc.problem {
				t.Errorf("problem: got %q, want %q", problem, tc.problem)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("values (-want,+got):\n%s", diff)
			}
		})
	}
}
