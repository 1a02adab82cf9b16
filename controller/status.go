// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/apis/framework/statuscodec"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/controller/lifecycle"
	"github.com/lockstep-k8s/lockstep/controller/pacing"
)

// maxConflicts is how often a write of the status is tried again because
// somebody has changed the Framework meanwhile.
const maxConflicts = 5

// persist writes the status of the memory, and then tells the events that waited
// for it. It says whether it was written. A write that fails is tried again when
// that is due. The error is errCacheBehind, or of a status that can't be encoded.
func (p *pass) persist(ctx context.Context) (bool, error) {
	c, m := p.controller, p.memory
	begun := p.now()
	p.turn.requests++
	stored, err := p.writeStatus(ctx, p.whole)
	if isTooLarge(err) {
		p.tellTooLarge(err)
		stored, err = p.writeStatus(ctx, p.shortened)
	}
	switch {
	case errors.Is(err, errCacheBehind), errors.Is(err, errEncoding):
		return false, err
	case err != nil:
		p.pace.Refusals.Refused(statusWrite, p.now(), pauseOf(err), c.entropy.Between)
		p.tellFailures(ctx, []error{fmt.Errorf("writing the status: %w", err)}, true)
		return false, nil
	}
	p.pace.Refusals.Granted(statusWrite)
	m.persisted, m.stored, m.sent, m.current = m.status, stored, nil, true
	now := p.now()
	p.pace.Writes.Written(begun, now)
	c.metrics.statusWriteSeconds.Observe(now.Sub(begun).Seconds())
	p.tell(ctx)
	return true, nil
}

// errCacheBehind says that the memory was made from a Framework that is no longer
// the current one: another controller, which led before or leads now, has written
// its status since.
var errCacheBehind = errors.New("the status is not the stored one")

// errEncoding says that a status can't be encoded: nothing was sent.
var errEncoding = errors.New("encoding the status")

// whole is the status of the memory, as it is and encoded.
func (p *pass) whole() (*frameworkv1.FrameworkStatus, []byte, error) {
	status := p.memory.status
	data, err := p.memory.encoder.Encode(status, p.controller.compress)
	return status, data, err
}

// writeStatus replaces the stored status, if nobody else has written it, by one that
// form makes of the memory's, and returns that one. It does not overwrite blindly: on a
// conflict the Framework is read again. If its status is not the one that this
// controller has written, or has begun with, the error is errCacheBehind. A conflict
// although the Framework has not changed is a refusal.
func (p *pass) writeStatus(ctx context.Context, form func() (*frameworkv1.FrameworkStatus, []byte, error)) (*frameworkv1.FrameworkStatus, error) {
	for range maxConflicts {
		status, data, err := form()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errEncoding, err)
		}
		err = p.writeOnce(ctx, data)
		if err == nil {
			return status, nil
		}
		if !apierrors.IsConflict(err) {
			p.memory.noteSent(status, err)
			return nil, err
		}
		m, version := p.memory, p.version()
		p.controller.metrics.statusConflicts.Inc()
		if m.refused == version {
			return nil, err
		}
		switch current, err := p.checkStatus(ctx); {
		case err != nil:
			return nil, err
		case !current:
			return nil, errCacheBehind
		}
		if p.version() == version {
			m.refused = version
			return nil, err
		}
	}
	return nil, fmt.Errorf("the Framework was changed by others %d times in a row", maxConflicts)
}

// checkStatus reads the Framework from the API server, and says whether its status is
// the one that the memory takes for stored, but for conditions of others. From then on
// the memory has those, knows that it is current, and which resource version it has.
func (p *pass) checkStatus(ctx context.Context) (current bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, pacing.RequestTime)
	defer cancel()
	p.turn.requests++
	live, err := p.controller.frameworkClient.Get(ctx, p.key)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading the Framework: %w", err)
	case live.UID != p.entry.UID:
		return false, nil
	}
	if !p.memory.takeIn(live.storedStatus) {
		return false, nil
	}
	p.memory.current = true
	p.memory.resourceVersion = live.ResourceVersion
	p.memory.noteDeletion(live.DeletionTimestamp)
	return true, nil
}

