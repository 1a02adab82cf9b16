// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/lockstep-k8s/lockstep/localcluster/components"
)

// valid returns options that are in order.
func valid() Options {
	return Options{
		Dir: "/state/c", SimulatedNodes: 5, NodePods: 110,
		NodeCPU: resource.MustParse("32"), NodeMemory: resource.MustParse("256Gi"),
	}
}

func quantity(s string) *resource.Quantity {
	q := resource.MustParse(s)
	return &q
}

func TestValidate(t *testing.T) {
	tests := map[string]struct {
		change func(*Options)
		want   string
	}{
		"options in order":                {func(o *Options) {}, ""},
		"a real node of half a processor": {func(o *Options) { o.RealNode, o.RealNodeCPU = true, quantity("500m") }, ""},
		"a relative directory":            {func(o *Options) { o.Dir = "c" }, `--dir "c" is not an absolute path`},
		"the root directory":              {func(o *Options) { o.Dir = "/" }, "--dir / is not allowed"},
		"less than no nodes":              {func(o *Options) { o.SimulatedNodes = -1 }, "--simulated-nodes -1 is not between 0 and 1048576"},
		"too many nodes":                  {func(o *Options) { o.SimulatedNodes = 2 << 20 }, "--simulated-nodes 2097152 is not between"},
		"no processor":                    {func(o *Options) { o.NodeCPU = resource.MustParse("0") }, "--node-cpu 0 is not above 0"},
		"less than no memory":             {func(o *Options) { o.NodeMemory = resource.MustParse("-1Gi") }, "--node-memory -1Gi is not above 0"},
		"no Pods":                         {func(o *Options) { o.NodePods = 0 }, "--node-pods 0 is not above 0"},
		"an unknown program":              {func(o *Options) { o.With = []string{"webhook"} }, `--with "webhook"`},
		"arguments for no controller":     {func(o *Options) { o.ControllerArgs = []string{"-v=4"} }, "--controller-args is given, but"},
		"arguments for no scheduler":      {func(o *Options) { o.SchedulerArgs = []string{"-v=4"} }, "--scheduler-args is given, but"},
		"processors of no real node":      {func(o *Options) { o.RealNodeCPU = quantity("1") }, "--real-node-cpu is given without --real-node"},
		"more processors than there are":  {func(o *Options) { o.RealNode, o.RealNodeCPU = true, quantity("3") }, "--real-node-cpu 3 is not above 0 and at most 2"},
		"other APIs with a real node":     {func(o *Options) { o.RealNode, o.RuntimeConfig = true, "resource.k8s.io/v1=false" }, "--runtime-config is given with --real-node"},
		"an older API server":             {func(o *Options) { o.KubernetesVersion = "1.34" }, ""},
		"a version that is not known":     {func(o *Options) { o.KubernetesVersion = "1.12" }, `--kubernetes-version "1.12" is not known: it is one of 1.37, 1.36, 1.35 and 1.34`},
		"a kubelet newer than its server": {func(o *Options) { o.RealNode, o.KubernetesVersion = true, "1.36" }, "--kubernetes-version 1.36 is given with --real-node, whose kubelet is of 1.37"},
		"a real node of its own version":  {func(o *Options) { o.RealNode, o.KubernetesVersion = true, "1.37" }, ""},
		"a path too long for sockets":     {func(o *Options) { o.RealNode, o.Dir = true, "/"+strings.Repeat("d", 100) }, "--dir is 101 bytes long"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := valid()
			tc.change(&o)
			err := o.Validate(2)
			if tc.want == "" {
				if err != nil {
					t.Errorf("error %v, want none", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want one line with %q", err, tc.want)
			}
		})
	}
}

func TestParseWith(t *testing.T) {
	tests := map[string]struct {
		want    []string
		wantErr bool
	}{
		"controller,scheduler":  {[]string{"controller", "scheduler"}, false},
		"scheduler":             {[]string{"scheduler"}, false},
		"scheduler,scheduler":   {[]string{"scheduler"}, false},
		"none":                  {nil, false},
		"":                      {nil, true},
		"none,scheduler":        {nil, true},
		"controller, scheduler": {nil, true},
	}
	for value, tc := range tests {
		t.Run(value, func(t *testing.T) {
			got, err := ParseWith(value)
			if diff := cmp.Diff(tc.want, got); diff != "" || (err != nil) != tc.wantErr {
				t.Errorf("error %v, want error: %v; programs (-want,+got):\n%s", err, tc.wantErr, diff)
			}
		})
	}
}

func TestChooseNetwork(t *testing.T) {
	prefixes := func(list ...string) (out []netip.Prefix) {
		for _, s := range list {
			out = append(out, netip.MustParsePrefix(s))
		}
		return out
	}
	tests := map[string]struct {
		used []netip.Prefix
		want string
	}{
		"an idle machine":                     {nil, "10.150.0.0/24"},
		"another cluster":                     {prefixes("10.150.0.1/24", "10.150.64.1/32"), "10.151.0.0/24"},
		"a route that covers several":         {prefixes("10.150.0.0/15"), "10.152.0.0/24"},
		"networks elsewhere are no obstacle":  {prefixes("192.168.0.0/16", "10.0.0.0/16"), "10.150.0.0/24"},
		"an organization that uses all of it": {prefixes("10.0.0.0/8"), ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			network, err := ChooseNetwork(tc.used)
			if tc.want == "" {
				if err == nil {
					t.Errorf("network %v, want an error", network)
				}
				return
			}
			if err != nil || network.Pods().String() != tc.want {
				t.Errorf("Pods in %s (%v), want %s", network.Pods(), err, tc.want)
			}
		})
	}
}

