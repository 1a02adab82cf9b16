// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docs checks what the documents say of the code.
package docs

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
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

// documents are all that a user may read.
func documents(t *testing.T) []string {
	t.Helper()
	var documents []string
	for _, pattern := range []string{"*.md", "adr/*.md", "tools/*.md", "reference/*.md", "../*.md", "../examples/*.md", "../localcluster/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, found...)
	}
	return documents
}

// TestTheIndexNamesEveryPage, so that a page can be found by who doesn't know that there is one.
// Decisions have a folder that is listed by number.
func TestTheIndexNamesEveryPage(t *testing.T) {
	named := map[string]bool{}
	for _, found := range link.FindAllStringSubmatch(read(t, "README.md"), -1) {
		target, _, _ := strings.Cut(found[1], "#")
		named[filepath.Clean(target)] = true
	}
	for _, document := range documents(t) {
		if document != "README.md" && filepath.Dir(document) != "adr" && !named[document] {
			t.Errorf("docs/README.md does not name %s", document)
		}
	}
}

// link finds the links of a document.
var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// code finds code in a line of text. What looks like a link in a regular expression is none.
var code = regexp.MustCompile("`[^`\n]+`")

// TestLinksLeadSomewhere follows the links of all documents to files, and to
// headings in them.
func TestLinksLeadSomewhere(t *testing.T) {
	for _, document := range documents(t) {
		for _, found := range link.FindAllStringSubmatch(code.ReplaceAllString(read(t, document), ""), -1) {
			target, heading, _ := strings.Cut(found[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			file := filepath.Join(filepath.Dir(document), target)
			if target == "" {
				file = document
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: %s leads nowhere: %v", document, found[1], err)
			} else if heading != "" && !slices.Contains(headings(read(t, file)), heading) {
				t.Errorf("%s: %s has no such heading", document, found[1])
			}
		}
	}
}

// notInAnchors are the characters that GitHub leaves out of an anchor.
var notInAnchors = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// headings are the anchors of a document, as GitHub makes them.
func headings(document string) []string {
	var anchors []string
	for line := range strings.Lines(document) {
		if text := strings.TrimLeft(line, "#"); text != line && strings.HasPrefix(text, " ") {
			text = notInAnchors.ReplaceAllString(strings.ToLower(strings.TrimSpace(text)), "")
			anchors = append(anchors, strings.ReplaceAll(text, " ", "-"))
		}
	}
	return anchors
}

// TestConfigurationExample reads the example as lockstep-controller does.
func TestConfigurationExample(t *testing.T) {
	config, err := configv1alpha1.Decode([]byte(read(t, "../examples/controller-config.yaml")))
	if err != nil {
		t.Fatal(err)
	}
	configv1alpha1.SetDefaults(config)
	configv1alpha1.SetConnectionDefaults(config, func(string) string { return "" }, func(string) bool { return false })
	if err := configv1alpha1.Validate(config).ToAggregate(); err != nil {
		t.Error(err)
	}
	var codes []int32
	for _, info := range config.PodFailureSpec {
		codes = append(codes, int32(*info.Code))
	}
	if want := []int32{-1000, 220}; !slices.Equal(codes, want) {
		t.Errorf("the completion codes are %v, want %v", codes, want)
	}
}

// blockOfYAML finds the examples in YAML of a document, and settingInText those in its text between
// backquotes.
var (
	blockOfYAML   = regexp.MustCompile("(?s)\n *```yaml\n(.*?)```")
	settingInText = regexp.MustCompile("`(\\w+: \\{[^`]*\\})`")
)

// TestSettingsThatDocumentsShowAreThere reads all that they show of a configuration of
// lockstep-controller as it does, which refuses keys that it does not know.
func TestSettingsThatDocumentsShowAreThere(t *testing.T) {
	documents, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[configv1alpha1.ControllerConfiguration]()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		keys[name] = name != "" && name != "apiVersion" && name != "kind"
	}
	examples := 0
	for _, document := range append(documents, "../README.md") {
		text := read(t, document)
		for _, found := range slices.Concat(blockOfYAML.FindAllStringSubmatch(text, -1), settingInText.FindAllStringSubmatch(text, -1)) {
			var example map[string]any
			if yaml.Unmarshal([]byte(found[1]), &example) != nil {
				continue // Parts of it are left out, or it has several documents.
			}
			isSetting := example["kind"] == "ControllerConfiguration" ||
				example["kind"] == nil && slices.ContainsFunc(slices.Collect(maps.Keys(example)), func(key string) bool { return keys[key] })
			if !isSetting {
				continue
			}
			examples++
			if _, err := configv1alpha1.Decode([]byte(found[1])); err != nil {
				t.Errorf("%s: %v in:\n%s", document, err, found[1])
			}
		}
	}
	if examples < 5 {
		t.Errorf("only %d examples of settings were found", examples)
	}
}

// TestFieldsOfTasksAreTold holds to the types what tells of the fields of a task in
// the status: no schema does.
func TestFieldsOfTasksAreTold(t *testing.T) {
	for file, text := range map[string]*regexp.Regexp{
		"framework.md": regexp.MustCompile(`(?s)\nA task is an element of .*?\n## `),
		"../manifests/crds/frameworkcontroller.microsoft.com_frameworks.yaml": regexp.MustCompile(`(?s)taskStatuses are the tasks.*?nullable:`),
	} {
		told := text.FindString(read(t, file))
		for _, of := range []reflect.Type{reflect.TypeFor[frameworkv1.TaskStatus](), reflect.TypeFor[frameworkv1.TaskAttemptStatus]()} {
			for _, field := range reflect.VisibleFields(of) {
				name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
				if !regexp.MustCompile(`\b` + name + `\b`).MatchString(told) {
					t.Errorf("%s does not tell of %s of a %s", file, name, of.Name())
				}
			}
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
