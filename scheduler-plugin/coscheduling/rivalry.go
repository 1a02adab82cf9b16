// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/place"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/rivals"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/status"
)

const (
	// leasesPeriod is how often it is looked for Leases of other schedulers, and leasesTimeout how
	// long the look for one of them may take.
	leasesPeriod  = time.Minute
	leasesTimeout = 5 * time.Second
	// successionGrace is how long after this scheduler began to lead a Pod is first seen if the one that
	// led before can't have bound it: a watch may lag until its
	// connection is found dead, and then by a back-off. A real rival shows by its next Pod.
	successionGrace = 90 * time.Second
)

// rivalry looks for other schedulers that serve a name which is served here.
type rivalry struct {
	known  rivals.Known
	leases coordinationclient.LeasesGetter
	// seen are the Leases as they were at the last looks, which do not overlap.
	seen rivals.Leases
	// names are those that nobody else is to serve, and own is the Lease of this scheduler.
	names []string
	own   types.NamespacedName
	// handed are the Pods that this scheduler itself may have bound.
	handed *handed
	// began is when the scheduler has begun to schedule, nil before.
	began atomic.Pointer[time.Time]
	// yields are the dialects of which this scheduler leaves the groups alone while it has a rival.
	yields map[dialect.Dialect]bool
}

// refuses says whether a gang is left to a rival, by the scheduler names of its Pods. A
// rival of Volcano's name is one of all groups of Volcano: it writes them, whomever their Pods name.
func (r *rivalry) refuses(gang dialect.Key, names []string) bool {
	return r.yields[gang.Dialect] && slices.ContainsFunc(r.known.In(gang.Namespace, time.Now()), func(name string) bool {
		return name == volcanoProfile || slices.Contains(names, name)
	})
}

// schedulersOf are the scheduler names of Pods, each once.
func schedulersOf(pods []*corev1.Pod) []string {
	var names []string
	for _, pod := range pods {
		if name := pod.Spec.SchedulerName; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// whileRival is why a gang has no place meanwhile.
func whileRival() place.Shortfall {
	return place.Shortfall{Unready: true, Message: "another scheduler runs that would place the same Pods or write the same groups"}
}

// tend looks for Leases now and then, until ctx ends.
func (r *rivalry) tend(ctx context.Context) {
	for {
		select {
		case <-time.After(leasesPeriod):
			r.look(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// look looks once whether somebody else holds a Lease of a name that is served here. The right to do
// so is optional.
func (r *rivalry) look(ctx context.Context) {
	leases := make([]*coordinationv1.Lease, len(r.names))
	var looks sync.WaitGroup
	for i, name := range r.names {
		looks.Go(func() { leases[i] = r.leaseOf(ctx, name) })
	}
	looks.Wait()
	for i, name := range r.names {
		if leases[i] == nil {
			continue
		}
		if sign, held := r.seen.Sign(name, leases[i], time.Now()); held {
			r.note(ctx, sign)
		}
	}
}

// leaseOf is the Lease of whoever else serves a name, nil if none is found.
func (r *rivalry) leaseOf(ctx context.Context, name string) *coordinationv1.Lease {
	at := rivals.LeaseOf(name)
	if at == r.own {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, leasesTimeout)
	defer cancel()
	lease, err := r.leases.Leases(at.Namespace).Get(ctx, at.Name, metav1.GetOptions{})
	if err == nil {
		return lease
	}
	logger := klog.FromContext(ctx).V(4)
	if ctx.Err() != nil {
		logger = klog.FromContext(ctx).V(2) // there may be one
	}
	logger.Info("No Lease of another scheduler of the same name was found", "schedulerName", name, "reason", err.Error())
	return nil
}

// boundElsewhere learns of a member that waited for its gang and was bound, and since when this scheduler
// has known it: by its own clock, as that of who writes creation times may differ. It does not block. A Pod
// that comes to name a gang while it is being bound as an ordinary one shows no rival.
func (r *rivalry) boundElsewhere(ctx context.Context, pod *corev1.Pod, known time.Time) {
	if r.handed.has(pod) {
		return
	}
	if began := r.began.Load(); began != nil && known.After(began.Add(successionGrace)) {
		go r.note(ctx, rivals.OfBinding(pod))
	}
}

// begin notes that the scheduler begins to schedule.
func (r *rivalry) begin() {
	now := time.Now()
	r.began.Store(&now)
}

// yielding are gangs of which nothing is told that are left to a rival.
type yielding struct {
	status.Gangs
	rivalry *rivalry
}

// Look implements status.Gangs.
func (y yielding) Look(key dialect.Key) (news.Gang, bool) {
	gang, ok := y.Gangs.Look(key)
	gang.Theirs = gang.Theirs || y.rivalry.refuses(key, gang.Schedulers)
	return gang, ok
}

// note notes a sign, and tells of it if it is the first.
func (r *rivalry) note(ctx context.Context, sign rivals.Sign) {
	if r.known.Note(sign, time.Now()) {
		klog.FromContext(ctx).Error(nil, "Two schedulers serve one scheduler name. Both place its Pods and write their groups: stop one of them, or have it serve another name",
			"schedulerName", sign.Name, "this", status.FieldManager, "other", sign.Other)
	}
}

// contested are the names that somebody else serves, too.
func (r *rivalry) contested() []string {
	return r.known.Names(time.Now())
}
