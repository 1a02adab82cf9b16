// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"math"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
)

// LabelGangByOwner is the label of a namespace in which the Pods of Jobs, JobSets and
// LeaderWorkerSets may be gangs, if its value is "true".
const LabelGangByOwner = "scheduling.lockstep.dev/gang-by-owner"

// shape says what of an owner is a gang. It never changes while the owner exists.
type shape uint8

const (
	// shapeWhole: all that the rule names, as one.
	shapeWhole shape = iota
	// shapeJobs: each of its Jobs.
	shapeJobs
	// shapeNone: nothing.
	shapeNone
)

// Owner is what the object of an owner says of its Pods.
type Owner struct {
	// uid tells it from another one that has its name later.
	uid   types.UID
	shape shape
	// minimum is how many of the gang are placed together; 0 if the Pods say it themselves.
	// roles are those of the Jobs of each role, if each is a gang.
	minimum int32
	roles   map[string]int32
}

// SameMinima says whether Pods of both owners are placed in the same numbers.
func (o *Owner) SameMinima(other *Owner) bool {
	if o.minimum != other.minimum || len(o.roles) != len(other.roles) {
		return false
	}
	for role, n := range o.roles {
		if other.roles[role] != n {
			return false
		}
	}
	return true
}

// OwnerKey names an owner in the way in which its Pods do.
type OwnerKey struct {
	Rule configv1alpha1.GroupingRule
	// Name is the UID or, of a LeaderWorkerSet, the name.
	Namespace, Name string
}

// String is the key in one word, for an index.
func (k OwnerKey) String() string {
	return string(k.Rule) + "/" + k.Namespace + "/" + k.Name
}

// OwnerKind is a kind of owners whose objects tell what is a gang.
type OwnerKind struct {
	Rule     configv1alpha1.GroupingRule
	Resource schema.GroupVersionResource
	// ByName says that Pods name the owner by its name, and not by its UID.
	ByName bool
	// read is what an object says of its Pods.
	read func(*unstructured.Unstructured) Owner
}

// Read is what an object says of its Pods.
func (k *OwnerKind) Read(object *unstructured.Unstructured) Owner {
	owner := k.read(object)
	owner.uid = object.GetUID()
	return owner
}

// OwnerKinds are all kinds of owners that rules ask for.
func OwnerKinds() []OwnerKind {
	return []OwnerKind{
		{Rule: configv1alpha1.RuleJobSets, Resource: schema.GroupVersionResource{Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"}, read: fromJobSet},
		{Rule: configv1alpha1.RuleLeaderWorkerSets, ByName: true,
			Resource: schema.GroupVersionResource{Group: "leaderworkerset.x-k8s.io", Version: "v1", Resource: "leaderworkersets"}, read: fromLeaderWorkerSet},
		{Rule: configv1alpha1.RuleJobs, Resource: schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}, read: fromJob},
	}
}

// KeyOf is how Pods name an owner.
func (k *OwnerKind) KeyOf(object *unstructured.Unstructured) OwnerKey {
	key := OwnerKey{Rule: k.Rule, Namespace: object.GetNamespace(), Name: string(object.GetUID())}
	if k.ByName {
		key.Name = object.GetName()
	}
	return key
}

// Reduce has an object be without what is not read of it, which is most of it.
func (k *OwnerKind) Reduce(object *unstructured.Unstructured) {
	object.SetManagedFields(nil)
	for _, path := range [][]string{{"status"}, {"spec", "template"}, {"spec", "selector"}, {"spec", "leaderWorkerTemplate"}} {
		unstructured.RemoveNestedField(object.Object, path...)
	}
	value, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "replicatedJobs")
	jobs, _ := value.([]any)
	for _, item := range jobs {
		if job, ok := item.(map[string]any); ok {
			unstructured.RemoveNestedField(job, "template", "spec", "template")
		}
	}
}

// fromJob reads a Job: parallelism of its Pods run at once, or completions if that is less.
func fromJob(job *unstructured.Unstructured) Owner {
	return Owner{minimum: podsOfJob(job.Object, "spec")}
}

// podsOfJob is how many Pods of a Job run at once, at least 1, by its spec.
func podsOfJob(object map[string]any, path ...string) int32 {
	spec, _, _ := unstructured.NestedMap(object, path...)
	pods := int32(1)
	if _, says := spec["parallelism"]; says {
		pods = number(spec["parallelism"])
	}
	if _, says := spec["completions"]; says {
		pods = min(pods, number(spec["completions"]))
	}
	return max(1, pods)
}

