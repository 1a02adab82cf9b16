// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package frameworks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	"github.com/lockstep-k8s/lockstep/apis/framework/statuscodec"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/history"
	"github.com/lockstep-k8s/lockstep/controller/lifecycle"
	"github.com/lockstep-k8s/lockstep/internal/testing/jobworld"
)

// FuzzFrameworkFromServer reads an object that is anything, and leads what is a
// Framework through its life.
func FuzzFrameworkFromServer(f *testing.F) {
	for _, document := range storedFrameworks(f) {
		f.Add(document)
	}
	for _, document := range []string{
		``, `null`, `{}`, `[]`, `{"metadata":{"name":1}}`,
		`{"spec":{"taskRoles":[{"name":"w","taskNumber":-1}]}}`,
		`{"spec":{"taskRoles":[{"name":"w","taskNumber":99999999999}]}}`,
		`{"spec":{"taskRoles":[{"name":"w"},{"name":"w"}]}}`,
		`{"spec":{"taskRoles":[{"name":"w","taskNumber":1,"task":{"pod":{"spec":{"containers":[{"env":[{"name":"A","value":1}]}]}}}}]}}`,
		`{"status":{"state":"AttemptRunning"}}`,
	} {
		f.Add([]byte(document))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		framework, status, err := decode(t, document)
		if framework == nil {
			return // Not even an object with metadata.
		}
		outlive(t, framework, status, err)
	})
}

// FuzzGarbledFramework leads a Framework through its life of which somebody has
// replaced parts by what does not belong there. Of each three bytes of edits two
// choose the place in the document and one what is put there.
func FuzzGarbledFramework(f *testing.F) {
	documents := storedFrameworks(f)
	for i := range documents {
		for edit := range byte(16) {
			f.Add(uint(i), []byte{0, byte(7*i) + edit, edit, 1, 5 * edit, edit + 1})
		}
	}
	f.Fuzz(func(t *testing.T, chosen uint, edits []byte) {
		var document any
		if err := json.Unmarshal(documents[chosen%uint(len(documents))], &document); err != nil {
			t.Fatal(err)
		}
		for ; len(edits) >= 3; edits = edits[3:] {
			document = garble(document, int(edits[0])<<8|int(edits[1]), edits[2])
		}
		data, err := json.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		framework, status, err := decode(t, data)
		if framework == nil {
			return // The metadata: those the API server keeps in order.
		}
		outlive(t, framework, status, err)
	})
}

// TestGarbledFrameworks garbles each place of each stored Framework, each in
// another way than the one before.
func TestGarbledFrameworks(t *testing.T) {
	way := 0
	for _, stored := range storedFrameworks(t) {
		for place := range count(decoded(t, stored)) {
			way = (way + 1) % ways
			data, err := json.Marshal(garble(decoded(t, stored), place, byte(way)))
			if err != nil {
				t.Fatal(err)
			}
			if framework, status, err := decode(t, data); framework != nil {
				outlive(t, framework, status, err)
			}
			if t.Failed() {
				t.Fatalf("the Framework is\n%s", data)
			}
		}
	}
}

// decode reads a Framework as the engine does: its metadata, its spec by the core, and its
// status as it is. It is nil if not even the metadata is readable.
func decode(t *testing.T, data []byte) (framework *frameworkv1.Framework, status []byte, err error) {
	t.Helper()
	var raw struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              json.RawMessage `json:"spec"`
		Status            json.RawMessage `json:"status"`
	}
	if json.Unmarshal(data, &raw) != nil {
		return nil, nil, nil
	}
	framework, err = (&Core{}).DecodeOwner(raw.TypeMeta, raw.ObjectMeta, raw.Spec)
	return framework, raw.Status, err
}

func decoded(t *testing.T, data []byte) any {
	t.Helper()
	var document any
	if err := json.Unmarshal(data, &document); err != nil {
		t.Fatal(err)
	}
	return document
}

// garbage is what may be in the place of anything.
func garbage() []any {
	return []any{
		nil, true, "", "a", "no such thing\n\x00", 0, -1, 1, 10001, int64(1) << 40, 1e300,
		[]any{}, []any{nil}, map[string]any{}, map[string]any{"": nil},
	}
}

// ways is in how many ways garble can change a place.
const ways = 17

// garble replaces, leaves out or doubles what is at a place of a document, counted
// from its root on. Places beyond the last start anew.
func garble(document any, place int, way byte) any {
	place %= count(document)
	garbage := garbage()
	if place == 0 {
		return garbage[int(way)%len(garbage)]
	}
	place--
	switch node := document.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(node)) {
			if size := count(node[name]); place >= size {
				place -= size
				continue
			}
			if place == 0 && int(way)%ways >= len(garbage) {
				delete(node, name)
			} else {
				node[name] = garble(node[name], place, way)
			}
			return node
		}
	case []any:
		for i := range node {
			if size := count(node[i]); place >= size {
				place -= size
				continue
			}
			if place == 0 && int(way)%ways >= len(garbage) {
				return append(node, node[i])
			}
			node[i] = garble(node[i], place, way)
			return node
		}
	}
	return document
}

