//go:build verify

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A claim of a document is bound to its tests by a comment beside it: <!-- test: TestX, TestY -->. Readers do not see it.
var (
	bound = regexp.MustCompile(`<!-- test: (Test[A-Z]\w*(?:, Test[A-Z]\w*)*) -->`)
	// comment finds what bound should match: all comments that begin with the word test, however it is written.
	comment = regexp.MustCompile(`(?is)<!--\s*tests?\b.*?-->`)
	name    = regexp.MustCompile(`\bTest[A-Z]\w*`)
	// declared finds the tests of a file.
	declared = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
)

// claims are the texts of all documents that are kept up to date, by their paths. Decision records are dated and stay as they are.
func claims(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, document := range documents(t) {
		if filepath.Dir(document) != "adr" {
			texts[document] = read(t, document)
		}
	}
	return texts
}

// TestEachClaimHasATestThatExists, in whichever package.
func TestEachClaimHasATestThatExists(t *testing.T) {
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
	for document, text := range claims(t) {
		for _, found := range bound.FindAllStringSubmatch(text, -1) {
			for test := range strings.SplitSeq(found[1], ", ") {
				if !exists[test] {
					t.Errorf("%s names %s, and there is no such test", document, test)
				}
			}
		}
	}
}

// TestNoSentenceNamesATest: only comments do.
func TestNoSentenceNamesATest(t *testing.T) {
	for document, text := range claims(t) {
		for _, test := range name.FindAllString(comment.ReplaceAllString(text, ""), -1) {
			t.Errorf("%s names %s outside of a comment <!-- test: ... -->", document, test)
		}
	}
}

// TestCommentsThatNameTestsAreWellFormed, so that none of them binds nothing.
func TestCommentsThatNameTestsAreWellFormed(t *testing.T) {
	for document, text := range claims(t) {
		for _, found := range comment.FindAllString(text, -1) {
			if bound.FindString(found) != found {
				t.Errorf("%s has %s, want <!-- test: TestX, TestY -->", document, found)
			}
		}
	}
}
