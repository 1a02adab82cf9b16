// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestImagesHoldProgramsForLinux, also where they are packed on macOS. It runs images.sh with a go that writes down for
// which system it builds.
func TestImagesHoldProgramsForLinux(t *testing.T) {
	for system, programs := range map[string]string{"Linux": "bin", "Darwin": "bin/linux"} {
		t.Run("packed on "+system, func(t *testing.T) {
			dir := t.TempDir()
			script, err := os.ReadFile("../images.sh")
			if err != nil {
				t.Fatal(err)
			}
			// What it builds says for which system, and packs no images but says of which programs.
			goCommand := `#!/bin/sh
while [ "$1" != -o ]; do shift; done
echo "#!/bin/sh
# ${GOOS:-the one here}
echo \$@ >> packed" > "$2"
chmod +x "$2"
`
			for path, content := range map[string]string{
				"hack/images.sh": string(script), "path/uname": "#!/bin/sh\necho " + system + "\n", "path/go": goCommand, "localcluster/x": "",
				"bin/lockstep-controller": "linux", "bin/lockstep-scheduler": "linux", "bin/lockstep-dashboard": "linux", "bin/frameworkbarrier": "linux",
			} {
				path = filepath.Join(dir, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if system == "Darwin" && content == "linux" {
					content = "darwin"
				}
				if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "hack/images.sh"))
			cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "path")+":"+os.Getenv("PATH"), "GOOS=")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("it failed: %v\n%s", err, out)
			}
			packed, err := os.ReadFile(filepath.Join(dir, "packed"))
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"lockstep-controller", "lockstep-scheduler", "lockstep-dashboard", "frameworkbarrier", "training", "rollcall", "toolbox"} {
				binary := programs + "/" + name
				if !strings.Contains(string(packed), "--binary /bin/"+name+"="+binary+" ") {
					t.Errorf("no image has %s:\n%s", binary, packed)
				}
				if content, err := os.ReadFile(filepath.Join(dir, binary)); !strings.Contains(string(content), "linux") {
					t.Errorf("%s is for (%v)\n%s", binary, err, content)
				}
			}
			if content, err := os.ReadFile(filepath.Join(dir, "bin/pack-image")); !strings.Contains(string(content), "the one here") {
				t.Errorf("what packs is for (%v)\n%s", err, content)
			}
		})
	}
}

// TestOnMacOSMakeBuildsNoLocalCluster, as its programs are for Linux alone.
func TestOnMacOSMakeBuildsNoLocalCluster(t *testing.T) {
	dir := t.TempDir()
	for system, want := range map[string]bool{"Linux": true, "Darwin": false} {
		if err := os.WriteFile(filepath.Join(dir, "uname"), []byte("#!/bin/sh\necho "+system+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "make", "--dry-run", "build")
		cmd.Dir = "../.."
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "bin/kubectl-lockstep") || strings.Contains(string(out), "localcluster") != want {
			t.Errorf("on %s make build does (%v), want that it builds the local cluster: %t\n%s", system, err, want, out)
		}
	}
}
