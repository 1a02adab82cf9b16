// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package documents finds the commands and manifests that documents tell readers to use, so that tests use exactly
// these.
package documents

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

var (
	command = regexp.MustCompile(`(?m)^ *\$ (.*)$`)
	// A block may be in a list.
	blockOfYAML = regexp.MustCompile("(?ms)^( *)```yaml\n(.*?)^ *```$")
)

// Section returns the text under a heading of the second level, up to the next one.
func Section(document, heading string) (string, error) {
	text, err := os.ReadFile(document)
	if err != nil {
		return "", err
	}
	_, section, found := strings.Cut(string(text), "\n## "+heading+"\n")
	if !found {
		return "", fmt.Errorf("%s has no heading %q", document, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	return section, nil
}

// Commands returns the lines that a user is to type, without their prompts.
func Commands(text string) []string {
	var commands []string
	for _, found := range command.FindAllStringSubmatch(text, -1) {
		commands = append(commands, found[1])
	}
	return commands
}

// YAML returns the one example in YAML of a document that has these words.
func YAML(document, words string) (string, error) {
	text, err := os.ReadFile(document)
	if err != nil {
		return "", err
	}
	var examples []string
	for _, block := range blockOfYAML.FindAllStringSubmatch(string(text), -1) {
		if strings.Contains(block[2], words) {
			examples = append(examples, strings.ReplaceAll("\n"+block[2], "\n"+block[1], "\n"))
		}
	}
	if len(examples) != 1 {
		return "", fmt.Errorf("%s has %d examples with %q, want one", document, len(examples), words)
	}
	return examples[0], nil
}
