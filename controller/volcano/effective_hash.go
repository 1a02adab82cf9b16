// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/json"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
)

// hashScheme is the prefix of hashes by immutableHash. Hashes with different prefixes can't be compared. Change the
// prefix whenever the hashed content changes, for instance by a new default.
const hashScheme = "3:"

// immutableHash returns a hash of the immutable parts of a spec. The CRD of Lockstep refuses changes of these parts,
// and another CRD may not. Two texts with the same meaning have the same hash, since a CRD may be replaced by one with
// other defaults.
func immutableHash(spec *batchv1alpha1.JobSpec) string {
	fixed := *effective(spec)
	fixed.MinAvailable = 0
	fixed.PriorityClassName = ""
	for i := range fixed.Tasks {
		fixed.Tasks[i].Replicas = 0
		fixed.Tasks[i].MinAvailable = nil
	}
	for name, flags := range fixed.Plugins {
		if flags == nil {
			fixed.Plugins[name] = batchv1alpha1.PluginFlags{} // It is there, though it has none.
		}
	}
	var text []byte
	if plain, ok := plainOf(fixed); ok {
		withoutDefaults(plain)
		text = sorted(plain)
	} else {
		text = canonical(fixed)
	}
	sum := sha256.Sum256(text)
	return hashScheme + hex.EncodeToString(sum[:])
}

// isComparable reports whether a hash was made by this version of immutableHash.
func isComparable(hash string) bool { return strings.HasPrefix(hash, hashScheme) }

// withoutDefaults removes from a spec the fields that schemas of Pods fill in: empty names, and the protocol of ports.
// Null values are removed, too.
func withoutDefaults(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, field := range value {
			switch {
			case field == nil, field == "" && (key == "name" || key == "service"):
				delete(value, key)
			case key == "ports":
				withoutProtocol(field)
			}
			withoutDefaults(field)
		}
	case []any:
		for _, element := range value {
			withoutDefaults(element)
		}
	}
}

func withoutProtocol(ports any) {
	list, _ := ports.([]any)
	for _, port := range list {
		if port, ok := port.(map[string]any); ok && port["protocol"] == string(corev1.ProtocolTCP) {
			delete(port, "protocol")
		}
	}
}

// canonical returns a value as JSON with the keys of all objects in order. An unreadable value is used unchanged.
func canonical(value any) []byte {
	if plain, ok := plainOf(value); ok {
		return sorted(plain)
	}
	data, err := json.Marshal(value)
	if err != nil {
		return []byte(err.Error())
	}
	return data
}

// plainOf returns a value in the terms of JSON: maps, lists, texts and numbers. The result is whether the value can be
// read.
func plainOf(value any) (plain any, ok bool) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, false
	}
	return plain, json.Unmarshal(data, &plain) == nil
}

// sorted returns a plain value as JSON. It never fails, since plain values always have a form in JSON.
func sorted(plain any) []byte {
	data, err := json.Marshal(plain)
	if err != nil {
		return []byte(err.Error())
	}
	return data
}
