// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package interrupt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockstep-k8s/lockstep/internal/testing/hangup"
)

// TestAClosedTerminalInterruptsUnlessNohupSaysOtherwise runs itself as a program whose terminal closes, and which is then
// asked to end if it goes on. Two signals at once may come in any order.
func TestAClosedTerminalInterruptsUnlessNohupSaysOtherwise(t *testing.T) {
	if signals := os.Getenv("INTERRUPTED"); signals != "" {
		ctx, stop := Context()
		defer stop()
		ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("nothing"))
		defer cancel()
		for signal := range strings.FieldsSeq(signals) {
			if err := syscall.Kill(os.Getpid(), unix.SignalNum(signal)); err != nil {
				t.Fatal(err)
			}
		}
		<-ctx.Done()
		fmt.Println(context.Cause(ctx))
		return
	}
	hangup.Heed(t)
	for start, with := range map[string]struct{ signals, want string }{
		"":              {"SIGHUP", "hangup"},
		"trap '' HUP; ": {"SIGHUP SIGTERM", "terminated"},
	} {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", start+`exec "$0" -test.run=^TestAClosedTerminalInterrupts`, os.Args[0])
		cmd.Env = append(os.Environ(), "INTERRUPTED="+with.signals)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), with.want) {
			t.Errorf("started by %q it was ended (%v) by other than %s:\n%s", start, err, with.want, out)
		}
	}
}
