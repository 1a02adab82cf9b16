//go:build verify

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// table returns the cells of the rows of each table of a document whose head begins with these cells.
func table(t *testing.T, document string, head ...string) [][]string {
	t.Helper()
	var rows [][]string
	within := false
	for line := range strings.Lines(read(t, document)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case !strings.HasPrefix(line, "|"):
			within = false
		case len(cells) >= len(head) && slices.Equal(cells[:len(head)], head):
			within = true
		case within && !strings.HasPrefix(cells[0], "---"):
			rows = append(rows, cells)
		}
	}
	if len(rows) == 0 {
		t.Errorf("%s has no table of %q", document, head)
	}
	return rows
}

// TestWhatAnAttackerGetsNamesItsTest by a comment in each row of security.md.
func TestWhatAnAttackerGetsNamesItsTest(t *testing.T) {
	for _, row := range slices.Concat(table(t, "security.md", "tries", "and gets"), table(t, "security.md", "has", "can")) {
		if !bound.MatchString(row[1]) {
			t.Errorf("no test is named for who tries, or has, %s", row[0])
		}
	}
}

// TestEachPackageOfE2EIsRun by hack/e2e.sh, but for those that take long and have a target of their own.
func TestEachPackageOfE2EIsRun(t *testing.T) {
	apart := map[string]string{"../e2e/upgrade": "e2e-upgrade", "../e2e/kueue/real": "e2e-kueue", "../e2e/compat": "compat", "../e2e/soak": "soak-cluster"}
	script := strings.Fields(strings.NewReplacer("(", " ", ")", " ").Replace(read(t, "../hack/e2e.sh")))
	err := filepath.WalkDir("../e2e", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		tests, err := filepath.Glob(filepath.Join(path, "*_test.go"))
		if err != nil {
			return err
		}
		hasMain := slices.ContainsFunc(tests, func(file string) bool { return strings.HasPrefix(read(t, file), "//go:build e2e") })
		if _, is := apart[path]; hasMain && !is && !slices.Contains(script, "./"+strings.TrimPrefix(path, "../")) {
			t.Errorf("%s is run by nobody", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for path, target := range apart {
		if !strings.Contains(read(t, "../Makefile"), "\n"+target+":") {
			t.Errorf("%s has no target %s", path, target)
		}
	}
}

// fault finds the faults that tests of e2e/faults try, by their names.
var fault = regexp.MustCompile(`\{name: "([^"]+)"`)

// TestEachFaultHasItsRow in reliability.md, and each row a fault that is tried.
func TestEachFaultHasItsRow(t *testing.T) {
	files, err := filepath.Glob("../e2e/faults/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, file := range files {
		for _, found := range fault.FindAllStringSubmatch(read(t, file), -1) {
			want = append(want, found[1])
		}
	}
	for _, head := range []string{"fault", "frozen before the", "both leaders are", "clocks of both leaders are"} {
		for _, row := range table(t, "reliability.md", head) {
			got = append(got, row[0])
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("faults and rows differ (-tried +row):\n%s", diff)
	}
}

// TestEachSectionOfReliabilityNamesItsTest, except the sections on how faults are tried and on what was last run.
func TestEachSectionOfReliabilityNamesItsTest(t *testing.T) {
	for _, section := range strings.Split(read(t, "reliability.md"), "\n## ")[1:] {
		title, _, _ := strings.Cut(section, "\n")
		if title != "How it is tried" && title != "What was last run" && !bound.MatchString(section) {
			t.Errorf("the section %q names no test", title)
		}
	}
}

// TestWhereRoomIsKeptATestIsNamed on each page that refers to what scheduling.md says of members that are still to come.
func TestWhereRoomIsKeptATestIsNamed(t *testing.T) {
	for _, document := range documents(t) {
		if document == "scheduling.md" || filepath.Dir(document) == "adr" {
			continue
		}
		for paragraph := range strings.SplitSeq(read(t, document), "\n\n") {
			if strings.Contains(paragraph, "scheduling.md#members-that-are-still-to-come") && !bound.MatchString(paragraph) {
				t.Errorf("%s says that room is kept, and no test is named:\n%s", document, paragraph)
			}
		}
	}
}
