// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/apis/framework/statuscodec"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// maxConflicts is how often a write of the status is tried again because
// somebody has changed the Framework meanwhile.
const maxConflicts = 5

// persist writes the status of the memory, and then tells the events that waited
// for it.
func (p *pass) persist(ctx context.Context) error {
	c, m := p.controller, p.memory
	begun := p.now()
	data, err := m.encoder.Encode(m.status, c.compress)
	if err != nil {
		return err
	}
	p.turn.await(m.tasks(), func() {
		err = p.writeStatus(ctx, data)
		if isTooLarge(err) {
			err = p.writeShortened(ctx, err)
		}
	})
	if err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	m.persisted = m.status
	now := p.now()
	p.pace.Writes.Written(begun, now)
	c.metrics.statusWriteSeconds.Observe(now.Sub(begun).Seconds())
	p.tell(ctx)
	return nil
}

// errCacheBehind says that the memory was made from a Framework that is no longer
// the current one, and perhaps from a status that another controller, which led
// before, has written over since.
var errCacheBehind = errors.New("the cache is behind the stored Framework")

// writeStatus replaces the stored status if the Framework is still the same. It
// does not overwrite blindly: on a conflict the Framework's metadata are read
// again. The status itself is the controller's alone, once it has written it; a
// first write that meets a conflict fails with errCacheBehind.
func (p *pass) writeStatus(ctx context.Context, data []byte) error {
	for range maxConflicts {
		err := p.writeOnce(ctx, data)
		if err == nil || !apierrors.IsConflict(err) {
			return err
		}
		p.controller.metrics.statusConflicts.Inc()
		if !p.pace.Writes.Any() {
			return errCacheBehind
		}
		live, err := p.controller.writer.Metadata(ctx, p.key)
		if err != nil {
			return err
		}
		if live.GetUID() != p.entry.UID {
			return fmt.Errorf("the Framework was replaced by one with UID %s", live.GetUID())
		}
		p.memory.resourceVersion = live.GetResourceVersion()
	}
	return fmt.Errorf("the Framework was changed by others %d times in a row", maxConflicts)
}

// writeOnce replaces the stored status if nobody has changed the Framework since it
// was last seen or written. It is a conflict otherwise.
func (p *pass) writeOnce(ctx context.Context, data []byte) error {
	c, entry, m := p.controller, p.entry, p.memory
	version := m.resourceVersion
	if atLeast(entry.ResourceVersion, version) {
		version = entry.ResourceVersion
	}
	object, err := withStatus(entry, version, data)
	if err != nil {
		return err
	}
	version, err = c.writer.UpdateStatus(ctx, p.key, object)
	if err != nil {
		return err
	}
	m.resourceVersion = version
	c.metrics.statusWrites.Inc()
	c.metrics.statusWriteBytes.Add(float64(len(object)))
	return nil
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

// writeShortened writes a status that is too large with its diagnostics
// cut, and says so. The full one stays in memory.
func (p *pass) writeShortened(ctx context.Context, cause error) error {
	c, entry, m := p.controller, p.entry, p.memory
	c.metrics.statusTooLarge.Inc()
	if m.complaint != reasonStatusTooLarge {
		m.complaint = reasonStatusTooLarge
		c.events.Eventf(reference(entry), corev1.EventTypeWarning, reasonStatusTooLarge,
			"The status is too large to be stored, its diagnostics are cut: %v", cause)
	}
	short := statuscodec.Shorten(m.status)
	meta.SetStatusCondition(&short.Conditions, metav1.Condition{
		Type:               frameworkv1.ConditionStatusTooLarge,
		Status:             metav1.ConditionTrue,
		ObservedGeneration: entry.Generation,
		LastTransitionTime: metav1.NewTime(c.clock.Now()),
		Reason:             reasonStatusTooLarge,
		Message:            "The status is too large to be stored, its diagnostics are cut",
	})
	data, err := statuscodec.Encode(short, true)
	if err != nil {
		return err
	}
	return p.writeStatus(ctx, data)
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
