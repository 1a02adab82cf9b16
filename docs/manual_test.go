//go:build verify

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
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

// TestEveryChapterOfTheManualIsProven: each has a row with a document and a test.
func TestEveryChapterOfTheManualIsProven(t *testing.T) {
	var mapped []string
	for _, row := range table(t, "manual.md", "chapter", "here") {
		chapter := strings.TrimPrefix(row[0], "#")
		mapped = append(mapped, chapter)
		if !link.MatchString(row[1]) {
			t.Errorf("%s: no document is named", chapter)
		}
		if !bound.MatchString(row[1]) {
			t.Errorf("%s: no test is named", chapter)
		}
	}
	for _, chapter := range chapters {
		if !slices.Contains(mapped, chapter) {
			t.Errorf("manual.md does not map chapter %s", chapter)
		}
	}
}
