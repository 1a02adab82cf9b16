// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// faults are what goes wrong between the controller and the API server. What befalls
// a request is drawn from the seed, the request and how often it was made, so that
// a life does not change with the order in which goroutines run.
type faults struct {
	seed  uint64
	trace *trace

	mu sync.Mutex
	// odds are of each kind of fault, in percent of the requests that it may befall.
	odds map[fault]int
	// only, if set, chooses the Framework whose requests faults befall.
	only string
	// rules are asked first.
	rules []rule
	seen  map[string]int
	// requests counts requests for a Framework, but those for its events.
	requests map[string]int
	events   map[string]int
	// sent is when a process last sent the creation of a Pod, by process and Pod.
	sent map[string]time.Time
}

// fault is a kind of fault.
type fault string

const (
	faultConflict    fault = "conflict"
	faultThrottled   fault = "429"
	faultInternal    fault = "500"
	faultUnavailable fault = "503"
	faultBroken      fault = "connection lost"
	faultLostAnswer  fault = "answer lost"
	faultSlow        fault = "slow"
	faultSlowAnswer  fault = "slow answer"
	faultLate        fault = "late"
)

var faultKinds = []fault{faultConflict, faultThrottled, faultInternal, faultUnavailable, faultBroken,
	faultLostAnswer, faultSlow, faultSlowAnswer, faultLate}

// rule refuses requests as long as it is there.
type rule struct {
	name    string
	applies func(*apiserver.Request) bool
	refusal func(*apiserver.Request) error
}

func newFaults(seed uint64, trace *trace) *faults {
	return &faults{seed: seed, trace: trace, odds: map[fault]int{}, seen: map[string]int{},
		requests: map[string]int{}, events: map[string]int{}, sent: map[string]time.Time{}}
}

// set gives kinds of faults their odds, and those that are not in it none.
func (f *faults) set(odds map[fault]int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.odds = odds
}

// add adds a rule, in the place of one of its name.
func (f *faults) add(r rule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.remove(r.name)
	f.rules = append(f.rules, r)
	f.trace.log("from now on: %s", r.name)
}

// drop removes the rules of a name; all of them if it is empty.
func (f *faults) drop(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.remove(name)
}

func (f *faults) remove(name string) {
	var kept []rule
	for _, r := range f.rules {
		if name != "" && r.name != name {
			kept = append(kept, r)
		} else {
			f.trace.log("no more: %s", r.name)
		}
	}
	f.rules = kept
}

// frameworkOf is the Framework that a request is about, "" if it is about none: the
// names of all objects of a Framework begin with its own.
func frameworkOf(r *apiserver.Request) string {
	if r.Name == "" || r.Namespace == "" {
		return ""
	}
	name, _, _ := strings.Cut(r.Name, "-")
	name, _, _ = strings.Cut(name, ".")
	return r.Namespace + "/" + name
}

// befall is an apiserver.Hook.
func (f *faults) befall(r *apiserver.Request) apiserver.Fault {
	if !strings.HasPrefix(r.Process, "controller") {
		return apiserver.Fault{}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	framework := frameworkOf(r)
	if r.Resource == "events" {
		f.events[framework]++
	} else {
		f.requests[framework]++
	}
	if creates(r, "pods", "") {
		f.sent[r.Process+" "+r.Namespace+"/"+r.Name] = time.Now()
	}
	what := f.draw(r, framework)
	if f.trace.verbose && (r.Verb != apiserver.Watch || what != apiserver.Fault{}) {
		f.trace.log("  %s%s", r, describe(what))
	}
	return what
}

// sentAt returns when the creation of a Pod was sent that has arrived now.
func (f *faults) sentAt(w *apiserver.Written) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sent[w.Process+" "+w.Key.String()]
}

// lateStatuses are statuses that former leaders sent, and that arrived after another process had begun to lead. The
// leader may have sent the creation of a Pod before, by the status that was stored then. Nobody can call the creation
// back; the leader deletes the Pod when it sees the status.
type lateStatuses struct {
	// arrived is when the last of them arrived, by the job's UID.
	arrived map[types.UID]time.Time
	// sentAt returns when the creation of a Pod was sent; nil if requests are never late.
	sentAt func(w *apiserver.Written) time.Time
}

func (l *lateStatuses) note(job types.UID) {
	if l.arrived == nil {
		l.arrived = map[types.UID]time.Time{}
	}
	l.arrived[job] = time.Now()
}

