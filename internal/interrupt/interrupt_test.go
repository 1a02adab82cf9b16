// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package interrupt

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/lockstep-k8s/lockstep/internal/testing/hangup"
)

// TestAClosedTerminalInterruptsUnlessNohupSaysOtherwise runs itself as a program whose terminal closes, and which is then
// asked to end.
func TestAClosedTerminalInterruptsUnlessNohupSaysOtherwise(t *testing.T) {
	if os.Getenv("INTERRUPTED") != "" {
		ctx, stop := Context()
		defer stop()
		for _, signal := range []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM} {
			if err := syscall.Kill(os.Getpid(), signal); err != nil {
				t.Fatal(err)
			}
		}
		<-ctx.Done()
		fmt.Println(context.Cause(ctx))
		return
	}
	hangup.Heed(t)
	for start, want := range map[string]string{"": "hangup", "trap '' HUP;": "terminated"} {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", start+`exec "$0" -test.run=^TestAClosedTerminalInterrupts`, os.Args[0])
		cmd.Env = append(os.Environ(), "INTERRUPTED=yes")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("started by %q it was ended (%v) by other than %s:\n%s", start, err, want, out)
		}
	}
}
