// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/lockstep-k8s/lockstep/internal/replay/workload"
)

// input is a workload with the nodes on which it is played.
type input struct {
	jobs  []workload.Job
	nodes workload.Nodes
	// skipped is how many jobs the file has that are not among jobs.
	skipped int
}

// input reads or generates the jobs, and says on which nodes.
func (o *options) input() (input, error) {
	nodes, unit, err := o.readNodes()
	if err != nil {
		return input{}, err
	}
	if (o.trace == "") == (o.generate == "") {
		return input{}, errors.New("one of --trace and --generate is required")
	}
	if o.generate != "" {
		return o.generated(nodes)
	}
	if o.formatOf() == "replay" {
		return o.readReplay(nodes)
	}
	trace, err := o.readTrace(nodes, unit)
	if err != nil {
		return input{}, err
	}
	if nodes == nil && trace.Nodes != 0 {
		if nodes, err = workload.NewNodes(trace.Nodes, trace.Units); err != nil {
			return input{}, fmt.Errorf("reading %s: MaxNodes and MaxProcs say %w", o.trace, err)
		}
	}
	if nodes == nil {
		return input{}, errors.New("--nodes is required: the trace does not say on which nodes its jobs ran")
	}
	return input{trace.Jobs, nodes, trace.Skipped}, nil
}

// readReplay reads a file of the format replay. Nodes given by --nodes replace the nodes in the file.
func (o *options) readReplay(nodes workload.Nodes) (input, error) {
	file, err := open(o.trace)
	if err != nil {
		return input{}, fmt.Errorf("opening --trace: %w", err)
	}
	defer file.Close()
	jobs, own, err := workload.Read(file)
	if err != nil {
		return input{}, fmt.Errorf("reading %s: %w", o.trace, err)
	}
	if nodes == nil {
		nodes = own
	}
	if len(nodes) == 0 {
		return input{}, errors.New("--nodes is required: the file has no nodes")
	}
	return input{jobs: jobs, nodes: nodes}, nil
}

// readTrace reads the file of the workload. nodes is nil if no flag describes the nodes. unit is the unit of the nodes.
func (o *options) readTrace(nodes workload.Nodes, unit workload.Unit) (workload.Trace, error) {
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
		"objects": func() (workload.Trace, error) { return workload.ReadObjects(file, perNode, unit) },
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

// readNodes returns the nodes of --nodes, nil without the flag, and their unit, which only a file says.
func (o *options) readNodes() (workload.Nodes, workload.Unit, error) {
	if o.nodes == "" {
		return nil, "", nil
	}
	file, err := open(o.nodes)
	if errors.Is(err, fs.ErrNotExist) {
		nodes, err := parseNodes(o.nodes)
		return nodes, "", err
	}
	if err != nil {
		return nil, "", fmt.Errorf("opening --nodes: %w", err)
	}
	defer file.Close()
	nodes, unit, err := workload.ReadNodes(file)
	if err != nil {
		return nil, "", fmt.Errorf("reading %s: %w", o.nodes, err)
	}
	return nodes, unit, nil
}

func (o *options) generated(nodes workload.Nodes) (input, error) {
	if o.jobs < 1 || o.jobs > 1_000_000 {
		return input{}, fmt.Errorf("--jobs is %d, and must be from 1 to 1000000", o.jobs)
	}
	if !(o.load > 0 && o.load <= 2) {
		return input{}, fmt.Errorf("--load is %g, and must be above 0 and at most 2", o.load)
	}
	if nodes == nil {
		nodes = workload.Uniform(64, 8)
	}
	switch o.generate {
	case "capability":
		if len(nodes) < 16 {
			return input{}, fmt.Errorf("--nodes has %d nodes, and a capability machine needs at least 16", len(nodes))
		}
		return input{jobs: workload.Capability(o.jobs, nodes, o.load, o.seed), nodes: nodes}, nil
	case "training":
		return input{jobs: workload.Training(o.jobs, nodes, o.load, o.seed), nodes: nodes}, nil
	default:
		return input{}, fmt.Errorf("--generate is %q, and must be capability or training", o.generate)
	}
}

func (o *options) formatOf() string {
	if o.format != "" {
		return o.format
	}
	return strings.TrimPrefix(filepath.Ext(strings.TrimSuffix(strings.ToLower(o.trace), ".gz")), ".")
}

// open opens a file, decompresses it if it is compressed by gzip, and skips a byte order mark.
func open(path string) (io.ReadCloser, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	content := bufio.NewReader(file)
	if startsWith(content, "\x1f\x8b") { // RFC 1952
		plain, err := gzip.NewReader(content)
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		content = bufio.NewReader(plain)
	}
	if mark := "\ufeff"; startsWith(content, mark) {
		_, _ = content.Discard(len(mark)) // they are there
	}
	return struct {
		io.Reader
		io.Closer
	}{content, file}, nil
}

func startsWith(content *bufio.Reader, bytes string) bool {
	begin, err := content.Peek(len(bytes))
	return err == nil && string(begin) == bytes
}

// parseNodes parses "84x8".
func parseNodes(text string) (workload.Nodes, error) {
	left, right, ok := strings.Cut(text, "x")
	count, err1 := strconv.Atoi(left)
	units, err2 := strconv.Atoi(right)
	if !ok || err1 != nil || err2 != nil {
		return nil, fmt.Errorf("--nodes is %q: want COUNTxUNITS, such as 84x8, or the name of a file that exists", text)
	}
	nodes, err := workload.NewNodes(count, units)
	if err != nil {
		return nil, fmt.Errorf("--nodes is %q: %w", text, err)
	}
	return nodes, nil
}
