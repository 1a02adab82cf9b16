//go:build verify

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// chapters are those of FrameworkController's manual that say something, by their
// anchors.
var chapters = strings.Fields(`
	SupportedClient SupportedInteroperation
	CREATE_Framework PATCH_Framework Start_Framework Stop_Framework
	Add_TaskRole Delete_TaskRole Add_Delete_Task
	DELETE_Framework GET_Framework LIST_Frameworks WATCH_Framework WATCH_LIST_Frameworks
	FrameworkExecutionType FrameworkExecutionTypePreStartExample FrameworkExecutionTypePostStopExample
	ContainerEnvironmentVariable PodFailureClassification PredefinedCompletionCode CompletionStatus
	RetryPolicy_Spec RetryPolicy_Usage RetryPolicy_Example
	FrameworkAttemptCompletionPolicy_Spec FrameworkAttemptCompletionPolicy_Usage FrameworkAttemptCompletionPolicy_Example
	FrameworkRescaleApplicationAssumption FrameworkRescaleAPI FrameworkRescaleBasicExample FrameworkRescalePETExample
	FrameworkRescalePipeline FrameworkRescaleGuarantee
	LargeScaleFramework FrameworkPodHistory FrameworkStateMachine TaskStateMachine
	ConsistencyGuarantees ConsistencyGuaranteesHowTo FrameworkAvailability
	FrameworkBarrier HiveDScheduler BestPractice`)

// proof finds the tests in a cell of the map.
var proof = regexp.MustCompile("`([^`]+_test\\.go)` (Test\\w+)")

// TestEveryChapterOfTheManualIsProven holds the map in manual.md to the tests.
func TestEveryChapterOfTheManualIsProven(t *testing.T) {
	var mapped []string
	for line := range strings.Lines(read(t, "manual.md")) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "#") {
			continue
		}
		chapter := strings.TrimPrefix(strings.TrimSpace(cells[1]), "#")
		mapped = append(mapped, chapter)
		if !link.MatchString(cells[2]) {
			t.Errorf("%s: no document is named", chapter)
		}
		tests := proof.FindAllStringSubmatch(cells[3], -1)
		if len(tests) == 0 || len(tests) != strings.Count(cells[3], "`")/2 {
			t.Errorf("%s: want `file_test.go` TestName, one or more, and not %q", chapter, cells[3])
		}
		for _, test := range tests {
			code, err := os.ReadFile(filepath.Join("..", test[1]))
			if err != nil {
				t.Errorf("%s: %v", chapter, err)
			} else if !strings.Contains(string(code), "\nfunc "+test[2]+"(t *testing.T)") {
				t.Errorf("%s: no %s in %s", chapter, test[2], test[1])
			}
		}
	}
	for _, chapter := range chapters {
		if !slices.Contains(mapped, chapter) {
			t.Errorf("manual.md does not map chapter %s", chapter)
		}
	}
}

// named finds the tests that a document names in its text.
var named = regexp.MustCompile("`(Test[A-Z]\\w*)`")

// declared finds the tests of a file.
var declared = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// TestTheTestsThatDocumentsNameExist, so that each promise of a document that names one has it.
func TestTheTestsThatDocumentsNameExist(t *testing.T) {
	exists := map[string]bool{}
	if err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		for _, test := range declared.FindAllStringSubmatch(read(t, path), -1) {
			exists[test[1]] = true
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, document := range documents(t) {
		for _, test := range named.FindAllStringSubmatch(read(t, document), -1) {
			if !exists[test[1]] {
				t.Errorf("%s names %s, and there is no such test", document, test[1])
			}
		}
	}
}
