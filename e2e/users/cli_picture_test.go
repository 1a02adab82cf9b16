//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package users

import (
	"context"
	"flag"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// pictures is where the pictures of the documents are written: `make pictures`.
var pictures = flag.String("pictures", "", "directory in which pictures of the terminal and the page are written")

// TestPicturesAreOfALiveTree plays what the picture of the live tree shows.
func TestPicturesAreOfALiveTree(t *testing.T) {
	t.Parallel()
	u := someone(t)
	u.creates(jobs.MakeFramework("resnet").Gang().Retry(false, 3).
		Role("ps", 1, jobs.RunForever().CPU("1")).
		Role("worker", 3, jobs.RunForever().CPU("2").Completes(1, 3)))
	cluster.WaitFrameworkState(t, u.namespace, "resnet", frameworkv1.FrameworkAttemptRunning)
	cluster.EndPod(t, u.namespace, "resnet-worker-1", 139)
	cmd := u.command("kubectl-lockstep", "get", "resnet", "-w", "-n", u.namespace)
	keyboard, shown := starts(t, cmd, 100)
	var frame string
	testbed.Eventually(t, "the second attempt to run", func(context.Context) (bool, string, error) {
		frame = lastFrame(shown.text())
		return strings.Contains(frame, "attempt 1") && strings.Contains(frame, "4/4 running") && strings.Contains(frame, "gang resnet-attempt: Running"), frame, nil
	})
	if _, err := keyboard.Write([]byte{3}); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if *pictures == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(*pictures, "kubectl-live.svg"), []byte(drawn("$ kubectl lockstep get resnet -w\n"+frame)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// again is where a frame begins that is drawn in the place of the one before.
var again = regexp.MustCompile(`\x1b\[[0-9]+A`)

// lastFrame is what was drawn last and is whole, with its colours.
func lastFrame(text string) string {
	frames := again.Split(text, -1)
	for i := len(frames) - 1; i >= 0; i-- {
		if frame, whole := strings.CutSuffix(frames[i], "\x1b[J"); whole {
			return strings.NewReplacer("\r", "", "\x1b[K", "").Replace(frame)
		}
	}
	return ""
}

// colour is a sequence that sets one.
var colour = regexp.MustCompile(`\x1b\[([0-9]*)m`)

// drawn is a terminal with a text, as SVG.
func drawn(text string) string {
	classes := map[string]string{"1": "b", "2": "d", "31": "r", "32": "g", "33": "y"}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	const lineHeight, width = 19, 900
	height := lineHeight*len(lines) + 56
	var svg strings.Builder
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="A live tree in a terminal">
<style>text{font:14px ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace;fill:#d7dce3;white-space:pre}.b{font-weight:700}.d{fill:#8a94a3}.r{fill:#f07178}.g{fill:#7fd88f}.y{fill:#f2c14e}</style>
<rect width="%d" height="%d" rx="10" fill="#171b21"/><circle cx="20" cy="18" r="6" fill="#f07178"/><circle cx="40" cy="18" r="6" fill="#f2c14e"/><circle cx="60" cy="18" r="6" fill="#7fd88f"/>
`, width, height, width, height, width, height)
	for i, line := range lines {
		fmt.Fprintf(&svg, `<text x="16" y="%d" xml:space="preserve">`, 52+i*lineHeight)
		class, at := "", 0
		span := func(part string) {
			if part != "" {
				fmt.Fprintf(&svg, `<tspan class="%s">%s</tspan>`, class, html.EscapeString(part))
			}
		}
		for _, found := range colour.FindAllStringSubmatchIndex(line, -1) {
			span(line[at:found[0]])
			class, at = classes[line[found[2]:found[3]]], found[1]
		}
		span(line[at:])
		svg.WriteString("</text>\n")
	}
	svg.WriteString("</svg>\n")
	return svg.String()
}
