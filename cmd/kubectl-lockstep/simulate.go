// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/controller/lifecycle"
	"github.com/lockstep-k8s/lockstep/internal/quantity"
	"github.com/lockstep-k8s/lockstep/internal/reading"
	"github.com/lockstep-k8s/lockstep/internal/unknownfields"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/answers"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/whatif"
)

// maxManifest is how many bytes a manifest may have.
const maxManifest = 4 << 20

// simulateOptions are the flags of simulate.
type simulateOptions struct {
	*session
	file, output      string
	addNodes, without []string
}

func newSimulate(s *session) *cobra.Command {
	o := &simulateOptions{session: s}
	cmd := &cobra.Command{
		Use:   "simulate (NAME | -f FILE)",
		Short: "Say where a gang would go, what is missing, and which Pods it would preempt",
		Long: `Say where the gang of a Framework, of a job of Volcano or Kubeflow, or of a PodGroup would go now, or what is
missing and which Pods the gang would preempt. The answer comes from the scheduler's own planner, from what you may list.
Nothing is changed.

Exit codes: 0 the gang has room; 7 the gang has room once Pods are evicted, or ending Pods have ended; 8 there is no room, or
that is not known.`,
		Example: `  kubectl lockstep simulate train
  kubectl lockstep simulate -f train.yaml --add-nodes gpu-node-1=3
  kubectl lockstep simulate train --without other-team/big
  kubectl lockstep simulate tfjob/mnist`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	cmd.Flags().StringVarP(&o.file, "filename", "f", "", "manifest of a Framework that is not there yet; - is standard input")
	cmd.Flags().StringArrayVar(&o.addNodes, "add-nodes", nil, "NODE=N: assume N more nodes like that one, but empty")
	cmd.Flags().StringArrayVar(&o.without, "without", nil, "NAME, KIND/NAME or NAMESPACE/NAME: assume that this gang has ended")
	addOutput(cmd, &o.output)
	return cmd
}

func (o *simulateOptions) run(ctx context.Context, args []string) error {
	if (o.file == "") == (len(args) == 0) {
		return misuse("either a name or -f is needed", "simulate NAME, or simulate -f FILE")
	}
	if err := checkOutput(o.output); err != nil {
		return err
	}
	c, err := o.connect()
	if err != nil {
		return err
	}
	return o.on(ctx, c, args)
}

// on simulates on a cluster.
func (o *simulateOptions) on(ctx context.Context, c *cluster, args []string) error {
	added, err := parseNodes(o.addNodes)
	if err != nil {
		return err
	}
	assume := &whatif.Assumption{AddNodes: added}
	var fromFile *frameworkv1.Framework
	namespace := c.namespace
	if o.file != "" {
		if fromFile, err = o.read(); err != nil {
			return err
		}
		if asked := o.namespaceAsked(); asked != "" && fromFile.Namespace != "" && fromFile.Namespace != asked {
			return misuse(fmt.Sprintf("the namespace of the manifest is %s, and --namespace says %s", fromFile.Namespace, asked), "leave --namespace out")
		}
		namespace = cmp.Or(fromFile.Namespace, namespace)
		fromFile.Namespace = namespace
		o.warnOfUnknownFields(ctx, c, fromFile)
		if assume.Gang, err = gangOf(fromFile); err != nil {
			return err
		}
	}
	var named reading.Name
	if fromFile == nil {
		if named, err = reading.ParseName(c.namespace, args[0]); err != nil {
			return err
		}
		namespace = named.Namespace
	}
	var without []reading.Name
	var others []string
	for _, name := range o.without {
		n, err := reading.ParseName(namespace, name)
		if err != nil {
			return err
		}
		without, others = append(without, n), append(others, n.Namespace)
	}
	snapshot, err := c.reader.Snapshot(ctx, namespace, others...)
	if err != nil {
		return err
	}
	for i, name := range o.without {
		key, err := c.reader.GangNamed(ctx, snapshot, without[i])
		if err != nil {
			return err
		}
		if snapshot.Group(key) == nil {
			return &failure{code: exitNotFound, message: fmt.Sprintf("there is no gang of %s to do without, as far as you may read", name)}
		}
		assume.Without = append(assume.Without, key)
	}
	var key dialect.Key
	if fromFile != nil {
		key = whatif.KeyOf(namespace, frameworkv1.PodGroupName(fromFile.Name))
		// The Framework of the file takes the place of the existing one.
		if snapshot.Group(key) != nil {
			assume.Without = append(assume.Without, key)
		}
	} else if key, err = c.reader.GangNamed(ctx, snapshot, named); err != nil {
		return err
	}
	answer, err := whatif.Assume(snapshot, key, assume)
	switch {
	case errors.Is(err, whatif.ErrNotFound) && snapshot.NoGroups:
		return reading.Refused(snapshot)
	case errors.Is(err, whatif.ErrNotFound):
		return o.noGang(ctx, c, args[0], named)
	case err != nil:
		return misuse(err.Error(), "")
	}
	return o.tell(&answer)
}

// warnOfUnknownFields warns of fields in a Framework's Pod templates that the API server does not know. The API server
// names them only to users who may create Pods.
func (o *simulateOptions) warnOfUnknownFields(ctx context.Context, c *cluster, fw *frameworkv1.Framework) {
	for i := range fw.Spec.TaskRoles {
		fields, err := unknownfields.Of(ctx, c.reader.Kube.CoreV1().RESTClient(), fw.Namespace, fw.Spec.TaskRoles[i].Task.Pod.Raw)
		if err != nil {
			continue
		}
		for _, field := range fields {
			line(o.errOut, "warning: %s: unknown field; the API server drops it", frameworkv1.PodTemplatePath(i)+"."+field)
		}
	}
}

// parseNodes reads --add-nodes.
func parseNodes(texts []string) ([]whatif.Added, error) {
	var all []whatif.Added
	for _, text := range texts {
		like, number, _ := strings.Cut(text, "=")
		count, err := strconv.Atoi(number)
		if err != nil || like == "" || count < 1 {
			return nil, misuse(fmt.Sprintf("--add-nodes %s is not NODE=N", text), "such as --add-nodes gpu-node-1=3: three more nodes like gpu-node-1")
		}
		all = append(all, whatif.Added{Like: like, Count: count})
	}
	return all, nil
}

// read reads the manifest of a Framework.
func (o *simulateOptions) read() (*frameworkv1.Framework, error) {
	from := o.in
	if o.file != "-" {
		file, err := os.Open(o.file)
		if err != nil {
			return nil, misuse(err.Error(), "")
		}
		defer file.Close()
		from = file
	}
	data, err := io.ReadAll(io.LimitReader(from, maxManifest+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxManifest:
		return nil, misuse(fmt.Sprintf("the manifest has more than %d bytes", maxManifest), "")
	}
	if data, err = onlyDocument(data); err != nil {
		return nil, err
	}
	if err := quantity.CheckGang(data); err != nil {
		return nil, misuse(err.Error(), "")
	}
	fw := &frameworkv1.Framework{}
	if err := json.Unmarshal(data, fw); err != nil {
		return nil, misuse("the manifest is no Framework: "+err.Error(), "")
	}
	if fw.Kind != "Framework" || fw.Name == "" {
		return nil, misuse("the manifest has to be one Framework with a name", "simulate reads Frameworks; give the name of anything else that is there")
	}
	return fw, nil
}

// onlyDocument returns the one document of a manifest, as JSON. Others may be empty.
func onlyDocument(manifest []byte) ([]byte, error) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifest)))
	only := []byte("null")
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return only, nil
		}
		if err == nil {
			document, err = yaml.YAMLToJSON(document)
		}
		switch {
		case err != nil:
			return nil, misuse("the manifest is no YAML: "+err.Error(), "")
		case string(document) == "null":
		case string(only) != "null":
			return nil, misuse("the manifest has several documents, and has to be one Framework", "split it, and simulate each")
		default:
			only = document
		}
	}
}