func TestNetworkHangsTogether(t *testing.T) {
	n := Network{X: 200}
	if !n.Pods().Contains(n.Bridge()) {
		t.Error("the bridge is not in the network of its Pods")
	}
	if !n.Services().Contains(n.APIService()) || n.Services().Overlaps(n.Pods()) {
		t.Error("cluster IPs and Pods get in each other's way")
	}
	// Linux allows 15 bytes for the name of an interface.
	if len(n.BridgeName()) > 15 {
		t.Errorf("%s is too long", n.BridgeName())
	}
}

func TestClaimedPortsAreTakenOnce(t *testing.T) {
	a, claimA, err := ClaimPorts()
	if err != nil {
		t.Fatal(err)
	}
	defer claimA.Close()
	b, claimB, err := ClaimPorts()
	if err != nil {
		t.Fatal(err)
	}
	defer claimB.Close()
	if a.Claim/blockSize == b.Claim/blockSize {
		t.Errorf("two clusters got ports %v and %v", a, b)
	}
	if a.CoreDNSHealth >= a.Claim+blockSize {
		t.Errorf("port %d lies beyond the block", a.CoreDNSHealth)
	}
}

func plan(o Options) *Plan {
	return &Plan{
		Options: o, Layout: Layout{Dir: o.Dir}, Ports: portsOf(20000), Network: Network{X: 150},
		Binaries: map[string]string{"etcd": "/bin/etcd", "controller": "/bin/lockstep-controller", "scheduler": "/bin/lockstep-scheduler"},
	}
}

// TestEverythingServesOnTheMachineAlone holds for the control plane and Lockstep; only what
// Pods need, CoreDNS and the kubelet, is bound to the bridge.
func TestEverythingServesOnTheMachineAlone(t *testing.T) {
	o := valid()
	o.With = []string{Controller, Scheduler}
	p := plan(o)
	programs := append(append(p.ControlPlane(), p.Lockstep()...), p.Kwok())
	seen := map[string]string{}
	for _, program := range programs {
		if !strings.HasPrefix(program.Address, "127.0.0.1:") {
			t.Errorf("%s serves on %s", program.Name, program.Address)
		}
		if other, ok := seen[program.Address]; ok {
			t.Errorf("%s and %s both serve on %s", program.Name, other, program.Address)
		}
		seen[program.Address] = program.Name
		if !strings.Contains(program.HealthURL, program.Address) {
			t.Errorf("the health of %s is asked for at %s", program.Name, program.HealthURL)
		}
	}
}

func TestEverythingLiesUnderDir(t *testing.T) {
	o := valid()
	o.With = []string{Controller, Scheduler}
	p := plan(o)
	for _, program := range append(append(p.ControlPlane(), p.Lockstep()...), p.Kwok(), p.CoreDNS()) {
		for _, arg := range program.Args {
			if _, value, _ := strings.Cut(arg, "="); filepath.IsAbs(value) && !strings.HasPrefix(value, o.Dir+"/") {
				t.Errorf("%s uses %s", program.Name, arg)
			}
		}
	}
}

// TestAPIsAreSwitchedOffOnTheAPIServer: without them the Node authorizer, which watches
// some itself, would keep the API server from ever being ready.
func TestAPIsAreSwitchedOffOnTheAPIServer(t *testing.T) {
	args := func(o Options) []string {
		programs := plan(o).ControlPlane()
		return programs[slices.IndexFunc(programs, func(p Program) bool { return p.Name == components.APIServer })].Args
	}
	o := valid()
	if got := args(o); !slices.Contains(got, "--authorization-mode=Node,RBAC") || strings.Contains(strings.Join(got, " "), "--runtime-config") {
		t.Errorf("an API server as it comes gets %q", got)
	}
	o.RuntimeConfig = "resource.k8s.io/v1=false"
	if got := args(o); !slices.Contains(got, "--authorization-mode=RBAC") || !slices.Contains(got, "--runtime-config=resource.k8s.io/v1=false") {
		t.Errorf("an API server without an API gets %q", got)
	}
}

