// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// moment records a failure or an eviction for an action that is due later: "failed@1792486800/3=0-2,5",
// "evicted@1792486810=4".
type moment struct {
	// at is the time of the event, in seconds since 1970.
	at int64
	// code is the exit code that the policy names; 0 if it names none. The Pod's other codes don't matter, because the
	// policies of a Job never change.
	code int32
}

// waits are the moments of failures, or of evictions, by index.
type waits map[int32]moment

// lastSuccess records which Pod of a task succeeded last, and when: "done@1792486800=3".
type lastSuccess struct {
	at    int64
	index int32
}

// maxMoments limits how many times of failures are recorded for each exit code. If there are more, times that are close
// together are merged into the last of them. An action may then come later, by at most an eighth of its delay.
const maxMoments = 16

// Names of fields, to which the time is added, and the code.
const (
	fieldFailedAt = "failed"
	fieldLostAt   = "evicted"
	fieldDoneAt   = "done"
)

// readMoment reads a field with a time in its name. It ignores invalid fields.
func (r *record) readMoment(name, ranges string) {
	name, when, _ := strings.Cut(name, "@")
	seconds, code, _ := strings.Cut(when, "/")
	at, err := strconv.ParseInt(seconds, 10, 40)
	if err != nil || at <= 0 {
		return
	}
	switch name {
	case fieldDoneAt:
		if index, err := strconv.ParseInt(ranges, 10, 32); err == nil && index >= 0 && index < int64(r.reach()) {
			r.done = &lastSuccess{at, int32(index)}
		}
	case fieldFailedAt, fieldLostAt:
		number, err := strconv.ParseInt(cmp.Or(code, "0"), 10, 32)
		if err != nil {
			return
		}
		indexes := make(jobpods.Indexes, r.reach())
		indexes.Read(ranges)
		into := &r.waits
		if name == fieldLostAt {
			into = &r.lost
		}
		for index := range r.reach() {
			if indexes.Has(index) {
				into.add(index, moment{at, int32(number)})
			}
		}
	}
}

// add notes that an action is to follow from what happened to an index.
func (w *waits) add(index int32, m moment) {
	if *w == nil {
		*w = waits{}
	}
	(*w)[index] = m
}

// dealtWith removes from the record the pending actions for an index, and for the end of its task.
func (r *record) dealtWith(index int32) {
	delete(r.waits, index)
	delete(r.lost, index)
	r.done = nil
}

// forgetMoments forgets what was to follow.
func (r *record) forgetMoments() { r.waits, r.lost, r.done = nil, nil, nil }

// momentFields returns the stored fields with times.
func (r record) momentFields() []string {
	fields := append(r.waits.fields(fieldFailedAt, r.reach()), r.lost.fields(fieldLostAt, r.reach())...)
	if r.done != nil {
		fields = append(fields, fmt.Sprintf("%s@%d=%d", fieldDoneAt, r.done.at, r.done.index))
	}
	return fields
}

// fields returns the moments in the stored form, with the name of the field.
func (w waits) fields(name string, reach int32) []string {
	var fields []string
	together := map[moment]jobpods.Indexes{}
	for index, m := range w.bounded() {
		if together[m] == nil {
			together[m] = make(jobpods.Indexes, reach)
		}
		together[m].Set(index, true)
	}
	for _, m := range slices.SortedFunc(maps.Keys(together), func(a, b moment) int {
		return cmp.Or(cmp.Compare(a.code, b.code), cmp.Compare(a.at, b.at))
	}) {
		field := fmt.Sprintf("%s@%d", name, m.at)
		if m.code != 0 {
			field += fmt.Sprintf("/%d", m.code)
		}
		if ranges := together[m].String(); ranges != "" {
			fields = append(fields, field+"="+ranges)
		}
	}
	return fields
}

// bounded merges times so that each code has at most maxMoments. It merges all times within one span of 2ⁿ seconds
// into the last of them, with the least n that is enough. Spans of a smaller n lie within spans of a larger n, so
// merged times stay within their span even if bounded runs repeatedly.
func (w waits) bounded() waits {
	times := map[int32]map[int64]bool{}
	for _, m := range w {
		if times[m.code] == nil {
			times[m.code] = map[int64]bool{}
		}
		times[m.code][m.at] = true
	}
	last := map[moment]int64{}
	for code, all := range times {
		spans := map[int64]int64{}
		n := 0
		for ; n == 0 || len(spans) > maxMoments; n++ {
			clear(spans)
			for at := range all {
				spans[at>>n] = max(spans[at>>n], at)
			}
		}
		for at := range all {
			last[moment{at, code}] = spans[at>>(n-1)]
		}
	}
	bound := waits{}
	for index, m := range w {
		bound[index] = moment{last[m], m.code}
	}
	return bound
}

// rememberDelays records events for which an action is due later, since their Pods may be gone by then. The action is
// due after the policy's delay; during a restart, once all Pods that it deletes have the annotation KeyMark, or the
// restart is over. If the action concerns a whole task or the Job, only the first such event is recorded.
func (d *decision) rememberDelays(all []happening) {
	for _, t := range d.tasks {
		t.record.forgetMoments()
	}
	type class struct {
		task *task
		code int32
	}
	first := map[class]int32{}
	for _, h := range all {
		switch h.event {
		case busv1alpha1.EventPodFailed, busv1alpha1.EventTaskCompleted:
		case busv1alpha1.EventPodEvicted:
			if h.member != nil && !d.isTaken(h.member) {
				continue // The Pod that has taken its place tells when it was.
			}
		default:
			continue
		}
		p := d.policyFor(h)
		if p == nil || p.delay == 0 && hasPods(d.next.State.Phase) || h.at.Unix() <= 0 {
			continue
		}
		r := &h.task.record
		switch h.event {
		case busv1alpha1.EventTaskCompleted:
			r.done = &lastSuccess{h.at.Unix(), h.index}
			continue
		case busv1alpha1.EventPodEvicted:
			r.lost.add(h.index, moment{at: h.at.Unix()})
			continue
		}
		m := moment{at: h.at.Unix()}
		if p.ExitCode != nil {
			m.code = *p.ExitCode
		}
		if p.Action == busv1alpha1.ActionRestartPod || p.Action == busv1alpha1.ActionRestartPartition {
			r.waits.add(h.index, m)
			continue
		}
		c := class{h.task, m.code}
		known, ok := first[c]
		if ok && r.waits[known].at <= m.at {
			continue
		}
		if ok {
			delete(r.waits, known)
		}
		first[c] = h.index
		r.waits.add(h.index, m)
	}
}

// failedBefore returns the recorded failure of an index for which an action is still to come. The Pod may be gone, or
// being deleted.
func (d *decision) failedBefore(t *task, index int32) (happening, bool) {
	m, ok := t.record.waits[index]
	if !ok || !t.record.failed.Has(index) {
		return happening{}, false
	}
	h := happening{event: busv1alpha1.EventPodFailed, task: t, index: index, at: time.Unix(m.at, 0)}
	if m.code != 0 {
		h.codes = []int32{m.code}
	}
	h.what = fmt.Sprintf("Pod %s has failed%s", podName(d.Job.Name, t.spec.Name, index), withCodes(h.codes))
	return h, true
}