// excuse reports whether the creation of a Pod was sent before the last late status of its job arrived.
func (l *lateStatuses) excuse(w *apiserver.Written, job types.UID) bool {
	return l.sentAt != nil && l.sentAt(w).Before(l.arrived[job])
}

func (f *faults) draw(r *apiserver.Request, framework string) apiserver.Fault {
	if f.only != "" && framework != f.only {
		return apiserver.Fault{}
	}
	for _, rule := range f.rules {
		if rule.applies(r) {
			return apiserver.Fault{Refusal: rule.refusal(r)}
		}
	}
	request := r.String()
	_, request, _ = strings.Cut(request, ":") // Programs come and go.
	f.seen[request]++
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%s %d", request, f.seen[request])
	random := rand.New(rand.NewPCG(f.seed, hash.Sum64()))
	for _, kind := range faultKinds {
		if odds := f.odds[kind]; odds > 0 && random.IntN(100) < odds {
			if what := faultOf(kind, r, random); what != (apiserver.Fault{}) {
				return what
			}
		}
	}
	return apiserver.Fault{}
}

// faultOf is a fault of a kind. It is none if requests like this don't meet it.
func faultOf(kind fault, r *apiserver.Request, random *rand.Rand) apiserver.Fault {
	long := time.Duration(1+random.IntN(30)) * time.Second
	switch kind {
	case faultConflict:
		if r.Verb == apiserver.Update || r.Verb == apiserver.Patch || r.Verb == apiserver.Delete {
			return apiserver.Fault{Refusal: apierrors.NewConflict(schema.GroupResource{Resource: r.Resource}, r.Name, errors.New("the object has been modified"))}
		}
	case faultThrottled:
		return apiserver.Fault{Refusal: apiserver.TooManyRequests(1 + random.IntN(5))}
	case faultInternal:
		return apiserver.Fault{Refusal: apiserver.WebhookFailed("hook.example.com")}
	case faultUnavailable:
		return apiserver.Fault{Refusal: apiserver.Unavailable()}
	case faultBroken:
		return apiserver.Fault{Refusal: apiserver.ConnectionLost()}
	case faultLostAnswer:
		if r.Verb != apiserver.Watch {
			return apiserver.Fault{LoseAnswer: true}
		}
	case faultSlow:
		return apiserver.Fault{Before: long}
	case faultSlowAnswer:
		if r.Verb != apiserver.Watch {
			return apiserver.Fault{After: long}
		}
	case faultLate:
		if r.Verb.Writes() {
			return apiserver.Fault{Before: long, Late: true}
		}
	}
	return apiserver.Fault{}
}

func describe(f apiserver.Fault) string {
	var text string
	if f.Refusal != nil {
		text += fmt.Sprintf(": refused: %v", f.Refusal)
	}
	if f.Before > 0 {
		text += fmt.Sprintf(": takes %v to get there", f.Before)
	}
	if f.Late {
		text += ", whatever becomes of who asks"
	}
	if f.After > 0 {
		text += fmt.Sprintf(": the answer takes %v", f.After)
	}
	if f.LoseAnswer {
		text += ": the answer is lost"
	}
	return text
}

// creates says whether a request creates an object of a resource whose name begins
// like that.
func creates(r *apiserver.Request, resource, prefix string) bool {
	return r.Verb == apiserver.Create && r.Resource == resource && strings.HasPrefix(r.Name, prefix)
}

// podsRefused is a rule that refuses Pods whose names begin like that.
func podsRefused(name, prefix string, refusal func(pod string) error) rule {
	return rule{
		name:    name + " for Pods " + prefix + "*",
		applies: func(r *apiserver.Request) bool { return creates(r, "pods", prefix) },
		refusal: func(r *apiserver.Request) error { return refusal(r.Name) },
	}
}

// The ways in which Pods are refused.
var podRefusals = map[string]func(pod string) error{
	"quota":   func(pod string) error { return apiserver.QuotaExceeded(pod, "compute") },
	"webhook": func(string) error { return apiserver.WebhookFailed("pods.example.com") },
	"denial":  func(string) error { return apiserver.WebhookDenied("pods.example.com", "no") },
	"invalid": func(pod string) error {
		return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), pod, nil)
	},
	"overload": func(string) error { return apiserver.TooManyRequests(2) },
}

// count is how many requests, events and log lines there were of a Framework.
func (f *faults) count(framework string) (requests, news int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.requests[framework], f.events[framework] + f.trace.linesOf(framework)
}