// noteDeletion notes that the Framework is being deleted, as the API server says: the
// cache may show that later.
func (m *memory) noteDeletion(at *metav1.Time) {
	if at != nil {
		m.deletionTimestamp = at
	}
}

// checkEntry compares the status of a cached Framework that is newer than the last
// write with what was written, and takes conditions of others into the memory. The error
// is errCacheBehind if it is another status.
func (p *pass) checkEntry() error {
	m, version := p.memory, p.entry.ResourceVersion
	if m.resourceVersion == version || m.checked == version || !atLeast(version, m.resourceVersion) {
		return nil
	}
	if !m.takeIn(p.entry.storedStatus) {
		return errCacheBehind
	}
	m.checked = version
	return nil
}

// takeIn takes conditions of others from a stored status. It says whether the status is
// otherwise what the memory takes for stored, or the one whose write seemed to fail. If
// not, it changes nothing: nor does a status that does not decode, which is not from
// this memory.
func (m *memory) takeIn(stored json.RawMessage) bool {
	var status *frameworkv1.FrameworkStatus
	if len(stored) > 0 {
		var err error
		if status, err = statuscodec.Decode(stored); err != nil {
			return false
		}
	}
	switch {
	case m.wrote(status):
		return true
	case status == nil || m.stored == nil || m.status == nil:
		return false
	}
	others := func(to *frameworkv1.FrameworkStatus) *frameworkv1.FrameworkStatus {
		changed := *to
		changed.Conditions = lifecycle.MergeConditions(to.Conditions, status.Conditions)
		return &changed
	}
	if !apiequality.Semantic.DeepEqual(status, others(m.stored)) {
		return false
	}
	unwritten := m.status != m.persisted
	m.stored, m.persisted = status, others(m.persisted)
	if unwritten {
		m.status = others(m.status)
	} else {
		m.status = m.persisted
	}
	return true
}

// wrote says whether a status is what the memory takes for stored, or the one whose
// write seemed to fail.
func (m *memory) wrote(status *frameworkv1.FrameworkStatus) bool {
	return apiequality.Semantic.DeepEqual(status, m.stored) ||
		slices.ContainsFunc(m.sent, func(sent *frameworkv1.FrameworkStatus) bool {
			return apiequality.Semantic.DeepEqual(status, sent)
		})
}

// maxSent is how many statuses of uncertain fate are remembered. They share their tasks.
const maxSent = 16

// noteSent remembers a status whose write has failed, unless the error tells that nothing
// was stored.
func (m *memory) noteSent(status *frameworkv1.FrameworkStatus, err error) {
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsNotFound(err) ||
		apierrors.IsTooManyRequests(err) || isTooLarge(err) || slices.Contains(m.sent, status) {
		return
	}
	m.sent = append(m.sent, status)
	m.sent = m.sent[max(0, len(m.sent)-maxSent):]
}

// writeOnce replaces the stored status if nobody has changed the Framework since it
// was last seen or written. It is a conflict otherwise.
func (p *pass) writeOnce(ctx context.Context, data []byte) error {
	c, entry, m := p.controller, p.entry, p.memory
	object, err := withStatus(entry, p.version(), data)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, pacing.RequestTime)
	defer cancel()
	updated, err := c.frameworkClient.UpdateStatus(ctx, p.key, object)
	if err != nil {
		return err
	}
	m.resourceVersion = updated.ResourceVersion
	m.noteDeletion(updated.DeletionTimestamp)
	c.metrics.statusWrites.Inc()
	c.metrics.statusWriteBytes.Add(float64(len(object)))
	return nil
}

// version is the newest resource version of the Framework that is known.
func (p *pass) version() string {
	if atLeast(p.entry.ResourceVersion, p.memory.resourceVersion) {
		return p.entry.ResourceVersion
	}
	return p.memory.resourceVersion
}

