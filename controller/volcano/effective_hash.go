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

// immutableHash returns a hash of the immutable parts of a spec. Lockstep's CRD refuses changes of these parts; another
// product's CRD may allow them. Specs that mean the same have the same hash, because one CRD may be replaced by another
// with other defaults.
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

// withoutDefaults removes from a spec what schemas of Pods may fill in: empty names, the protocol of ports, and null
// values.
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

// canonical returns a value as JSON with sorted keys. If the value is no valid JSON, canonical returns it unchanged.
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

// plainOf converts a value to maps, slices, strings and numbers, as decoded from JSON. ok is false if the value is no
// valid JSON.
func plainOf(value any) (plain any, ok bool) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, false
	}
	return plain, json.Unmarshal(data, &plain) == nil
}

// sorted returns a plain value as JSON with sorted keys. Plain values can always be encoded.
func sorted(plain any) []byte {
	data, err := json.Marshal(plain)
	if err != nil {
		return []byte(err.Error())
	}
	return data
}
