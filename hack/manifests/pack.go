// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
)

// packChart returns the archive of the chart in a folder. It has no times: those of `helm package` are those of its call.
func packChart(folder string) ([]byte, error) {
	loaded, err := loader.Load(folder)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(loaded.Raw, func(a, b *chart.File) int { return strings.Compare(a.Name, b.Name) })
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	files := tar.NewWriter(packed)
	for _, file := range loaded.Raw {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: loaded.Name() + "/" + file.Name, Mode: 0o644, Size: int64(len(file.Data))}
		if err := files.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := files.Write(file.Data); err != nil {
			return nil, err
		}
	}
	if err := files.Close(); err != nil {
		return nil, err
	}
	err = packed.Close()
	return out.Bytes(), err
}
