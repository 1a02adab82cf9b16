// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-k8s/lockstep/internal/view"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/whatif"
)

// TestTheGangOfAJobIsTheNewestOfItsNamespace: an owner reference alone, which anybody may write elsewhere, makes none.
func TestTheGangOfAJobIsTheNewestOfItsNamespace(t *testing.T) {
	j := &Job{Row: view.Row{Namespace: "prod", Name: "mnist"}, Object: &unstructured.Unstructured{Object: map[string]any{}}}
	j.Object.SetUID("of-mnist")
	s := &whatif.Snapshot{}
	for i, key := range []dialect.Key{
		{Namespace: "prod", Name: "first"}, {Dialect: dialect.SchedulerPlugins, Namespace: "prod", Name: "second"}, {Dialect: dialect.Volcano, Namespace: "evil", Name: "third"},
	} {
		s.Groups = append(s.Groups, &dialect.Group{Key: key, MadeForUID: "of-mnist", Created: time.Unix(int64(i), 0)})
	}
	s.Groups = append(s.Groups, &dialect.Group{Key: dialect.Key{Namespace: "prod", Name: "other"}, MadeForUID: "of-another", Created: time.Unix(9, 0)})
	if key, has := j.gang(s); !has || key.Name != "second" {
		t.Errorf("its gang is %s, %t", key, has)
	}
	j.Object.SetUID("of-nobody")
	if key, has := j.gang(s); has {
		t.Errorf("one without a gang has %s", key)
	}
}
