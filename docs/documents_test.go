// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docs checks what the documents say of the code.
package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// documents are all that a user may read.
func documents(t *testing.T) []string {
	t.Helper()
	var documents []string
	for _, pattern := range []string{"*.md", "adr/*.md", "tasks/*.md", "tools/*.md", "reference/*.md", "../*.md", "../examples/*.md", "../localcluster/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, found...)
	}
	return documents
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestTheIndexNamesEveryPage, so that readers find pages that they do not know of.
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

// amends finds the records that a record amends or supersedes, in what it says before its first section.
var (
	amends    = regexp.MustCompile(`(?s)(?:Amends|Supersedes)(.*?)(?:\.[ \n]|\.$)`)
	recordsIn = regexp.MustCompile(`\((\d{4}-[^)]+\.md)\)`)
)

// TestARecordSaysThatALaterOneHasChangedIt: who reads the older one is led to the newer one.
func TestARecordSaysThatALaterOneHasChangedIt(t *testing.T) {
	for _, document := range documents(t) {
		if filepath.Dir(document) != "adr" {
			continue
		}
		head, _, _ := strings.Cut(read(t, document), "\n## ")
		for _, sentence := range amends.FindAllString(head+" ", -1) {
			for _, older := range recordsIn.FindAllStringSubmatch(sentence, -1) {
				said, _, _ := strings.Cut(read(t, filepath.Join("adr", older[1])), "\n## ")
				if !strings.Contains(said, "("+filepath.Base(document)+")") {
					t.Errorf("%s does not say that %s has changed it", older[1], document)
				}
			}
		}
	}
}