// count is how many values there are in a document, itself included.
func count(document any) int {
	total := 1
	switch node := document.(type) {
	case map[string]any:
		for _, value := range node {
			total += count(value)
		}
	case []any:
		for _, value := range node {
			total += count(value)
		}
	}
	return total
}

// storedFrameworks are Frameworks as the API server has them after each round of
// two lives: one of a gang whose first attempt fails, and one that is rescaled
// and stopped.
func storedFrameworks(t testing.TB) [][]byte {
	t.Helper()
	gang := framework(2)
	gang.Spec.Gang = &frameworkv1.GangSpec{}
	gang.Spec.RetryPolicy.MaxRetryCount = 1
	rescaled := framework(2)
	rescaled.Spec.TaskRoles[0].Task.RetryPolicy.FancyRetryPolicy = true
	rescaled.Spec.TaskRoles[0].FrameworkAttemptCompletionPolicy.MinFailedTaskCount = new(int32)

	var documents [][]byte
	for _, f := range []*frameworkv1.Framework{gang, rescaled} {
		f.UID = "fw"
		life := newFuzzedLife(t, f, nil)
		spec := &life.snapshot.Framework.Spec
		for moment := range 10 {
			switch {
			case f == rescaled && moment == 3:
				spec.TaskRoles[0].TaskNumber = 1
			case f == rescaled && moment == 7:
				spec.ExecutionType = frameworkv1.ExecutionStop
			}
			for end := progressed; end == progressed; {
				end = life.round()
				document := storedFramework(t, &life.snapshot)
				if !slices.ContainsFunc(documents, func(known []byte) bool { return bytes.Equal(known, document) }) {
					documents = append(documents, document)
				}
			}
			life.pass(time.Second)
		}
	}
	return documents
}

// storedFramework is the Framework of a world as the API server has it.
func storedFramework(t testing.TB, snapshot *lifecycle.Snapshot) []byte {
	t.Helper()
	status, err := statuscodec.Encode(snapshot.Status, true)
	if err != nil {
		t.Fatal(err)
	}
	document, err := json.Marshal(struct {
		*frameworkv1.Framework
		Status json.RawMessage `json:"status"`
	}{snapshot.Framework, status})
	if err != nil {
		t.Fatal(err)
	}
	return document
}

// outlive decides on a Framework again and again, in a world that does at once
// what is decided, until it fails or all is long over. Whatever the Framework is,
// nothing panics, what is refused is refused in one line, and a status that is
// written can be read again.
func outlive(t *testing.T, framework *frameworkv1.Framework, stored []byte, refusal error) {
	t.Helper()
	if refusal != nil {
		checkOneLine(t, refusal)
		return
	}
	tasks := 0
	for _, role := range framework.Spec.TaskRoles {
		tasks += int(role.TaskNumber)
	}
	if tasks > 100 {
		return // Nothing new, at length.
	}
	var status *frameworkv1.FrameworkStatus
	if len(stored) > 0 {
		var err error
		if status, err = statuscodec.Decode(stored); err != nil {
			checkOneLine(t, err)
			return
		}
	}
	life := newFuzzedLife(t, framework, status)
	for range 8 {
		end := life.round()
		for rounds := 1; end == progressed && rounds < 6; rounds++ {
			end = life.round()
		}
		if end == over {
			return
		}
		life.pass(10 * time.Minute)
	}
}

func checkOneLine(t testing.TB, err error) {
	t.Helper()
	if message := err.Error(); message == "" || strings.Contains(message, "\n") {
		t.Errorf("%q is not one line", message)
	}
}

// fuzzedLife is a world in which everything happens at once.
type fuzzedLife struct {
	t        testing.TB
	now      time.Time
	uids     int
	snapshot lifecycle.Snapshot
	gone     bool
}

// roundEnd is how a round ended.
type roundEnd int

const (
	atRest roundEnd = iota
	progressed
	over
)

func (l *fuzzedLife) NewUID() types.UID {
	l.uids++
	return types.UID(fmt.Sprintf("new-%d", l.uids))
}

func (l *fuzzedLife) Between(least, _ int64) int64 { return least }

