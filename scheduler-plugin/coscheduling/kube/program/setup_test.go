// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"crypto/sha256"
	"encoding/hex"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCopiedFunctionsAreUnchanged fails when how kube-scheduler makes and runs its
// scheduler changes, which setup.go copies and lockstep-scheduler's run does. Compare them
// with the new version then, and update the version that setup.go names and the checksums
// here.
func TestCopiedFunctionsAreUnchanged(t *testing.T) {
	want := map[string]string{
		"Setup":      "a6af14f9578605a05f8509bf806f2bee7cd52d81d356950f8e662f63b77ae338",
		"runCommand": "a9f83d9b27e567d438a37e6826df185c51f673b75d709008a6bbd8bc74732445",
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(strings.TrimSpace(string(out)), "cmd", "kube-scheduler", "app", "server.go")
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		known, copied := want[function.Name.Name]
		if !copied {
			continue
		}
		text := source[files.Position(function.Pos()).Offset:files.Position(function.End()).Offset]
		sum := sha256.Sum256(text)
		if got := hex.EncodeToString(sum[:]); got != known {
			t.Errorf("%s of k8s.io/kubernetes changed: its SHA-256 is %s; compare setup.go and lockstep-scheduler's command.go with it", function.Name.Name, got)
		}
		delete(want, function.Name.Name)
	}
	for name := range want {
		t.Errorf("k8s.io/kubernetes has no %s any more", name)
	}
}
