//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package users

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"math"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// record has the recording written anew: `make record-metrics`.
var record = flag.Bool("record", false, "write the metrics that are read to where the tests of hack/monitoring find them")

// recordingFile has what both programs served in each second of the test below, once.
const recordingFile = "../../hack/monitoring/testdata/recorded.promql"

// TestWhatWasRecordedIsServed plays jobs that run, fail, wait and preempt others, and reads the metrics of both programs every
// second. Each metric that was recorded once, for the tests of hack/monitoring, is still served.
func TestWhatWasRecordedIsServed(t *testing.T) {
	t.Parallel()
	token := cluster.ReaderOfMetrics(t, cluster.Namespace(t))
	r := &recording{rows: map[string][]string{}}
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error)
	go func() { over <- r.run(ctx, token) }()
	t.Run("while jobs", func(t *testing.T) {
		for name, scene := range map[string]func(*testing.T){
			"wait": waiting, "fail": failing, "come and go": manySmallGangs, "of Volcano run": ofVolcano, "of Kubeflow run": ofKubeflow,
			"preempt": preempting, "have room kept": func(t *testing.T) { havingRoomKept(t, r) },
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				scene(t)
			})
		}
	})
	stop()
	if err := <-over; err != nil {
		t.Fatal(err)
	}
	if t.Failed() {
		return
	}
	if *record {
		if err := os.WriteFile(recordingFile, []byte(r.text()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	recorded, err := os.ReadFile(recordingFile)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for series := range r.rows {
		names[nameOf(series)] = true
	}
	for line := range strings.Lines(string(recorded)) {
		if series, is := strings.CutPrefix(line, "  "); is && !names[nameOf(series)] {
			t.Errorf("neither program has %s: look what asks for it, and record anew by make record-metrics", nameOf(series))
			names[nameOf(series)] = true
		}
	}
}

func nameOf(series string) string {
	name, _, _ := strings.Cut(series, "{")
	return name
}

// waiting has gangs wait until there is room.
func waiting(t *testing.T) {
	namespace := cluster.Namespace(t)
	cluster.CreateFramework(t, namespace, jobs.MakeFramework("first").Gang().Role("worker", 3, jobs.RunFor(15*time.Second, 0).CPU("6")).Obj())
	cluster.WaitFrameworkState(t, namespace, "first", frameworkv1.FrameworkAttemptRunning)
	for _, name := range []string{"second", "third"} {
		cluster.CreateFramework(t, namespace, jobs.MakeFramework(name).Gang().Role("worker", 3, jobs.RunFor(10*time.Second, 0).CPU("6")).Obj())
	}
	for _, name := range []string{"first", "second", "third"} {
		cluster.WaitFrameworkState(t, namespace, name, frameworkv1.FrameworkCompleted)
	}
}

// failing has tasks and attempts fail, and tries them again.
func failing(t *testing.T) {
	namespace := cluster.Namespace(t)
	cluster.CreateFramework(t, namespace, jobs.MakeFramework("attempts").Retry(false, 2).Role("worker", 2, jobs.RunFor(3*time.Second, 139).InFirstAttempts(2)).Obj())
	cluster.CreateFramework(t, namespace, jobs.MakeFramework("tasks").Role("worker", 2, jobs.RunFor(4*time.Second, 1).InFirstTaskAttempts(2).Retry(false, 2)).Obj())
	cluster.CreateFramework(t, namespace, jobs.MakeFramework("for-good").Role("worker", 1, jobs.RunFor(5*time.Second, 1)).Obj())
	for _, name := range []string{"attempts", "tasks", "for-good"} {
		cluster.WaitFrameworkState(t, namespace, name, frameworkv1.FrameworkCompleted)
	}
}

// manySmallGangs come two at a time.
func manySmallGangs(t *testing.T) {
	namespace := cluster.Namespace(t)
	for i := range 20 {
		name := fmt.Sprintf("small-%d", i)
		cluster.CreateFramework(t, namespace, jobs.MakeFramework(name).Gang().Role("worker", 2, jobs.RunFor(time.Second, 0)).Obj())
		if i%2 == 1 {
			cluster.WaitFrameworkState(t, namespace, name, frameworkv1.FrameworkCompleted)
		}
	}
}

func ofVolcano(t *testing.T) {
	runs := cluster.GivenVolcanoJob(t, "{minAvailable: 2, tasks: [{name: a, replicas: 2, @8}]}")
	cluster.GivenVolcanoJob(t, "{minAvailable: 1, maxRetry: 1, tasks: [{name: a, replicas: 1, @3→1}]}").Passes(batchv1alpha1.JobFailed)
	runs.Passes(batchv1alpha1.JobCompleted)
}

func ofKubeflow(t *testing.T) {
	runs := cluster.GivenTrainingJob(t, testbed.PyTorchJob, "{runPolicy: {schedulingPolicy: {}}, pytorchReplicaSpecs: {Master: {replicas: 1, @8}, Worker: {replicas: 2, @8}}}")
	cluster.GivenTrainingJob(t, testbed.TFJob, "{tfReplicaSpecs: {Worker: {replicas: 1, @3→1}}}").InPhase(kubeflowv1.JobFailed)
	runs.InPhase(kubeflowv1.JobSucceeded)
}

// preempting has a gang give way to one of a higher priority.
func preempting(t *testing.T) {
	namespace := cluster.Namespace(t)
	const high = "high"
	cluster.CreateClass(t, high, 1000)
	room := cluster.Room(t, 2)
	for _, class := range []string{"", high} {
		group := cmp.Or(class, "low")
		cluster.CreateGroup(t, namespace, group, 2)
		for i := range 2 {
			cluster.CreatePod(t, namespace, testbed.MakePod(fmt.Sprintf("%s-%d", group, i), room.Confine, testbed.InGroup(group),
				func(pod *corev1.Pod) { pod.Spec.PriorityClassName = class }))
		}
		cluster.WaitMembersPlaced(t, namespace, group, 2)
	}
}

// havingRoomKept has room kept for members of a gang that come when it has been read of.
func havingRoomKept(t *testing.T, r *recording) {
	namespace := cluster.Namespace(t)
	room := cluster.Room(t, 8)
	cluster.CreateGroup(t, namespace, "spark", 1, func(spec *schedulingv1alpha1.PodGroupSpec) {
		spec.MinResources = map[corev1.ResourceName]resource.Quantity{corev1.ResourceCPU: resource.MustParse("5")}
	})
	for i := range 5 {
		cluster.CreatePod(t, namespace, testbed.MakePod(fmt.Sprintf("spark-%d", i), room.Confine, testbed.InGroup("spark")))
		cluster.WaitMembersPlaced(t, namespace, "spark", i+1)
		testbed.Eventually(t, "the room that is kept to be read of", func(context.Context) (bool, string, error) {
			return r.has("lockstep_scheduler_reserved_resources"), "", nil
		})
	}
}

// recording has the values of each series, one for each second, empty where there is none.
type recording struct {
	mu      sync.Mutex
	seconds int
	rows    map[string][]string
}

// has says whether a metric was read.
func (r *recording) has(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for series := range r.rows {
		if nameOf(series) == name {
			return true
		}
	}
	return false
}

// run reads the metrics of both programs each second until ctx ends.
func (r *recording) run(ctx context.Context, token string) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		for program, address := range map[string]string{"lockstep-controller": controllerAddress, "lockstep-scheduler": schedulerAddress} {
			status, text, err := testbed.Ask(ctx, "https://"+address+"/metrics", token)
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
			if status != http.StatusOK {
				return fmt.Errorf("%s answers with %d: %.200s", program, status, text)
			}
			r.add(program, text)
		}
		r.seconds++
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// sample finds a sample in the text that a program serves, of Lockstep's metrics and those of libraries that are worth
// recording: name, labels, value.
var sample = regexp.MustCompile(`(?m)^(lockstep_\w+|leader_election_master_status|process_cpu_seconds_total|process_resident_memory_bytes|` +
	`rest_client_requests_total|scheduler_pending_pods|workqueue_queue_duration_seconds_\w+)(?:\{(.*)\})? (\S+)$`)

func (r *recording) add(program, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, found := range sample.FindAllStringSubmatch(text, -1) {
		value, err := strconv.ParseFloat(found[3], 64)
		if err != nil || math.IsNaN(value) {
			continue
		}
		// As the ServiceMonitor has it.
		series := fmt.Sprintf(`%s{namespace="lockstep-system",job="%s",pod="%s-0"`, found[1], program, program)
		if found[2] != "" {
			series += "," + found[2]
		}
		series += "}"
		row := r.rows[series]
		for len(row) < r.seconds {
			row = append(row, "_")
		}
		r.rows[series] = append(row, strconv.FormatFloat(value, 'f', -1, 64))
	}
}

// text is the recording as Prometheus' tests load it. Values that stay are written once.
func (r *recording) text() string {
	var out strings.Builder
	fmt.Fprintf(&out, "# Metrics of both programs during a test, by make record-metrics.\nload 1s\n")
	for _, series := range slices.Sorted(maps.Keys(r.rows)) {
		fmt.Fprintf(&out, "  %s", series)
		row := r.rows[series]
		for i := 0; i < len(row); {
			n := i + 1
			for n < len(row) && row[n] == row[i] {
				n++
			}
			switch {
			case row[i] == "_" && i == 0:
				fmt.Fprintf(&out, " _x%d", n)
			case row[i] == "_":
				// As Prometheus notes it when a series is not served any more.
				fmt.Fprintf(&out, " stale")
				if n-i > 1 {
					fmt.Fprintf(&out, " _x%d", n-i-1)
				}
			case n-i == 1:
				fmt.Fprintf(&out, " %s", row[i])
			default:
				fmt.Fprintf(&out, " %sx%d", row[i], n-i-1)
			}
			i = n
		}
		if len(row) < r.seconds {
			out.WriteString(" stale")
		}
		out.WriteString("\n")
	}
	return out.String()
}