// fromJobSet reads a JobSet. If some of its Jobs begin only after others, then each Job is a gang.
func fromJobSet(set *unstructured.Unstructured) Owner {
	owner := Owner{roles: map[string]int32{}}
	order, _, _ := unstructured.NestedString(set.Object, "spec", "startupPolicy", "startupPolicyOrder")
	if order == "InOrder" {
		owner.shape = shapeJobs
	}
	jobs, _, _ := unstructured.NestedSlice(set.Object, "spec", "replicatedJobs")
	var total int64 // of numbers that are bounded, so it is no more than it can be
	for _, item := range jobs {
		job, ok := item.(map[string]any)
		if !ok {
			continue
		}
		if after, _, _ := unstructured.NestedSlice(job, "dependsOn"); len(after) > 0 {
			owner.shape = shapeJobs
		}
		replicas := int32(1)
		if _, says := job["replicas"]; says {
			replicas = number(job["replicas"])
		}
		name, _, _ := unstructured.NestedString(job, "name")
		owner.roles[name] = podsOfJob(job, "template", "spec")
		total += min(int64(replicas)*int64(owner.roles[name]), math.MaxInt32)
	}
	if owner.shape == shapeWhole {
		owner.minimum, owner.roles = int32(min(max(1, total), math.MaxInt32)), nil
	}
	return owner
}

// fromLeaderWorkerSet reads a LeaderWorkerSet. If workers are made only when the leader is
// ready, or has a node, no gang of all of them can begin.
func fromLeaderWorkerSet(set *unstructured.Unstructured) Owner {
	policy, _, _ := unstructured.NestedString(set.Object, "spec", "startupPolicy")
	annotations := set.GetAnnotations()
	if policy == "LeaderReady" || annotations["leaderworkerset.sigs.k8s.io/exclusive-topology"] != "" ||
		annotations["leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"] != "" {
		return Owner{shape: shapeNone}
	}
	return Owner{}
}

// Owners know what the owners of Pods say. They are safe for concurrent use. Nil knows nothing.
//
// What of an owner is a gang is decided once and stays, so that a Pod never changes from one gang
// to another, unless its owner is made anew under its name.
type Owners struct {
	// Allows says whether owners of a namespace may make gangs, and whether that is known.
	Allows func(namespace string) (allowed, known bool)

	mu     sync.RWMutex
	known  map[OwnerKey]Owner
	listed map[configv1alpha1.GroupingRule]bool
	// refused are the namespaces, as OwnerKeys without a name, in which owners may not be listed.
	refused map[OwnerKey]bool
}

// SetRefused says whether the owners of a namespace may not be listed for which a rule asks. At first they may.
// It says whether that is news.
func (o *Owners) SetRefused(rule configv1alpha1.GroupingRule, namespace string, refused bool) (isNews bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.refused == nil {
		o.refused = make(map[OwnerKey]bool)
	}
	where := OwnerKey{Rule: rule, Namespace: namespace}
	isNews = o.refused[where] != refused
	o.refused[where] = refused
	return isNews
}

// SetListed says whether all owners are seen for which a rule asks. At first they are not.
func (o *Owners) SetListed(rule configv1alpha1.GroupingRule, listed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.listed == nil {
		o.listed = make(map[configv1alpha1.GroupingRule]bool)
	}
	o.listed[rule] = listed
}

// areListed says whether all owners are seen, in the namespace of one, for which its rule asks.
func (o *Owners) areListed(beside OwnerKey) bool {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.listed[beside.Rule] && !o.refused[OwnerKey{Rule: beside.Rule, Namespace: beside.Namespace}]
}

// Set learns what an owner says. It says whether its Pods are to be looked at anew, for which it
// has to be called in a namespace that is allowed; in another one nothing is learned of an owner
// that is not known.
func (o *Owners) Set(key OwnerKey, owner Owner) (isNews bool) {
	allowed, _ := o.Allows(key.Namespace)
	o.mu.Lock()
	defer o.mu.Unlock()
	before, known := o.known[key]
	same := known && before.uid == owner.uid
	if !same && !allowed {
		delete(o.known, key)
		return known
	}
	if same && before.shape != owner.shape {
		return false // the shape stays
	}
	if o.known == nil {
		o.known = make(map[OwnerKey]Owner)
	}
	o.known[key] = owner
	return !known || before.shape != owner.shape || !before.SameMinima(&owner)
}

// Forget forgets an owner. None of its Pods may be left.
func (o *Owners) Forget(key OwnerKey) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.known, key)
}

// of is what the owner of a Pod says. Awaited says that it will be known, or that it is unknown
// whether the namespace is one of those.
func (o *Owners) of(key OwnerKey) (owner Owner, known, awaited bool) {
	o.mu.RLock()
	owner, known = o.known[key]
	o.mu.RUnlock()
	if known {
		return owner, true, false
	}
	allowed, certain := o.Allows(key.Namespace)
	return Owner{}, false, allowed || !certain
}

// number is a whole number of an object, at least 0.
func number(value any) int32 {
	switch n := value.(type) {
	case int64:
		return int32(min(max(n, 0), math.MaxInt32))
	case float64:
		return int32(min(max(n, 0), math.MaxInt32))
	default:
		return 0
	}
}
