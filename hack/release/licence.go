// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// known are licences by sentences that only they have, all of them, the narrower ones first.
var known = []struct {
	id        string
	sentences []string
}{
	{"Apache-2.0", []string{"apache license", "version 2.0"}},
	{"MPL-2.0", []string{"mozilla public license", "version 2.0"}},
	{"BSD-3-Clause", []string{"redistribution and use in source and binary forms", "endorse or promote products"}},
	{"BSD-2-Clause", []string{"redistribution and use in source and binary forms"}},
	{"ISC", []string{"permission to use, copy, modify, and/or distribute this software for any purpose"}},
	{"ISC", []string{"permission to use, copy, modify, and distribute this software for any purpose"}},
	{"MIT", []string{"permission is hereby granted, free of charge, to any person obtaining a copy"}},
	{"Unlicense", []string{"this is free and unencumbered software released into the public domain"}},
}

// unknown is how SPDX says that it is not told.
const unknown = "NOASSERTION"

// declared is the licence of a module as an SPDX expression, from the texts beside its go.mod:
// several, if a text holds several or there are several texts. It is a summary for readers. The texts themselves are
// in the image.
func (m module) declared() string {
	found := map[string]bool{}
	for file, text := range m.texts {
		if path.Dir(file) == "." {
			maps.Copy(found, recognized(string(text)))
		}
	}
	if len(found) == 0 {
		return unknown
	}
	return strings.Join(slices.Sorted(maps.Keys(found)), " AND ")
}

// recognized are the licences that a text holds.
func recognized(text string) map[string]bool {
	text = strings.Join(strings.Fields(strings.ToLower(text)), " ")
	found := map[string]bool{}
	for _, licence := range known {
		all := !slices.ContainsFunc(licence.sentences, func(s string) bool { return !strings.Contains(text, s) })
		if all && !(licence.id == "BSD-2-Clause" && found["BSD-3-Clause"]) {
			found[licence.id] = true
		}
	}
	return found
}
