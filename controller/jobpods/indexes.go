// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package jobpods

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Indexes is a set of indexes, each below the length.
type Indexes []bool

// Has reports whether an index is in the set.
func (s Indexes) Has(index int32) bool { return index >= 0 && int(index) < len(s) && s[index] }

// Set adds an index to the set, or removes it. Set ignores an index that is out of range.
func (s Indexes) Set(index int32, in bool) {
	if index >= 0 && int(index) < len(s) {
		s[index] = in
	}
}

// Clear takes all out.
func (s Indexes) Clear() { clear(s) }

// Count returns how many indexes are in the set.
func (s Indexes) Count() int32 {
	n := int32(0)
	for _, in := range s {
		if in {
			n++
		}
	}
	return n
}

// String lists the set as ranges: "0-3,7".
func (s Indexes) String() string {
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

// Read adds ranges of indexes to the set. Read skips ranges that are invalid or exceed the set's size.
func (s Indexes) Read(ranges string) {
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

// SortedKeys returns the keys of a map, so that plans don't depend on chance.
func SortedKeys[K ~string, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// Reach returns one more than the highest number in ranges; 0 if there is none. Numbers above limit count as limit.
// ranges may be invalid.
func Reach(ranges string, limit int32) int32 {
	reach := int32(0)
	for _, number := range strings.FieldsFunc(ranges, func(r rune) bool { return r < '0' || r > '9' }) {
		if n, err := strconv.ParseInt(number, 10, 32); err == nil {
			reach = max(reach, min(int32(n), limit)+1)
		}
	}
	return reach
}

// With sets the second map's entries in the first, which may be nil.
func With[V any](into, from map[string]V) map[string]V {
	if into == nil {
		into = make(map[string]V, len(from))
	}
	maps.Copy(into, from)
	return into
}
