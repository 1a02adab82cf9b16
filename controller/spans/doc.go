// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package spans derives the tracing spans of a Framework. The package is pure: from two consecutively persisted statuses it
// computes the spans of what has ended between them.
//
//	Framework
//	├── Attempt 0
//	│   ├── Waiting            until a task first ran
//	│   ├── Running            until the attempt was over
//	│   ├── Task worker[0]     one for each task, those that failed first
//	│   └── …                  at most MaxTasks of them
//	└── Attempt 1
//
// The id of a span is derived from the UID of the Framework and the name of the span. So a span that is sent twice has
// the same id, and the id of a parent is known before the parent ends. Spans contain names, times, codes and phrases,
// but no diagnostics, because these quote output of containers.
package spans
