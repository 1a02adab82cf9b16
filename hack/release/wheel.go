// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// wheel writes the Python package as a wheel, Out/lockstep-VERSION-py3-none-any.whl, and returns its name. It has the same
// bytes whenever it is made from one commit, which what pip and setuptools make has not.
// See https://packaging.python.org/en/latest/specifications/binary-distribution-format/.
func (r release) wheel() (string, error) {
	folder := filepath.Join(r.Source, "python")
	project, err := os.ReadFile(filepath.Join(folder, "pyproject.toml"))
	if err != nil {
		return "", err
	}
	description, err := os.ReadFile(filepath.Join(folder, "README.md"))
	if err != nil {
		return "", err
	}
	version, err := pythonVersion(r.Version)
	if err != nil {
		return "", err
	}
	metadata, err := metadataOf(string(project), version, string(description))
	if err != nil {
		return "", err
	}
	modules, err := filepath.Glob(filepath.Join(folder, "lockstep", "*.py"))
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	var record strings.Builder
	info := "lockstep-" + version + ".dist-info/"
	add := func(name string, content []byte) error {
		writer, err := archive.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: r.Created})
		if err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", name, base64.RawURLEncoding.EncodeToString(sum[:]), len(content))
		_, err = writer.Write(content)
		return err
	}
	for _, module := range append(modules, filepath.Join(folder, "lockstep", "py.typed")) {
		content, err := os.ReadFile(module)
		if err != nil {
			return "", err
		}
		if err := add("lockstep/"+filepath.Base(module), content); err != nil {
			return "", err
		}
	}
	if err := add(info+"METADATA", metadata); err != nil {
		return "", err
	}
	if err := add(info+"WHEEL", []byte("Wheel-Version: 1.0\nGenerator: lockstep\nRoot-Is-Purelib: true\nTag: py3-none-any\n")); err != nil {
		return "", err
	}
	record.WriteString(info + "RECORD,,\n")
	writer, err := archive.CreateHeader(&zip.FileHeader{Name: info + "RECORD", Method: zip.Deflate, Modified: r.Created})
	if err != nil {
		return "", err
	}
	if _, err := writer.Write([]byte(record.String())); err != nil {
		return "", err
	}
	if err := archive.Close(); err != nil {
		return "", err
	}
	file := filepath.Join(r.Out, "lockstep-"+version+"-py3-none-any.whl")
	return file, writeFile(file, out.Bytes())
}

// ofPython matches the versions of a release that Python has a form for.
var ofPython = regexp.MustCompile(`^v(\d+\.\d+\.\d+)(?:-(alpha|beta|rc)\.(\d+))?$`)

// pythonVersion returns a version in Python's form, such as 0.1.0 for v0.1.0 and 0.1.0rc1 for v0.1.0-rc.1.
func pythonVersion(version string) (string, error) {
	found := ofPython.FindStringSubmatch(version)
	if found == nil {
		return "", fmt.Errorf("the version %q is none for Python: -version must be such as v1.2.3 or v1.2.3-rc.1", version)
	}
	return found[1] + map[string]string{"alpha": "a", "beta": "b", "rc": "rc"}[found[2]] + found[3], nil
}

// metadataOf returns the METADATA of the wheel from pyproject.toml.
func metadataOf(project, version, description string) ([]byte, error) {
	value := func(key string) (string, error) {
		found := regexp.MustCompile(`(?m)^` + key + ` = (.*)$`).FindStringSubmatch(project)
		if found == nil {
			return "", fmt.Errorf("pyproject.toml has no %s", key)
		}
		return strings.Trim(found[1], `"`), nil
	}
	summary, err := value("description")
	if err != nil {
		return nil, err
	}
	python, err := value("requires-python")
	if err != nil {
		return nil, err
	}
	dependencies, err := value("dependencies")
	if err != nil {
		return nil, err
	}
	var out strings.Builder
	fmt.Fprintf(&out, "Metadata-Version: 2.1\nName: lockstep\nVersion: %s\nSummary: %s\nLicense: Apache-2.0\nRequires-Python: %s\n", version, summary, python)
	required := regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(dependencies, -1)
	slices.SortFunc(required, func(a, b []string) int { return strings.Compare(a[1], b[1]) })
	for _, dependency := range required {
		fmt.Fprintf(&out, "Requires-Dist: %s\n", dependency[1])
	}
	fmt.Fprintf(&out, "Description-Content-Type: text/markdown\n\n%s", description)
	return []byte(out.String()), nil
}
