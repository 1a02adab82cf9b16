// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-k8s/lockstep/controller/engine"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/internal/informing"
)

// This file is the smallest core that does something: a Note has a ConfigMap with its
// text. It is for those who are about to write a core, and for tests of the engine.

// Note is an owner.
type Note struct {
	metav1.TypeMeta
	metav1.ObjectMeta `json:"metadata"`
	Spec              NoteSpec   `json:"spec"`
	Status            NoteStatus `json:"status"`
}

// NoteSpec is what the user wants.
type NoteSpec struct {
	Text string `json:"text"`
}

// remarkKey is the annotation of a Note whose value is to be seen in its status.
const remarkKey = "example.com/remark"

// NoteStatus is all that the core remembers for sure.
type NoteStatus struct {
	// Revision is the generation whose text the ConfigMap is to have. It is written before
	// the ConfigMap is.
	Revision int64 `json:"revision"`
	// Shown says that it has the text.
	Shown bool `json:"shown"`
	// Remark is news on which nothing rests.
	Remark string `json:"remark,omitempty"`
}

// DeepCopyObject makes a Note an object.
func (n *Note) DeepCopyObject() runtime.Object {
	copied := *n
	copied.ObjectMeta = *n.ObjectMeta.DeepCopy()
	return &copied
}

// noteKind is how the API server knows Notes.
var noteKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Note"}

// revisionKey is the annotation that says which text a ConfigMap has.
const revisionKey = "example.com/revision"

// noteSnapshot is all that a decision about a Note sees.
type noteSnapshot struct {
	note *Note
	// persisted is what the API server has, and status what was decided last.
	persisted, status *NoteStatus
	// current says that persisted is no old one.
	current bool
	// configMap is the Note's, nil if there is none, and deleted says that it will go.
	configMap *corev1.ConfigMap
	deleted   bool
}

// decideOnNote is the core of the core. It is pure: what it sees is in the snapshot, and
// what it wants is in the plan.
func decideOnNote(s noteSnapshot) plan.Plan[NoteStatus] {
	// First the status: what follows from what is seen.
	next := NoteStatus{Revision: s.note.Generation, Remark: s.note.Annotations[remarkKey]}
	has := s.configMap != nil && s.configMap.Annotations[revisionKey] == strconv.FormatInt(next.Revision, 10)
	next.Shown = has && !s.deleted
	if s.persisted == nil || s.persisted.Revision != next.Revision {
		// Nothing is written to the ConfigMap before it is on record what it will be.
		return plan.Plan[NoteStatus]{Status: &next, Persist: plan.PersistNow}
	}
	p := plan.Plan[NoteStatus]{Status: s.persisted}
	if *s.persisted != next {
		p.Status, p.Persist = &next, plan.PersistLater
		if next.Shown && !s.status.Shown { // Once, however long the write waits.
			p.Events = []plan.Event{{Reason: "Shown", Message: fmt.Sprintf("Revision %d is shown", next.Revision)}}
		}
	}
	// Then the actions: what the persisted status allows.
	switch {
	case s.note.DeletionTimestamp != nil, has:
	case !s.current:
		// Another controller may have gone on since this status was stored.
		p.Actions = []plan.Action{{Verb: plan.CheckStatus, Name: s.note.Name, UID: s.note.UID}}
	case s.configMap == nil:
		p.Actions = []plan.Action{{
			Verb: plan.Create, Kind: "ConfigMap", Name: s.note.Name, Owner: s.note.UID,
			Object:  configMapOf(s.note),
			Content: strconv.FormatInt(next.Revision, 10),
		}}
	case !s.deleted:
		p.Actions = []plan.Action{{
			Verb: plan.Delete, Kind: "ConfigMap", Name: s.configMap.Name, UID: s.configMap.UID,
			Propagation: metav1.DeletePropagationBackground,
		}}
	}
	return p
}

func configMapOf(note *Note) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: note.Name, Namespace: note.Namespace,
			Annotations:     map[string]string{revisionKey: strconv.FormatInt(note.Generation, 10)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(note, note.GroupVersionKind())},
		},
		Data: map[string]string{"text": note.Spec.Text},
	}
}