// TestFeaturesAreSwitchedInTheWholeControlPlane: the API server serves what a gate brings, and the
// controllers of that are in kube-controller-manager.
func TestFeaturesAreSwitchedInTheWholeControlPlane(t *testing.T) {
	o := valid()
	for gates, want := range map[string][]string{
		"":                     nil,
		"GenericWorkload=true": {components.APIServer, components.ControllerManager},
	} {
		o.FeatureGates = gates
		var switched []string
		p := plan(o)
		for _, program := range p.ControlPlane() {
			if slices.ContainsFunc(program.Args, func(arg string) bool { return strings.HasPrefix(arg, "--feature-gates") }) {
				switched = append(switched, program.Name)
			}
		}
		if !slices.Equal(switched, want) {
			t.Errorf("with the gates %q, %q are told of gates, want %q", gates, switched, want)
		}
	}
}

// TestChangesAreWrittenDownWhereThatIsAskedFor: the policy and the log, and neither of them
// without being asked.
func TestChangesAreWrittenDownWhereThatIsAskedFor(t *testing.T) {
	o := valid()
	for _, audit := range []bool{false, true} {
		o.Audit = audit
		p := plan(o)
		programs := p.ControlPlane()
		args := programs[slices.IndexFunc(programs, func(p Program) bool { return p.Name == components.APIServer })].Args
		for _, want := range []string{"--audit-policy-file=" + p.Layout.Config("audit.yaml"), "--audit-log-path=" + p.Layout.AuditLog()} {
			if slices.Contains(args, want) != audit {
				t.Errorf("asked for: %t; the API server gets %q", audit, args)
			}
		}
	}
}

func TestOwnProgramsComeAsTheirServiceAccounts(t *testing.T) {
	o := valid()
	o.With = []string{Scheduler}
	o.SchedulerArgs = []string{"-v=4"}
	got := plan(o).Lockstep()
	if len(got) != 1 || got[0].Name != Scheduler {
		t.Fatalf("programs %v, want the scheduler alone", got)
	}
	if !slices.Contains(got[0].Args, "--config=/state/c/config/scheduler.yaml") || got[0].Args[len(got[0].Args)-1] != "-v=4" {
		t.Errorf("arguments %v", got[0].Args)
	}
	var users []string
	for _, id := range Identities() {
		if strings.HasPrefix(id.User, "system:serviceaccount:") {
			users = append(users, id.User)
			if slices.Contains(id.Groups, "system:masters") {
				t.Errorf("%s may do everything", id.User)
			}
		}
	}
	want := []string{"system:serviceaccount:lockstep-system:lockstep-controller", "system:serviceaccount:lockstep-system:lockstep-scheduler"}
	if diff := cmp.Diff(want, users); diff != "" {
		t.Errorf("service accounts (-want,+got):\n%s", diff)
	}
}

func TestSchedulerServesPodsThatNameNoScheduler(t *testing.T) {
	p := &Plan{Layout: Layout{Dir: "/state/c"}}
	config := p.SchedulerConfig()
	for _, want := range []string{"schedulerName: default-scheduler", "schedulerName: lockstep-scheduler", `kubeconfig: "/state/c/kubeconfigs/scheduler"`} {
		if !strings.Contains(config, want) {
			t.Errorf("the configuration lacks %q:\n%s", want, config)
		}
	}
}

// TestCoreDNSHasThePluginsOfItsConfiguration: it is built with these alone, and refuses to start for
// a word that it does not know.
func TestCoreDNSHasThePluginsOfItsConfiguration(t *testing.T) {
	nodes := components.RealNode()
	coredns := nodes[slices.IndexFunc(nodes, func(c components.Component) bool { return c.Name == components.CoreDNS })]
	files, err := coredns.Files()
	if err != nil {
		t.Fatal(err)
	}
	directives := regexp.MustCompile(`(?m)^    (\w+)`).FindAllStringSubmatch(plan(Options{RealNode: true}).Corefile(), -1)
	if len(directives) < 5 {
		t.Fatalf("only %d directives were found", len(directives))
	}
	for _, directive := range directives {
		if !strings.Contains(string(files["main.go"]), `"github.com/coredns/coredns/plugin/`+directive[1]+`"`) {
			t.Errorf("CoreDNS is built without the plugin %s", directive[1])
		}
	}
}
