// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pacing computes when the controller writes, syncs, retries and looks. It has all constants and formulas of
// time of the engine; delays that belong to the behaviour of one kind of job are in its core. The package is pure: it
// has no client and no clock, and the present time is an argument. Methods that answer questions change nothing;
// callers report events by methods named after the events.
//
// In the formulas, n is the number of tasks, to which the cost of a decision and of a status write is proportional, and
// W is the coalescing window of the configuration, 100 ms by default.
//
// # Writes of the status
//
// A change for which no action waits is written later, together with further changes. How long it waits
// bounds the number of writes, and depends on the window and on the wave.
//
// The window grows with the tasks, as does the time that an API server takes to
// start or end all of them:
//
//	window = W · max(200, n) / 200
//
// A wave is a series of writes with pauses of at most 4 windows. A write waits twice as long as the wave has lasted, so
// the number of writes grows with the logarithm of the wave's length only:
//
//	waveAge = last write - begin of the wave
//	wait    = max(window, 2 · waveAge)
//	longest = max(100 · W, 20 · window)
//	next    = last write + min(wait, longest)
//
// While tasks are about to start, only the last change is worth a quick write:
// soon all tasks run, or have their addresses. An API server that takes long to
// write is busy starting them. A crash loses the first change of a start, so this
// change waits at most half as long as others:
//
//	starting = min(max(30 · W, 100 · duration of the last write), max(100 · W, 10 · window))
//
// The conditions on the left are checked from top to bottom. The first that holds says when the status is written:
//
//	everything waits for the write           at once
//	tasks wait for it, n < 50                at once
//	tasks wait for it                        last write + min(wait, 4 · window)
//	actions are planned                      change + max(12 · window, starting)
//	the change completes a start             last write + W
//	tasks are about to start                 max(change + max(window, starting), next)
//	otherwise                                max(change + window, next)
//
// # Syncs
//
// A decision may cost 100 µs of a worker per task, so neither events nor creations
// cost more per task of a large Framework than of a small one:
//
//	next sync = last sync + n · 100 µs
//
// If a sync has left something to do, the next sync follows at once. Until "next sync" it continues with the last plan,
// and after that it decides again.
//
// A sync starts requests for 100 ms or until it has started 50, whichever comes later, but for at most 2 s. Then the
// Framework goes to the end of the queue, and its next sync sees what has changed. So a small Framework starts in one
// sync.
//
// A sync is in flight from beginning to end. A sync that has not ended after 200 ms gives its worker back, and goes
// on until its requests are answered. A namespace has at most 32 syncs in flight. All namespaces together have at
// most 1024, besides one of each namespace. Frameworks beyond that wait until a sync has ended.
//
// # Fairness
//
// Namespaces take turns: of N namespaces with waiting Frameworks, each gets every Nth sync. A Framework that waits
// alone in its namespace waits at most:
//
//	N · 200 ms / workers
//
// # Requests
//
// As many requests are under way as the API server answers in 50 ms; more of them
// would only wait for each other (Little's law):
//
//	parallel = clamp(answered · 50 ms / elapsed, 4, podBatchSize)
//
// The syncs of a namespace have 256 requests under way together at most, because all
// namespaces share one budget of requests: of f syncs in flight, each has
//
//	256 / f
//
// A request is given up after 45 s. The API server gives a webhook up after 30 s.
//
// A look at all objects of a kind lists them page by page, and is given up after 4 minutes: the API server hardly keeps
// the snapshot of a paged list for longer.
//
// Writing a status that is in conflict, and too large, may take 15 minutes. A sync that has not ended after 20 minutes
// counts as hanging: the process reports that it is not healthy.
//
// # Back-off
//
// A request that fails has a cause: a role with refused Pods, or one object. Of the requests with the same cause, one
// is tried again, after a delay that depends on f, the failures in a row:
//
//	delay = 50 ms · 2^(f-1), at most 50 s, and a fifth less by chance
//
// A Framework with many causes does not try more often. When the last F tries, of any causes, have failed, the next try
// comes this long after the last:
//
//	distance = min(50 ms · 2^F, 30 s)
//
// So a Framework with a steady error sends two requests a minute, and a Framework with one or two causes uses room
// that has become free at most 60 s later. Of several causes that are due, the one that was tried longest ago comes first, so
// that each is tried. When a try succeeds, all other causes that were last tried 5 s ago or earlier are tried together.
//
// A sync that fails as a whole, and a write of the status, are tried again after the same delay. As everything else
// waits for these tries, F counts only their own failures in a row.
//
// A PodGroup that another client deletes or changes is written again, and so are the objects of other kinds of jobs.
// The f-th write in a row waits for the delay of f failures. If r writes are repeated, such as those of Pods that
// fail at once, the longest delay is
//
//	longest = max(50 s, r · 1 min / 200)
//
// so that all of them together are repeated 200 times a minute at most. A row ends with a
// write that has lasted for twice the longest delay.
//
// # Looks
//
// An object that has left the cache, and was not seen to be deleted, is looked for after 500 ms: the event about its
// end comes later than the cache. If the object exists, the controller looks at it every 30 s, at most a hundred
// objects of an owner, beginning with the one that was looked at longest ago. The Secret of a job, which is not
// watched, is looked at every 30 s too.
package pacing

import "time"

