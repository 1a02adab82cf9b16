// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package coscheduling is the scheduler plugin Coscheduling: it places the
// members of a PodGroup in one step or not at all.
//
// # Contract
//
// No member of a group is bound unless, at that moment, the group's minimum can
// be bound with it, counting members that are placed already. A group that
// waits holds nothing but a reservation (package room). Reservations concern only gangs that are behind in the queue, whose
// order is total: so no two gangs can block each other. Pods that name no group are scheduled as by kube-scheduler, of which
// the plugin is a part. All code that leans on kube-scheduler's inside is in package kube.
//
// # From event to binding
//
// Attach puts all this together once (attach.go: attach). Then the way of a gang is this; follow it by "go to definition".
// `make walk` prints the files, and TestTheWalk holds this page to the code.
//
// A. An event changes what is known of a gang. Informers call 1 and 2, each on a goroutine of its own.
//
//  1. A PodGroup of any kind is read as one neutral Group (podgroups.go: kind.set, dialect/own.go: FromOwn), and the gang
//     takes it on (gangs/gangs.go: Gangs.SetGroup).
//  2. A Pod is found to name a gang (watch.go: watcher.setPod, dialect/links.go: Links.KeyOf), is added there or seen anew
//     (gangs/gangs.go: Gangs.SetPod, gangs/transitions.go: gang.add, gangs/transitions.go: gang.see), and is counted as
//     waiting, placed or bound (gangs/gang.go: gang.count, gangs/member.go: member.state).
//  3. The change is passed on (gangs/gangs.go: Gangs.changed): a gang that is complete enters the queue of gangs
//     (queue/queue.go: Queue.Enter), which is in the order of their ranks (queue/rank.go: Rank.Compare). What others are to do is collected
//     (gangs/due.go: Follower.Take), and the goroutine of step 5 does it (wakeup.go: waker.carryOut).
//  4. Anything else that happens in the cluster may help a gang that was refused. The queue in front of kube-scheduler's own
//     hears of each event (kube/queue.go: PodQueue.MoveAllToActiveOrBackoffQueue), events that help no gang are left out
//     (events.go: heard, events.go: happened), and the queue of gangs compares the others with what the gang needs
//     (gangs/changes.go: Gangs.Happened, queue/queue.go: Queue.Happened, queue/need.go: Need.helps). A gang also has a cycle
//     when a time comes that its last cycle named, and after a minute in which nothing happened (queue/queue.go: Queue.tick).
//
// B. A gang is woken. Members never wait in kube-scheduler's queue (kube/queue.go: PodQueue.Add).
//
//  5. A goroutine that each change wakes (wakeup.go: waker.tend) asks which gang is due (gangs/cycles.go: Cycles.Next), and puts
//     a placeholder Pod of the gang's priority into kube-scheduler's queue (kube/wakeup.go: WakeUps.Put; why: ADR 25).
//  6. kube-scheduler pops the placeholder, on its only scheduling goroutine. The engine, which stands in front of Pop, takes
//     it (engine.go: engine.nextEntity, kube/wakeup.go: WakeUps.Take) and begins the cycles of the gangs that are due
//     (engine.go: engine.runCycles, gangs/cycles.go: Cycles.Begin).
//
// C. The scheduling cycle decides (cycle.go: engine.runCycle has the table of outcomes). Nobody is bound or evicted before D.
//
//  7. If a gang that is alike was refused just before, that is the answer (gangs/cycles.go: Cycles.Alike). Else the gang and the
//     cluster go in, and an Outcome comes out (cycle.go: engine.decide, place/place.go: Place). Reservations of gangs ahead
//     count as taken (place/ahead.go: respect).
//  8. Members that need the same are one class; the Filter plugins look at each node once for each class, and in the next
//     cycle at the nodes that have changed (place/world.go: attempt.survey, place/filters.go: filters.filter).
//  9. The planner, a pure function, packs all members, the tightest domain first (planner/plan.go: Plans, planner/pack.go: pack).
//  10. Plugins verify the plan member by member, with the members before assumed (place/prefer.go: attempt.realize,
//     place/verify.go: verification.follow). If no plan holds, or members prefer to be near others, they are placed one by
//     one (place/onebyone.go: oneByOne.place; why: ADR 67).
//  11. A gang without a place may have Pods of lower priority end, or, as the first that waits, a reservation in time
//     (place/seek.go: seeker.seek, victims/search.go: Search; why: ADR 68, ADR 74).
//  12. Members with a place are assumed in kube-scheduler's cache and by the gang, all or none, if the gang is still as it was
//     planned (cycle.go: engine.commit, cycle.go: engine.assume, gangs/cycles.go: Cycles.Assume).
//
// D. The outcome is carried out (cycle.go: engine.apply).
//
//  13. The reservation becomes that of the outcome, or ends (reservations.go: keeper.become); ordinary Pods respect it by the
//     plugin's Filter (filter.go: Coscheduling.Filter). Victims are evicted (evict.go: evictor.evict). When they end, that is
//     an event, at step 2 or 4. The rest of a gang that lost members goes, too (gangs/gangs.go: noticeBroken,
//     evict.go: evictor.dissolve).
//  14. What has no place is refused, and backs off until an event may help it (cycle.go: engine.refuse,
//     gangs/cycles.go: Cycles.Refuse, queue/cycle.go: Queue.Refused).
//  15. Each member that was assumed is bound on a goroutine of its own (bind.go: binder.bind, kube/binding.go: RunBindingCycle,
//     binding.go: binding.write). The binding comes back as an event of the Pod, at step 2. A binding that fails is taken
//     back, and the gang backs off (gangs/cycles.go: Cycles.Unassume).
//  16. Conditions, events and marks of Pods say what came of it (news/conditions.go: Gang.News, status/reporter.go: Reporter.tell).
//
// # A new leader
//
// A replica that stands by does A, so that it knows all gangs. It leads from the first call of engine.nextEntity on
// (watch.go: watcher.start, gangs/gangs.go: Gangs.SetSynced). Then each gang begins (gangs/gangs.go: Gangs.begin): of a gang of
// which some members are bound, the others are planned as at step 7; what preemption has left of a gang is dissolved.
// Reservations are not stored: a gang that waits gets a new one.
//
// # The life of a reservation in time
//
// The first gang of the queue may have one, if its run time is known or it has waited for a minute (cycle.go: engine.prepare,
// room/intime.go: MayBegin). It is made of the ends of running work (room/intime.go: NewInTime), follows them in each of the
// gang's cycles (room/intime.go: Reservation.Renewed), and ends with the gang's wait, or when nodes were idle for it for too
// long (room/intime.go: Reservation.MayHold, reservations.go: keeper.prune).
package coscheduling
