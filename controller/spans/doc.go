// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package spans makes spans of a Framework's life, for collectors of traces. It is pure: from two statuses that were
// persisted one after the other to the spans of what has ended between them.
//
//	Framework
//	├── Attempt 0
//	│   ├── Waiting            until a task first ran
//	│   ├── Running            until the attempt was over
//	│   ├── Task worker[0]     one for each task, those that failed first
//	│   └── …                  at most MaxTasks of them
//	└── Attempt 1
//
// Ids follow from the UID of the Framework and the name of the span, so that spans which are sent twice
// are the same, and parents have ids before they end. Spans hold names, times, codes and phrases.
// They hold no diagnostics: these quote what containers have said.
package spans
