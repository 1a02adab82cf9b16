// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/lockstep-k8s/lockstep/internal/replay/workload"
)

// workload reads or generates the jobs, and says on which nodes.
func (o *options) workload() ([]workload.Job, workload.Nodes, error) {
	nodes, err := o.readNodes()
	if err != nil {
		return nil, nil, err
	}
	if (o.trace == "") == (o.generate == "") {
		return nil, nil, errors.New("one of --trace and --generate is required")
	}
	if o.generate != "" {
		return o.generated(nodes)
	}
	if o.formatOf() == "replay" {
		return o.readReplay(nodes)
	}
	trace, err := o.readTrace(nodes)
	if err != nil {
		return nil, nil, err
	}
	if nodes == nil && trace.Nodes != 0 {
		if nodes, err = workload.NewNodes(trace.Nodes, trace.Units); err != nil {
			return nil, nil, fmt.Errorf("reading %s: MaxNodes and MaxProcs say %w", o.trace, err)
		}
	}
	if nodes == nil {
		return nil, nil, errors.New("--nodes is required: the trace does not say on which nodes its jobs ran")
	}
	return trace.Jobs, nodes, nil
}

// readReplay reads a file of the format replay. Nodes given by --nodes replace the nodes in the file.
func (o *options) readReplay(nodes workload.Nodes) ([]workload.Job, workload.Nodes, error) {
	file, err := open(o.trace)
	if err != nil {
		return nil, nil, fmt.Errorf("opening --trace: %w", err)
	}
	defer file.Close()
	jobs, own, err := workload.Read(file)
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", o.trace, err)
	}
	if nodes == nil {
		nodes = own
	}
	if len(nodes) == 0 {
		return nil, nil, errors.New("--nodes is required: the file has no nodes")
	}
	return jobs, nodes, nil
}

// readTrace reads the file of the workload. nodes is nil if no flag describes the nodes.
func (o *options) readTrace(nodes workload.Nodes) (workload.Trace, error) {
	file, err := open(o.trace)
	if err != nil {
		return workload.Trace{}, fmt.Errorf("opening --trace: %w", err)
	}
	defer file.Close()
	perNode := 0
	if nodes != nil {
		perNode = nodes.Largest()
	}
	format := o.formatOf()
	readers := map[string]func() (workload.Trace, error){
		"swf":     func() (workload.Trace, error) { return workload.ReadSWF(file, perNode) },
		"csv":     func() (workload.Trace, error) { return o.readCSV(file, perNode) },
		"sacct":   func() (workload.Trace, error) { return workload.ReadSacct(file, perNode) },
		"objects": func() (workload.Trace, error) { return workload.ReadObjects(file, perNode) },
	}
	read := readers[format]
	switch {
	case read == nil:
		return workload.Trace{}, fmt.Errorf("--format is %q, and must be swf, csv, sacct, objects or replay", format)
	case perNode == 0 && format != "swf":
		return workload.Trace{}, fmt.Errorf("--nodes is required: a file of format %q does not say on which nodes its jobs ran", format)
	}
	trace, err := read()
	if err != nil {
		return workload.Trace{}, fmt.Errorf("reading %s: %w", o.trace, err)
	}
	return trace, nil
}

func (o *options) readCSV(file io.Reader, perNode int) (workload.Trace, error) {
	columns, err := workload.ParseColumns(o.columns)
	if err != nil {
		return workload.Trace{}, fmt.Errorf("--columns: %w", err)
	}
	return workload.ReadCSV(file, columns, perNode)
}

// readNodes returns what --nodes says, nil if nothing.
func (o *options) readNodes() (workload.Nodes, error) {
	if o.nodes == "" {
		return nil, nil
	}
	if file, err := os.Open(o.nodes); err == nil {
		defer file.Close()
		nodes, err := workload.ReadNodes(file)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", o.nodes, err)
		}
		return nodes, nil
	}
	return parseNodes(o.nodes)
}

func (o *options) generated(nodes workload.Nodes) ([]workload.Job, workload.Nodes, error) {
	if o.jobs < 1 || o.jobs > 1_000_000 {
		return nil, nil, fmt.Errorf("--jobs is %d, and must be from 1 to 1000000", o.jobs)
	}
	if !(o.load > 0 && o.load <= 2) {
		return nil, nil, fmt.Errorf("--load is %g, and must be above 0 and at most 2", o.load)
	}
	if nodes == nil {
		nodes = workload.Uniform(64, 8)
	}
	switch o.generate {
	case "capability":
		if len(nodes) < 16 {
			return nil, nil, fmt.Errorf("--nodes has %d nodes, and a capability machine needs at least 16", len(nodes))
		}
		return workload.Capability(o.jobs, nodes, o.load, o.seed), nodes, nil
	case "training":
		return workload.Training(o.jobs, nodes, o.load, o.seed), nodes, nil
	default:
		return nil, nil, fmt.Errorf("--generate is %q, and must be capability or training", o.generate)
	}
}

func (o *options) formatOf() string {
	if o.format != "" {
		return o.format
	}
	return strings.TrimPrefix(filepath.Ext(strings.TrimSuffix(o.trace, ".gz")), ".")
}

// open opens a file, and decompresses it if it is compressed by gzip.
func open(path string) (io.ReadCloser, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	content := bufio.NewReader(file)
	if magic, err := content.Peek(2); err != nil || !bytes.Equal(magic, []byte{0x1f, 0x8b}) { // RFC 1952
		return struct {
			io.Reader
			io.Closer
		}{content, file}, nil
	}
	plain, err := gzip.NewReader(content)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{plain, file}, nil
}

// parseNodes parses "84x8".
func parseNodes(text string) (workload.Nodes, error) {
	left, right, ok := strings.Cut(text, "x")
	count, err1 := strconv.Atoi(left)
	units, err2 := strconv.Atoi(right)
	if !ok || err1 != nil || err2 != nil {
		return nil, fmt.Errorf("--nodes is %q: want COUNTxUNITS, such as 84x8, or a file", text)
	}
	nodes, err := workload.NewNodes(count, units)
	if err != nil {
		return nil, fmt.Errorf("--nodes is %q: %w", text, err)
	}
	return nodes, nil
}
