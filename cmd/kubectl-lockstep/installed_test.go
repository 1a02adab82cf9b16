// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"strings"
	"testing"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// TestWhereLockstepIsNotInstalledEachVerbSaysSo: what is not served is not just not there.
func TestWhereLockstepIsNotInstalledEachVerbSaysSo(t *testing.T) {
	u := someone(t)
	u.answers = func(r *http.Request) *http.Response {
		if strings.HasPrefix(r.URL.Path, "/apis/"+frameworkv1.GroupName+"/") {
			return answered(http.StatusNotFound, "text/plain; charset=utf-8", "404 page not found\n")
		}
		return nil
	}
	for _, typed := range []string{
		"get", "get train", "describe train", "why train", "logs train", "top train", "history train", "stop train", "delete train", "retry train",
		"wait train --for=Deleted", "wait train --for=Running", "get -l a=b", "get train -w",
	} {
		u.sees(u.types(strings.Fields(typed)...), 3, "is Lockstep installed there?")
	}
}
