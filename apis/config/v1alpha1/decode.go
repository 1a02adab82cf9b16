// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Decode reads a controller's configuration file, YAML or JSON. It is strict: an
// unknown key, a key that is there twice and a value of the wrong type are
// errors, and all that it finds of a kind are in the error, on one line. The
// result has neither defaults nor been validated; an empty file is an empty
// configuration.
func Decode(data []byte) (*ControllerConfiguration, error) {
	document, err := onlyDocument(data)
	if err != nil {
		return nil, err
	}
	asJSON, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, oneLine(err)
	}
	if string(asJSON) == "null" {
		return &ControllerConfiguration{}, nil
	}

	var keys map[string]json.RawMessage
	if err := json.Unmarshal(asJSON, &keys); err != nil {
		return nil, errors.New("a configuration is a mapping of keys to values; see the keys of ControllerConfiguration")
	}
	config := &ControllerConfiguration{}
	strictErrs, err := kjson.UnmarshalStrict(asJSON, config)
	if err != nil {
		return nil, wrongTypes(keys, err)
	}
	if len(strictErrs) > 0 {
		return nil, oneLine(errors.Join(strictErrs...))
	}
	if err := config.checkKind(); err != nil {
		return nil, err
	}
	return config, nil
}

// onlyDocument refuses a second YAML document, which would be ignored silently.
func onlyDocument(data []byte) ([]byte, error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	var only []byte
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return only, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading YAML: %w", err)
		}
		switch {
		case len(bytes.TrimSpace(document)) == 0:
		case only != nil:
			return nil, errors.New("there is more than one YAML document, separated by ---; a configuration is one")
		default:
			only = document
		}
	}
}

// wrongTypes names every key whose value does not fit. Some decoders below, such
// as that of durations, do not know the key that they are at, so each key is
// decoded by itself.
func wrongTypes(keys map[string]json.RawMessage, whole error) error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		single, err := json.Marshal(map[string]json.RawMessage{key: keys[key]})
		if err != nil {
			return whole
		}
		err = kjson.UnmarshalCaseSensitivePreserveInts(single, &ControllerConfiguration{})
		var wrong *json.UnmarshalTypeError
		switch {
		case err == nil:
		case errors.As(err, &wrong) && wrong.Field != "":
			errs = append(errs, fmt.Errorf("%s: got %s, want %s", wrong.Field, wrong.Value, wantedType(wrong)))
		default:
			errs = append(errs, fmt.Errorf("%s: %w", key, err))
		}
	}
	if len(errs) == 0 {
		return whole
	}
	return oneLine(errors.Join(errs...))
}

// wantedType says in words what a value has to be.
func wantedType(err *json.UnmarshalTypeError) string {
	switch kind := err.Type.Kind().String(); {
	case strings.HasPrefix(kind, "int"):
		return "a whole number of " + strings.TrimPrefix(kind, "int") + " bits"
	case strings.HasPrefix(kind, "float"):
		return "a number"
	case kind == "bool":
		return "true or false"
	case kind == "slice":
		return "a list"
	case kind == "struct":
		return "a mapping"
	default:
		return "a " + kind
	}
}

// checkKind accepts a file without apiVersion and kind, as FrameworkController's
// are, and otherwise only the right ones.
func (c *ControllerConfiguration) checkKind() error {
	const kind = "ControllerConfiguration"
	if c.APIVersion != "" && c.APIVersion != SchemeGroupVersion.String() {
		return fmt.Errorf("apiVersion: got %q, want %q or nothing", c.APIVersion, SchemeGroupVersion)
	}
	if c.Kind != "" && c.Kind != kind {
		return fmt.Errorf("kind: got %q, want %q or nothing", c.Kind, kind)
	}
	return nil
}

// oneLine puts a message of several lines on one.
func oneLine(err error) error {
	var parts []string
	for line := range strings.Lines(err.Error()) {
		parts = append(parts, strings.TrimSpace(line))
	}
	return errors.New(strings.ReplaceAll(strings.Join(parts, "; "), ":; ", ": "))
}