// withStatus is a Framework in JSON with nothing but its identity and a status:
// all that an update of the status has to have. UID and resource version make the
// API server refuse it with a conflict if they are not the current ones. It takes
// the API server less time than a JSON patch, for which the stored status would be
// encoded first.
func withStatus(entry *frameworkEntry, version string, status []byte) ([]byte, error) {
	type identity struct {
		Name            string    `json:"name"`
		Namespace       string    `json:"namespace"`
		UID             types.UID `json:"uid"`
		ResourceVersion string    `json:"resourceVersion"`
	}
	head, err := json.Marshal(struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        identity `json:"metadata"`
	}{
		TypeMeta: metav1.TypeMeta{APIVersion: frameworkv1.SchemeGroupVersion.String(), Kind: frameworkv1.FrameworkKind},
		Metadata: identity{Name: entry.Name, Namespace: entry.Namespace, UID: entry.UID, ResourceVersion: version},
	})
	if err != nil {
		return nil, err
	}
	// The status is JSON already. To embed it by Marshal would scan all of it again.
	object := bytes.NewBuffer(make([]byte, 0, len(head)+len(status)+len(`,"status":`)))
	object.Write(bytes.TrimSuffix(head, []byte("}")))
	object.WriteString(`,"status":`)
	object.Write(status)
	object.WriteString("}")
	return object.Bytes(), nil
}

// isTooLarge says whether the API server or its storage can't take an object
// because of its size.
func isTooLarge(err error) bool {
	if err == nil {
		return false
	}
	message := err.Error()
	return apierrors.IsRequestEntityTooLargeError(err) ||
		strings.Contains(message, "request is too large") ||
		strings.Contains(message, "trying to send message larger than max")
}

// tellTooLarge tells that the status can't be stored whole.
func (p *pass) tellTooLarge(cause error) {
	c := p.controller
	c.metrics.statusTooLarge.Inc()
	if p.memory.complaint != reasonStatusTooLarge {
		p.memory.complaint = reasonStatusTooLarge
		c.events.Eventf(reference(p.entry), corev1.EventTypeWarning, reasonStatusTooLarge,
			"The status is too large to be stored, its diagnostics are cut: %v", cause)
	}
}

// shortened is the status of the memory with its diagnostics cut, which a condition
// tells. The whole one stays in the memory.
func (p *pass) shortened() (*frameworkv1.FrameworkStatus, []byte, error) {
	short := statuscodec.Shorten(p.memory.status)
	meta.SetStatusCondition(&short.Conditions, metav1.Condition{
		Type:               frameworkv1.ConditionStatusTooLarge,
		Status:             metav1.ConditionTrue,
		ObservedGeneration: p.entry.Generation,
		LastTransitionTime: metav1.NewTime(p.controller.clock.Now().Truncate(time.Second)),
		Reason:             reasonStatusTooLarge,
		Message:            "The status is too large to be stored, its diagnostics are cut",
	})
	data, err := statuscodec.Encode(short, true)
	return short, data, err
}

// tell emits the events that waited for the write.
func (p *pass) tell(ctx context.Context) {
	logger := klog.FromContext(ctx)
	for _, event := range p.memory.events {
		logger.V(2).Info("Framework changed", "reason", event.Reason, "message", event.Message)
		eventType := corev1.EventTypeNormal
		if event.Warning {
			eventType = corev1.EventTypeWarning
		}
		p.controller.events.Event(reference(p.entry), eventType, event.Reason, event.Message)
	}
	p.memory.events = nil
}

// Reasons of events that are not decisions.
const (
	reasonUndecodable    = "Undecodable"
	reasonStatusTooLarge = "StatusTooLarge"
	reasonActionFailed   = "ActionFailed"
	reasonPanicked       = "Panicked"
)

// reference names the Framework in events.
func reference(entry *frameworkEntry) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion:      frameworkv1.SchemeGroupVersion.String(),
		Kind:            frameworkv1.FrameworkKind,
		Namespace:       entry.Namespace,
		Name:            entry.Name,
		UID:             entry.UID,
		ResourceVersion: entry.ResourceVersion,
	}
}