// gangOf returns the gang of the first attempt of a Framework, as the controller makes it.
func gangOf(fw *frameworkv1.Framework) (*whatif.NewGang, error) {
	tasks := int64(0)
	for i := range fw.Spec.TaskRoles {
		number := int64(fw.Spec.TaskRoles[i].TaskNumber)
		if number < 0 {
			return nil, misuse(fmt.Sprintf("role %s has %d tasks", fw.Spec.TaskRoles[i].Name, number), "")
		}
		tasks += number
	}
	if tasks > maxTasks {
		return nil, misuse(fmt.Sprintf("the Framework has %d tasks: at most %d can be simulated", tasks, maxTasks), "")
	}
	group, pods, err := lifecycle.Preview(fw, lifecycle.Options{})
	if err != nil {
		return nil, misuse(err.Error(), "")
	}
	return &whatif.NewGang{Group: group, Pods: pods}, nil
}

// tell writes an answer, and returns the exit code.
func (o *simulateOptions) tell(answer *answers.Simulation) error {
	done, err := o.print(answer, o.output)
	if err != nil {
		return err
	}
	if !done {
		writeSimulation(o.out, answer)
	}
	switch {
	case answer.Fits:
		return nil
	case answer.FitsAfterPreemption && len(answer.Victims)+answer.HiddenVictims == 0:
		return &failure{code: exitByEviction, message: "the gang has room only when Pods have ended that are ending now"}
	case answer.FitsAfterPreemption:
		return &failure{code: exitByEviction, message: "the gang has room only if others are evicted"}
	default:
		return &failure{code: exitNoRoom, message: "the gang has no room, as far as is known"}
	}
}

// maxTasks bounds how many tasks a Framework has that is simulated.
const maxTasks = 10000

// shownLines bounds how many placements and victims are shown to people.
const shownLines = 50

func writeSimulation(w io.Writer, answer *answers.Simulation) {
	line(w, "%s", answer.Message)
	for _, p := range answer.Placements[:min(len(answer.Placements), shownLines)] {
		line(w, "  %s: %d %s", p.Node, p.Count, p.Role)
	}
	if more := len(answer.Placements) - shownLines + answer.MorePlacements; more > 0 && len(answer.Placements) > shownLines {
		line(w, "  and %d more, see -o json", more)
	}
	if o := answer.Obstacle; o != nil {
		for _, reason := range o.Reasons {
			line(w, "  %d nodes: %s", reason.Nodes, reason.Reason)
		}
	}
	for _, v := range answer.Victims[:min(len(answer.Victims), shownLines)] {
		line(w, "  would be evicted: %s/%s on %s", v.Namespace, v.Pod, v.Node)
	}
	if more := len(answer.Victims) - shownLines + answer.HiddenVictims; more > 0 {
		line(w, "  would be evicted: %d more", more)
	}
	writeUnknown(w, answer.Unknown)
}

// noGang says why there is no gang of a name.
func (s *session) noGang(ctx context.Context, c *cluster, name string, n reading.Name) error {
	answer, err := c.reader.Why(ctx, n)
	if err != nil {
		return err
	}
	return &failure{code: exitNotFound, message: fmt.Sprintf("%s has no PodGroup: it has no gang, or its attempt has not begun or has ended (%s: %s)", name, answer.Reason, answer.Message),
		hint: "`why " + name + "` shows more"}
}
