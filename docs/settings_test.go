// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"maps"
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
	blockOfYAML   = regexp.MustCompile("(?s)\n *```yaml(?: runs)?\n(.*?)```")
	settingInText = regexp.MustCompile("`(\\w+: \\{[^`]*\\})`")
)

// TestSettingsThatDocumentsShowAreThere reads all that they show of a configuration of
// lockstep-controller as it does, which refuses keys that it does not know.
func TestSettingsThatDocumentsShowAreThere(t *testing.T) {
	documents, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := filepath.Glob("tasks/*.md")
	if err != nil {
		t.Fatal(err)
	}
	documents = append(documents, tasks...)
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