// notes is the adapter: what the engine has to know of Notes.
type notes struct {
	// What all cores do in the same way need not be written again.
	engine.Defaults[*Note, NoteStatus]

	api        rest.Interface
	kube       kubernetes.Interface
	configMaps cache.SharedIndexInformer
	informers  informers.SharedInformerFactory
}

func newNotes(kube kubernetes.Interface, api rest.Interface) *notes {
	factory := informers.NewSharedInformerFactoryWithOptions(kube, 0, informers.WithTweakListOptions(informing.WantCurrent))
	return &notes{
		api: api, kube: kube,
		configMaps: factory.Core().V1().ConfigMaps().Informer(),
		informers:  factory,
	}
}

// run fills the caches until ctx ends.
func (n *notes) run(ctx context.Context) {
	n.informers.StartWithContext(ctx)
	<-ctx.Done()
	n.informers.Shutdown()
}

// Resource says how Notes are read, and how their status is written.
func (n *notes) Resource() engine.Resource {
	return engine.Resource{GroupVersionKind: noteKind, Plural: "notes", API: n.api}
}

// Kinds are what is watched and written for a Note. A ConfigMap that was written is
// remembered until the cache is as new, so that no decision sees less than was done.
func (n *notes) Kinds() []engine.Kind {
	return []engine.Kind{{
		Name:      "ConfigMap",
		Client:    engine.ClientOf[*corev1.ConfigMap, *corev1.ConfigMapList](n.kube.CoreV1().ConfigMaps),
		Informer:  n.configMaps,
		Remembers: true,
		OwnersOf: func(object metav1.Object) []string {
			if owner := metav1.GetControllerOfNoCopy(object); owner != nil && owner.APIVersion == noteKind.GroupVersion().String() {
				return []string{owner.Name}
			}
			return nil
		},
	}}
}

// errNoText is what a user is told of a Note that can't be worked with.
var errNoText = errors.New("spec.text must not be empty")

// DecodeOwner reads a Note, or says why it makes no sense.
func (n *notes) DecodeOwner(kind metav1.TypeMeta, metadata metav1.ObjectMeta, spec []byte) (*Note, error) {
	note := &Note{TypeMeta: kind, ObjectMeta: metadata}
	if err := json.Unmarshal(spec, &note.Spec); err != nil {
		return note, fmt.Errorf("spec does not decode: %w", err)
	}
	if note.Spec.Text == "" {
		return note, errNoText
	}
	return note, nil
}

// DecodeStatus reads a stored status.
func (n *notes) DecodeStatus(stored []byte) (*NoteStatus, error) {
	status := &NoteStatus{}
	return status, json.Unmarshal(stored, status)
}

// Size is what a Note costs: as much as a Framework of one task.
func (n *notes) Size(*Note, *NoteStatus) int { return 1 }

// NewDecider begins to decide on a Note, of which this core remembers nothing.
func (n *notes) NewDecider() engine.Decider[*Note, NoteStatus] { return noteDecider{} }

type noteDecider struct {
	engine.Whole[*Note, NoteStatus]
}

// Decide gathers the snapshot, and has it decided.
func (noteDecider) Decide(view *engine.View[*Note, NoteStatus], _ time.Time, _ plan.Entropy) (plan.Plan[NoteStatus], error) {
	configMap, err := engine.Named[*corev1.ConfigMap](view, "ConfigMap", view.Owner.Name)
	if err != nil {
		return plan.Plan[NoteStatus]{}, err
	}
	s := noteSnapshot{note: view.Owner, persisted: view.Persisted, status: view.Status, current: view.Current}
	if configMap != nil && metav1.IsControlledBy(configMap, view.Owner) && !view.Gone[configMap.UID] {
		s.configMap = configMap
		s.deleted = view.Deleted[configMap.UID] || configMap.DeletionTimestamp != nil
	}
	return decideOnNote(s), nil
}

// Encode makes JSON of a status.
func (noteDecider) Encode(status *NoteStatus) ([]byte, error) { return json.Marshal(status) }
