// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
)

// record is what the status remembers of the Pods of a task, by index. It is stored in
// status.controlledResources, because the status has no other place for it that every
// CRD of a Job keeps: "pods-worker": "there=0-2 succeeded=3,5 failed=4".
type record struct {
	// there are the indexes whose Pod, of the present version, was seen alive, and of
	// which nobody has decided that they go: if one of them is gone, somebody else has
	// deleted it.
	there indexes
	// succeeded and failed are the indexes that have ended, whatever becomes of their
	// Pods: they are not made again.
	succeeded, failed indexes
}

// recordPrefix is that of the keys in status.controlledResources.
const recordPrefix = "pods-"

func newRecord(replicas int32) record {
	return record{make(indexes, replicas), make(indexes, replicas), make(indexes, replicas)}
}

// readRecord reads what a status remembers of a task, as far as its indexes reach.
func readRecord(status *batchv1alpha1.JobStatus, task string, replicas int32) record {
	r := newRecord(replicas)
	if status == nil {
		return r
	}
	for _, field := range strings.Fields(status.ControlledResources[recordPrefix+task]) {
		name, ranges, _ := strings.Cut(field, "=")
		switch name {
		case "there":
			r.there.read(ranges)
		case "succeeded":
			r.succeeded.read(ranges)
		case "failed":
			r.failed.read(ranges)
		}
	}
	return r
}

// reachOf is how many indexes of a task a status remembers something of.
func reachOf(status *batchv1alpha1.JobStatus, task string) int32 {
	if status == nil {
		return 0
	}
	reach := int32(0)
	for _, number := range strings.FieldsFunc(status.ControlledResources[recordPrefix+task], func(r rune) bool { return r < '0' || r > '9' }) {
		if n, err := strconv.ParseInt(number, 10, 32); err == nil {
			reach = max(reach, int32(min(n, batchv1alpha1.MaxReplicas))+1)
		}
	}
	return reach
}

// String is the record as it is stored. Empty if there is nothing to remember.
func (r record) String() string {
	var fields []string
	for _, field := range []struct {
		name string
		set  indexes
	}{{"there", r.there}, {"succeeded", r.succeeded}, {"failed", r.failed}} {
		if ranges := field.set.String(); ranges != "" {
			fields = append(fields, field.name+"="+ranges)
		}
	}
	return strings.Join(fields, " ")
}

// reach is how many indexes can be on record.
func (r record) reach() int32 { return int32(len(r.there)) }

// ended says whether an index has ended.
func (r record) ended(index int32) bool { return r.succeeded.has(index) || r.failed.has(index) }

// forget forgets all of an index.
func (r record) forget(index int32) {
	r.there.set(index, false)
	r.succeeded.set(index, false)
	r.failed.set(index, false)
}

// write stores the records in a status.
func (d *decision) writeRecords() {
	resources := maps.Clone(d.next.ControlledResources)
	maps.DeleteFunc(resources, func(key, _ string) bool { return strings.HasPrefix(key, recordPrefix) })
	for _, t := range d.tasks {
		if stored := t.record.String(); stored != "" {
			if resources == nil {
				resources = map[string]string{}
			}
			resources[recordPrefix+t.spec.Name] = stored
		}
	}
	if len(resources) == 0 {
		resources = nil
	}
	d.next.ControlledResources = resources
}

// indexes is a set of indexes of a task, each below the length.
type indexes []bool

func (s indexes) has(index int32) bool { return index >= 0 && int(index) < len(s) && s[index] }

// set puts an index into the set, or takes it out. One that is out of reach stays out.
func (s indexes) set(index int32, in bool) {
	if index >= 0 && int(index) < len(s) {
		s[index] = in
	}
}

func (s indexes) clear() { clear(s) }

func (s indexes) count() int32 {
	n := int32(0)
	for _, in := range s {
		if in {
			n++
		}
	}
	return n
}

// String lists the set as ranges: "0-3,7".
func (s indexes) String() string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if !s[i] {
			continue
		}
		last := i
		for last+1 < len(s) && s[last+1] {
			last++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(i))
		if last > i {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(last))
		}
		i = last
	}
	return b.String()
}

// read adds ranges. What can't be read, or is out of reach, is left out.
func (s indexes) read(ranges string) {
	for part := range strings.SplitSeq(ranges, ",") {
		first, last, isRange := strings.Cut(part, "-")
		from, err := strconv.ParseInt(first, 10, 32)
		if err != nil || from < 0 {
			continue
		}
		to := from
		if isRange {
			if to, err = strconv.ParseInt(last, 10, 32); err != nil {
				continue
			}
		}
		for i := from; i <= to && i < int64(len(s)); i++ {
			s[i] = true
		}
	}
}

// sortedKeys are the keys of a map, so that plans don't depend on chance.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