// newFuzzedLife makes a world that has what the status tells of.
func newFuzzedLife(t testing.TB, framework *frameworkv1.Framework, status *frameworkv1.FrameworkStatus) *fuzzedLife {
	t.Helper()
	rules, err := lifecycle.NewPodFailureRules(configv1alpha1.DefaultPodFailureSpec())
	if err != nil {
		t.Fatal(err)
	}
	l := &fuzzedLife{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), snapshot: lifecycle.Snapshot{
		Framework: framework, Pods: map[string]*corev1.Pod{},
		Known: plan.Known[frameworkv1.FrameworkStatus]{
			Persisted: status, Status: status, Deleted: map[types.UID]bool{}, Forced: map[types.UID]bool{}, Gone: map[types.UID]bool{},
		},
		Options: lifecycle.Options{
			GangSchedulerName: "lockstep-scheduler", CreationTimeout: time.Minute, CompletedRetention: time.Hour,
			MinConflictDelaySeconds: 60, MaxConflictDelaySeconds: 900, PodFailures: rules,
		},
	}}
	if status == nil || status.AttemptStatus.ConfigMapUID == nil {
		return l
	}
	l.snapshot.ConfigMap = &metav1.ObjectMeta{Name: status.AttemptStatus.ConfigMapName, UID: *status.AttemptStatus.ConfigMapUID}
	for _, role := range status.AttemptStatus.TaskRoleStatuses {
		for _, task := range role.TaskStatuses {
			if uid := task.AttemptStatus.PodUID; uid != nil {
				name := task.AttemptStatus.PodName
				l.snapshot.Pods[name] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: *uid}}
			}
		}
	}
	return l
}

// round decides once and does it.
func (l *fuzzedLife) round() roundEnd {
	l.t.Helper()
	decided := lifecycle.Decide(l.snapshot, l.now, l)
	if decided.Err != nil {
		checkOneLine(l.t, decided.Err)
		return over
	}
	if decided.Persist == plan.PersistNone && len(decided.Actions) == 0 {
		return atRest
	}
	data, err := statuscodec.Encode(decided.Status, true)
	if err != nil {
		l.t.Fatalf("the status does not encode: %v", err)
	}
	if _, err := statuscodec.Decode(data); err != nil {
		l.t.Fatalf("the status that was decided can't be read again: %v\n%s", err, data)
	}
	for _, entry := range decided.History {
		if entry.Task != nil {
			history.Task(l.now, entry)
		}
	}
	if decided.String() == "" {
		l.t.Error("the plan does not print")
	}
	l.snapshot.Persisted, l.snapshot.Status, l.snapshot.Outcomes = decided.Status, decided.Status, nil
	for _, action := range decided.Actions {
		if outcome := l.do(action); outcome != nil {
			l.snapshot.Outcomes = append(l.snapshot.Outcomes, *outcome)
		}
	}
	if l.gone {
		return over
	}
	return progressed
}

// do does an action. It returns what the next decision is told, nil if that is
// nothing.
func (l *fuzzedLife) do(action plan.Action) *plan.Outcome {
	s := &l.snapshot
	outcome := &plan.Outcome{Action: action}
	switch action.Does() {
	case "CheckStatus":
		s.Current = true
		return nil
	case "LookForConfigMap", "LookForPod": // There is nothing that is not seen.
		s.Gone[action.UID] = true
		return nil
	case "CreateConfigMap":
		s.ConfigMap = action.Object.(*corev1.ConfigMap).ObjectMeta.DeepCopy()
		s.ConfigMap.UID = l.NewUID()
		outcome.UID = s.ConfigMap.UID
	case "DeleteConfigMap":
		s.ConfigMap, s.PodGroup = nil, nil
		clear(s.Pods)
	case "CreatePodGroup":
		s.PodGroup = action.Object.(*schedulingv1alpha1.PodGroup)
		return nil
	case "UpdatePodGroup":
		s.PodGroup, _ = jobworld.Patch(l.t, s.PodGroup, action.Patch)
		return nil
	case "CreatePod":
		object, err := action.Build()
		if err != nil {
			checkOneLine(l.t, err)
			outcome.Refused = err
			return outcome
		}
		pod := object.(*corev1.Pod)
		pod.UID = l.NewUID()
		s.Pods[pod.Name] = pod
		outcome.UID = pod.UID
	case "DeletePod", "ForceDeletePod":
		delete(s.Pods, action.Name)
	case "DeleteFramework":
		l.gone = true
	}
	return outcome
}

// pass lets time pass, in which every Pod goes on.
func (l *fuzzedLife) pass(d time.Duration) {
	l.now = l.now.Add(d)
	for name, pod := range l.snapshot.Pods {
		next := pod.DeepCopy()
		switch pod.Status.Phase {
		case corev1.PodRunning:
			next.Status.Phase = corev1.PodFailed
			next.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{ExitCode: 200},
			}}}
		default:
			next.Status.Phase = corev1.PodRunning
		}
		l.snapshot.Pods[name] = next
	}
}