// Sizes, in tasks.
const (
	// fewTasks is the number of tasks from which on changes of the status are collected before they are written, even
	// if actions on tasks wait for the write.
	fewTasks = 50
	// tasksPerWindow is how many tasks one coalescing window is for.
	tasksPerWindow = 200
)

// Writes of the status, in windows.
const (
	// pauseWindows is how long a pause ends a wave.
	pauseWindows = 4
	// waveGrowth is the ratio of the wait for a write to the age of its wave.
	waveGrowth = 2
	// maxGatingWindows is how many windows a change may wait at most if actions on tasks wait for it to be written.
	maxGatingWindows = 4
	// busyWindows is how many windows a change may wait while the controller runs actions that will change the status
	// again.
	busyWindows = 12
	// startingWindows is how many times W the first change waits while tasks are about to start. maxWindows is how many
	// times W any change waits at most. W is the window of a small Framework, even in a large one.
	startingWindows, maxWindows = 30, 100
	// maxOwnWindows is how many windows of its own size a large Framework waits at most. That is 10 ms per task by
	// default, about as long as an API server takes to start a task.
	maxOwnWindows = 20
	// startingWrites limits how long the first change of a start waits, as a multiple of the duration of the last
	// write.
	startingWrites = 100
)

// Syncs.
const (
	// decideCost is how much time of a worker a decision may take per task.
	decideCost = 100 * time.Microsecond
	// A sync begins nothing new once it has lasted turnTime and has made turnRequests requests, or once it has lasted
	// longestTurn.
	turnTime     = 100 * time.Millisecond
	turnRequests = 50
	longestTurn  = 2 * time.Second
	// Patience is how long a sync may occupy a worker. After that the sync continues without the worker: a busy API
	// server takes a while to store the status of thousands of tasks.
	Patience = 200 * time.Millisecond
	// MaxFlights is how many syncs of one namespace may be under way, with or without a worker. MaxFlightsInAll is how
	// many of all namespaces together may be, not counting one of each namespace.
	MaxFlights, MaxFlightsInAll = 32, 1024
	// maxRounds is how many rounds in a row a Framework may take, besides one for each of its tasks. Normal work takes
	// fewer. If another client undoes at once what the controller does, the Framework never comes to rest; after so
	// many rounds it is backed off as after an error.
	maxRounds = 500
)

// Requests.
const (
	// answerTime is how long it should take the API server to answer all requests that a sync has under way.
	answerTime = 50 * time.Millisecond
	// minParallel is how many requests are under way at the same time at least.
	minParallel = 4
	// maxRequests is how many requests of a namespace are under way at most.
	maxRequests = 256
	// FlushTime is how long requests may continue after the controller was asked to stop. A kubelet waits longer than
	// that before it kills the controller.
	FlushTime = 10 * time.Second
	// RequestTime is how long a request may take. It is longer than the API server waits for a webhook.
	RequestTime = 45 * time.Second
	// AskTime is how long the API server may take to say which fields of a template it does not know. If the
	// configuration refuses unknown fields, Pods are not created before the answer.
	AskTime = 10 * time.Second
	// MaxAskAgain is the longest pause before the API server is asked about a template again: because it could not
	// answer, or because a newer version may know more fields.
	MaxAskAgain = time.Hour
	// LookTime is how long one live read may take in all: the pages of a list of a namespace, and reads of single
	// objects that the list has not shown.
	LookTime = 4 * time.Minute
	// StuckAfter is the duration after which a sync is assumed never to end. It is longer than a sync with requests
	// that all take RequestTime: after longestTurn a sync makes at most one write of the status, with retries, one
	// look, one batch of creations, and one batch of other actions.
	StuckAfter = 20 * time.Minute
	// EventDelay is the time in which events of a Framework's Pods are collected before the Framework is synced.
	EventDelay = 10 * time.Millisecond
)

// Back-off of what has failed.
const (
	// MinBackoff is the delay after the first failure, MaxBackoff the longest.
	MinBackoff = 50 * time.Millisecond
	MaxBackoff = 50 * time.Second
	// maxTryDistance is the longest time between two tries of one Framework. It is half a minute, so that a Framework
	// with two causes tries each of them within a minute.
	maxTryDistance = 30 * time.Second
	// soonAfterGrant is how long after its last try a failed cause is tried again if meanwhile a request of another
	// cause has succeeded.
	soonAfterGrant = 5 * time.Second
	// repeatsPerMinute is how often many writes together are repeated in the end.
	repeatsPerMinute = 200
)

// Looks.
const (
	// LookDelay is how long an object has been missing in the cache when the controller reads the object from the API
	// server. LookInterval is the time between two such reads if the API server has the object and the cache still
	// lacks it.
	LookDelay    = 500 * time.Millisecond
	LookInterval = 30 * time.Second
)

// Events and log.
const (
	// MaxToldInARow is how many events with one reason are recorded in a row for an owner; after that, one event is
	// recorded every ToldEvery. Otherwise thousands of failing tasks would cause as many events and log lines.
	MaxToldInARow = 25
	ToldEvery     = time.Minute
	// MaxTellTries is how often the controller tries to record an event while the API server does not accept it, and
	// TellAgain how long it waits in between. client-go has the same values.
	MaxTellTries, TellAgain = 12, 10 * time.Second
	// UnservedAfter is how long the first lists of optional kinds may take before the controller logs that the kinds
	// are missing.
	UnservedAfter = 10 * time.Second
)
