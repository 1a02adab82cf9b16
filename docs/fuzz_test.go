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

var (
	// fuzzTest finds the fuzz tests of a file.
	fuzzTest = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)
	// fuzzProgram finds what the script for OSS-Fuzz builds: package, function, program.
	fuzzProgram = regexp.MustCompile(`(?m)^compile_native_go_fuzzer_v2 \$module/(\S+) (Fuzz\w+) (\w+)$`)
)

// TestOSSFuzzRunsEveryFuzzTest, each as a program of its own name. OSS-Fuzz finds a fuzz test by its name in the
// Go files of its package's folder, so that has to be in one of them alone.
func TestOSSFuzzRunsEveryFuzzTest(t *testing.T) {
	var want, got []string
	texts := map[string]string{}
	if err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") {
			return err
		}
		texts[path] = read(t, path)
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		for _, found := range fuzzTest.FindAllStringSubmatch(texts[path], -1) {
			want = append(want, strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../")+" "+found[1])
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	programs := map[string]bool{}
	for _, found := range fuzzProgram.FindAllStringSubmatch(read(t, "../hack/oss-fuzz/build.sh"), -1) {
		got = append(got, found[1]+" "+found[2])
		if programs[found[3]] {
			t.Errorf("two programs are called %s", found[3])
		}
		programs[found[3]] = true
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fuzz tests that hack/oss-fuzz/build.sh builds (-want,+got):\n%s", diff)
	}
	for _, test := range want {
		folder, name, _ := strings.Cut(test, " ")
		var in []string
		for path, text := range texts {
			if strings.HasPrefix(filepath.ToSlash(path), "../"+folder+"/") && strings.Contains(text, name) {
				in = append(in, path)
			}
		}
		if len(in) != 1 {
			t.Errorf("%s is named in %v, want one file", test, in)
		}
	}
}
