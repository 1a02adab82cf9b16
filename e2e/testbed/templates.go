// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// ByHand is the scheduler of Pods that no scheduler places and no node runs: the test itself
// says how they fare.
const ByHand = "by-hand"

var templatePattern = regexp.MustCompile(`@(∞|\?|[0-9]+)(?:→([0-9]+))?(?:/([0-9]+))?`)

// expandTemplates puts templates in the place of what stands for them, each with a container of
// this name and these fields in its spec.
func expandTemplates(spec, container, common string, room *Room) string {
	var out strings.Builder
	for {
		at := templatePattern.FindStringSubmatchIndex(spec)
		if at == nil {
			out.WriteString(spec)
			return out.String()
		}
		group := func(i int) string {
			if at[2*i] < 0 {
				return ""
			}
			return spec[at[2*i]:at[2*i+1]]
		}
		annotations, resources, own := "", "", common
		switch seconds := group(1); seconds {
		case "∞":
		case "?":
			own = strings.TrimPrefix(own+", schedulerName: "+ByHand, ", ")
		default:
			annotations = fmt.Sprintf("%s: %q", jobs.AnnotationRunSeconds, seconds)
			if code := group(2); code != "" {
				annotations += fmt.Sprintf(", %s: %q", jobs.AnnotationExitCode, code)
			}
		}
		if cores := group(3); cores != "" {
			resources = fmt.Sprintf(", resources: {requests: {cpu: %s}}", cores)
		}
		fields, rest := braced(spec[at[1]:])
		if fields != "" {
			fields = ", " + fields
		}
		containers := ""
		if !strings.Contains(fields, " containers:") {
			containers = ", containers: [{name: " + container + ", image: i" + resources + "}]"
		}
		fmt.Fprintf(&out, "%stemplate: {metadata: {annotations: {%s}}, spec: {%s}}",
			spec[:at[0]], annotations, strings.TrimPrefix(own+containers+fields+room.selection(), ", "))
		spec = rest
	}
}

// braced is what stands between a brace at the beginning and the one that closes it, and what
// follows.
func braced(s string) (inside, rest string) {
	if !strings.HasPrefix(s, "{") {
		return "", s
	}
	depth := 0
	for i, r := range s {
		switch r {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return s[1:i], s[i+1:]
			}
		}
	}
	return "", s
}
