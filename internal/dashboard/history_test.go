// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/view"
)

// TestTheHistoryShowsAllThatIsCounted: what is counted is for people.
func TestTheHistoryShowsAllThatIsCounted(t *testing.T) {
	var counts frameworkv1.TaskAttemptCounts
	fields := reflect.ValueOf(&counts).Elem()
	for i := range fields.NumField() {
		fields.Field(i).SetInt(int64(7001 + i))
	}
	content := &frameworkPage{Tree: &view.Tree{History: []view.PastAttempt{{Counts: counts}}}}
	var out strings.Builder
	if err := part(&out, &page{Template: "framework", Content: content}, time.Now()); err != nil {
		t.Fatal(err)
	}
	for i := range fields.NumField() {
		if !strings.Contains(out.String(), fmt.Sprint(7001+i)) {
			t.Errorf("%s are not shown", fields.Type().Field(i).Name)
		}
	}
}
