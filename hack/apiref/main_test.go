// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheReferenceIsThatOfTheTypes(t *testing.T) {
	out := t.TempDir()
	if err := run("../../apis", out); err != nil {
		t.Fatal(err)
	}
	files := []string{"events.md"}
	for _, p := range pages {
		files = append(files, p.file)
	}
	for _, file := range files {
		want, err := os.ReadFile(filepath.Join(out, file))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("../../docs/reference", file))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("docs/reference/%s is not what `make generate` writes (-want,+got):\n%s", file, diff)
		}
	}
}

// TestEachFieldHasAMeaning, for a field without a comment helps nobody.
func TestEachFieldHasAMeaning(t *testing.T) {
	fields := 0
	for _, p := range pages {
		for _, folder := range p.packages {
			types, err := read(filepath.Join("../../apis", folder))
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range types.order {
				for _, f := range types.byName[name].fields {
					fields++
					if f.doc.text == "" && !strings.HasSuffix(name, "List") {
						t.Errorf("%s: %s.%s says nothing", folder, name, f.name)
					}
					if f.is == "" {
						t.Errorf("%s: %s.%s has no type", folder, name, f.name)
					}
				}
			}
		}
	}
	if fields < 200 {
		t.Errorf("only %d fields were found", fields)
	}
}

// TestAFieldIsToldWholly holds one row to what the type says, bounds and links included.
func TestAFieldIsToldWholly(t *testing.T) {
	text, err := pages[0].write("../../apis")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"## frameworkcontroller.microsoft.com/v1\n",
		"| `taskRoles` | list of [TaskRoleSpec](#taskrolespec) | taskRoles are the kinds of tasks of the job, with at most 10000 tasks in all. Adding, removing and resizing roles rescales a running Framework. A Framework without tasks never completes: the Framework is paused.<br>At most 256 elements. |\n",
		"| `Stop` | `Stop` completes the Framework with code -210 and never retries; the object stays until the retention ends. |\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(text, "To keep one costs the API server") {
		t.Error("the page has what is for developers")
	}
}

// TestNoReasonOfAnEventIsForgotten: the page of events has the exported constants with reasons, unless
// they are of conditions alone.
func TestNoReasonOfAnEventIsForgotten(t *testing.T) {
	elsewhere := map[string]string{
		"apis/framework/v1/status_types.go":  "conditions",
		"apis/framework/v1/history_types.go": "counts in the status",
	}
	told := map[string]bool{}
	for _, part := range events {
		for _, file := range part.files {
			told[file] = true
		}
	}
	found := 0
	for _, room := range []string{"apis", "controller", "podgroup", "scheduler-plugin"} {
		if err := filepath.WalkDir("../../"+room, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			file := strings.TrimPrefix(filepath.ToSlash(path), "../../")
			if constants.Match(content) {
				found++
				if !told[file] && elsewhere[file] == "" {
					t.Errorf("%s has reasons, and the page of events has not", file)
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if found < 8 {
		t.Errorf("only %d files with reasons were found", found)
	}
}

var constants = regexp.MustCompile(`(?m)^(?:const |\t)Reason\w+ += "`)
