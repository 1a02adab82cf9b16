// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockstep-k8s/lockstep/localcluster/components"
)

// program is a component of Kubernetes that also builds within a second, and then says "hello".
func program(name string) components.Component {
	c := small(hello)
	c.Name, c.Kubernetes = name, "v1.37.1"
	return c
}

// reporting is a program that tells this version.
func reporting(version string) string { return "#!/bin/sh\necho 'Kubernetes " + version + "'\n" }

// site is what lies at an address: paths and contents.
type site map[string]string

// publish makes the site that has one program, with its digest.
func publish(name, content string) site {
	path := "/release/v1.37.1/bin/" + runtime.GOOS + "/" + runtime.GOARCH + "/" + name
	digest := sha256.Sum256([]byte(content))
	return site{path: content, path + ".sha256": hex.EncodeToString(digest[:])}
}

func (s site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	content, ok := s[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	io.WriteString(w, content)
}

// siteAt is Kubernetes' host at an address.
func siteAt(t *testing.T, address string) *Site {
	t.Helper()
	p, err := ParseSite(components.KubernetesHost, address)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// serve answers on a port of this machine until the test ends.
func serve(t *testing.T, handler http.Handler) *Site {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return siteAt(t, server.URL)
}

// kubernetesAt has the host of Kubernetes alone.
func kubernetesAt(s *Site) map[components.Host]*Site {
	return map[components.Host]*Site{components.KubernetesHost: s}
}

// kubelet is what is published of it for this machine.
func kubelet() components.Published {
	p, _ := program("kubelet").Published(components.Toolchain{OS: runtime.GOOS, Arch: runtime.GOARCH})
	return p
}

// says runs a program of the cache.
func says(t *testing.T, path string) string {
	t.Helper()
	out, err := exec.Command(path).CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v", path, err)
	}
	return strings.TrimSpace(string(out))
}

// leftovers are the files of a cache that no program is.
func leftovers(t *testing.T, cache string) []string {
	t.Helper()
	var left []string
	for _, pattern := range []string{"download-*", "build-*"} {
		found, err := filepath.Glob(filepath.Join(cache, pattern))
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, found...)
	}
	return left
}

func TestAPublishedProgramIsDownloadedOnce(t *testing.T) {
	var asked atomic.Int32
	pages := publish("kubelet", reporting("v1.37.1"))
	p := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		pages.ServeHTTP(w, r)
	}))
	builder, told := newBuilder(t, t.TempDir())
	builder.Sites = kubernetesAt(p)
	wanted := []components.Component{program("kubelet")}
	first, err := builder.Ensure(t.Context(), wanted)
	if err != nil {
		t.Fatal(err)
	}
	if got := says(t, first["kubelet"]); got != "Kubernetes v1.37.1" {
		t.Errorf("the program says %q, and is not the published one", got)
	}
	if want := "Kubernetes v1.37.1 from " + p.base.Host; !strings.Contains(told(), want) {
		t.Errorf("told:\n%s\nwant %q", told(), want)
	}
	second, err := builder.Ensure(t.Context(), wanted)
	if err != nil || second["kubelet"] != first["kubelet"] {
		t.Errorf("the second time it is %s, %v", second["kubelet"], err)
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("%d requests, want one for the digest and one for the program", n)
	}
	if left := leftovers(t, builder.CacheDir); left != nil {
		t.Errorf("left in the cache: %v", left)
	}
}

func TestWhoDoesNotAskForPublishedProgramsNeverGetsThem(t *testing.T) {
	wanted := []components.Component{program("kubelet")}
	builder, _ := newBuilder(t, t.TempDir())
	builder.Sites = kubernetesAt(serve(t, publish("kubelet", reporting("v1.37.1"))))
	downloaded, err := builder.Ensure(t.Context(), wanted)
	if err != nil {
		t.Fatal(err)
	}
	builder.Sites = kubernetesAt(serve(t, site{}))
	elsewhere, err := builder.Ensure(t.Context(), wanted)
	if err != nil {
		t.Fatal(err)
	}
	builder.Sites = nil
	built, err := builder.Ensure(t.Context(), wanted)
	if err != nil {
		t.Fatal(err)
	}
	if says(t, built["kubelet"]) != "hello" || built["kubelet"] == downloaded["kubelet"] {
		t.Errorf("where everything is built, %s is used", built["kubelet"])
	}
	if elsewhere["kubelet"] != built["kubelet"] {
		t.Errorf("from an address that does not have it comes %s", elsewhere["kubelet"])
	}
}

func TestWhatIsBuiltAlreadyIsNotDownloaded(t *testing.T) {
	wanted := []components.Component{program("kubelet")}
	builder, _ := newBuilder(t, t.TempDir())
	built, err := builder.Ensure(t.Context(), wanted)
	if err != nil {
		t.Fatal(err)
	}
	builder.Sites = kubernetesAt(serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it is asked for") })))
	again, err := builder.Ensure(t.Context(), wanted)
	if err != nil || again["kubelet"] != built["kubelet"] {
		t.Errorf("%s is used, %v; want %s", again["kubelet"], err, built["kubelet"])
	}
}

// hanging sends a beginning and then nothing.
func hanging(w http.ResponseWriter, r *http.Request) {
	io.WriteString(w, "#!")
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

func TestWhatCannotBeDownloadedIsCompiled(t *testing.T) {
	const mib = 1 << 20
	good := reporting("v1.37.1")
	digestOf := func(content string) string { return publish("kubelet", content)[pathOf("kubelet")+".sha256"] }
	tests := map[string]struct {
		handler http.Handler
		adjust  func(*Site)
		want    string
	}{
		"nothing there":              {site{}, nil, "does not have kubelet.sha256 (404 Not Found)"},
		"a digest without a program": {site{pathOf("kubelet") + ".sha256": digestOf(good)}, nil, "does not have kubelet (404 Not Found)"},
		"another digest":             {site{pathOf("kubelet"): good, pathOf("kubelet") + ".sha256": digestOf("other")}, nil, "has the digest " + digestOf(good) + ", not the published " + digestOf("other")},
		"a page for a digest":        {site{pathOf("kubelet"): good, pathOf("kubelet") + ".sha256": "<html>"}, nil, "has no SHA-256 digest of kubelet"},
		"another version":            {publish("kubelet", reporting("v1.37.2")), nil, "does not run here as v1.37.1 (v1.37.2 is not v1.37.1)"},
		"what does not run":          {publish("kubelet", "\x7fELF"), nil, "does not run here as v1.37.1"},
		"more than a program can be": {publish("kubelet", good+strings.Repeat("#", 2*mib)), func(p *Site) { p.limit = mib }, "sends more than 1048576 bytes for kubelet"},
		"a server that hangs":        {http.HandlerFunc(hanging), func(p *Site) { p.idle = 50 * time.Millisecond }, "has sent nothing for 50ms"},
		"a server that takes too long": {http.HandlerFunc(hanging), func(p *Site) { p.total = 50 * time.Millisecond },
			"did not send all of it within 50ms"},
		"a connection that breaks": {http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, ".sha256") {
				io.WriteString(w, digestOf(good))
				return
			}
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, good)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}), nil, "broke off (unexpected EOF)"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			builder, told := newBuilder(t, t.TempDir())
			builder.Sites = kubernetesAt(serve(t, tc.handler))
			if tc.adjust != nil {
				tc.adjust(builder.Sites[components.KubernetesHost])
			}
			binaries, err := builder.Ensure(t.Context(), []components.Component{program("kubelet")})
			if err != nil {
				t.Fatal(err)
			}
			if got := says(t, binaries["kubelet"]); got != "hello" {
				t.Errorf("the program says %q, and is not the one that is compiled", got)
			}
			if !strings.Contains(told(), tc.want) || !strings.Contains(told(), ": compiling Kubernetes v1.37.1") {
				t.Errorf("told:\n%s\nwant %q and that it is compiled", told(), tc.want)
			}
			if left := leftovers(t, builder.CacheDir); left != nil {
				t.Errorf("left in the cache: %v", left)
			}
			if found, _ := filepath.Glob(filepath.Join(builder.CacheDir, "bin", "*-published-*", "*")); found != nil {
				t.Errorf("taken for downloaded: %v", found)
			}
		})
	}
}

func pathOf(name string) string {
	for path := range publish(name, "") {
		return strings.TrimSuffix(path, ".sha256")
	}
	return ""
}

func TestWhoIsNotReachedIsNotWaitedFor(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	closed := httptest.NewServer(nil)
	closed.Close()
	plain := httptest.NewServer(publish("kubelet", reporting("v1.37.1")))
	defer plain.Close()
	leading := httptest.NewTLSServer(http.RedirectHandler(plain.URL+pathOf("kubelet"), http.StatusFound))
	defer leading.Close()
	trusted := x509.NewCertPool()
	trusted.AddCert(leading.Certificate())
	tests := map[string]struct {
		address string
		adjust  func(*Site)
		want    string
	}{
		"nobody listens":         {closed.URL, nil, "connection refused"},
		"nobody greets":          {"https://" + silent.Addr().String(), func(p *Site) { p.connect = 50 * time.Millisecond }, "TLS handshake timeout"},
		"a stranger answers":     {leading.URL, nil, "certificate signed by unknown authority"},
		"TLS would be left":      {leading.URL, func(p *Site) { p.roots = trusted }, "it leads to " + strings.TrimPrefix(plain.URL, "http://") + ", without TLS"},
		"a password is not told": {strings.Replace(closed.URL, "http://", "http://me:secret@", 1), nil, strings.TrimPrefix(closed.URL, "http://") + " cannot be reached"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := siteAt(t, tc.address)
			if tc.adjust != nil {
				tc.adjust(p)
			}
			err := p.fetch(t.Context(), p.client(), kubelet(), filepath.Join(t.TempDir(), "kubelet"))
			if err == nil || !strings.Contains(err.Error(), "cannot be reached (") || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// TestAnswersMayLeadToOtherAddresses, as those of dl.k8s.io do.
func TestAnswersMayLeadToOtherAddresses(t *testing.T) {
	pages := publish("kubelet", reporting("v1.37.1"))
	elsewhere := httptest.NewTLSServer(pages)
	defer elsewhere.Close()
	leading := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusFound)
	}))
	defer leading.Close()
	p := siteAt(t, leading.URL)
	p.roots = x509.NewCertPool()
	p.roots.AddCert(leading.Certificate())
	p.roots.AddCert(elsewhere.Certificate())
	file := filepath.Join(t.TempDir(), "kubelet")
	if err := p.fetch(t.Context(), p.client(), kubelet(), file); err != nil {
		t.Fatal(err)
	}
	if got := says(t, file); got != "Kubernetes v1.37.1" {
		t.Errorf("the program says %q", got)
	}
}

// TestPatienceIsForSilenceAlone: a slow line is no silent one, and a slow disk is not the server's fault.
func TestPatienceIsForSilenceAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const patience = 20 * time.Second
		silent := false
		idle := time.AfterFunc(patience, func() { silent = true })
		from := readerFunc(func(p []byte) (int, error) { time.Sleep(patience - time.Second); return 1, nil })
		w := &watched{from: from, idle: idle, patience: patience}
		for range 10 {
			w.Read(make([]byte, 1))
			time.Sleep(2 * patience)
		}
		synctest.Wait()
		if silent {
			t.Error("a server that sends a byte every 19 s counts as silent")
		}
		w.from = readerFunc(func([]byte) (int, error) { time.Sleep(patience + time.Second); return 1, nil })
		w.Read(make([]byte, 1))
		if !silent {
			t.Error("a server that sends nothing for 21 s does not count as silent")
		}
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestDownloadOnlyCompilesNothing: a later build compiles what could not be downloaded.
func TestDownloadOnlyCompilesNothing(t *testing.T) {
	etcd, _ := releaseOf(t, "etcd", "etcd")
	ofKubernetes := program("kubelet")
	ofKubernetes.Pin = "kubernetes"
	wanted := []components.Component{etcd, ofKubernetes, small(hello)}
	builder, told := newBuilder(t, t.TempDir())
	builder.Sites = map[components.Host]*Site{
		components.GitHub:         serve(t, site{}),
		components.KubernetesHost: serve(t, publish("kubelet", reporting("v1.37.1"))),
	}
	builder.DownloadOnly = true
	binaries, err := builder.Ensure(t.Context(), wanted)
	if err != nil || len(binaries) != 1 || says(t, binaries["kubelet"]) != "Kubernetes v1.37.1" || strings.Contains(told(), "compiling") {
		t.Errorf("there is %v, %v; told:\n%s", binaries, err, told())
	}
	builder.DownloadOnly = false
	binaries, err = builder.Ensure(t.Context(), wanted)
	if err != nil || says(t, binaries["etcd"]) != "hello" || says(t, binaries["small"]) != "hello" || says(t, binaries["kubelet"]) != "Kubernetes v1.37.1" {
		t.Errorf("afterwards there is %v, %v; told:\n%s", binaries, err, told())
	}
}

func TestAnInterruptedDownloadLeavesNothing(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	builder, told := newBuilder(t, t.TempDir())
	builder.Sites = kubernetesAt(serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".sha256") {
			publish("kubelet", reporting("v1.37.1")).ServeHTTP(w, r)
			return
		}
		io.WriteString(w, "#!")
		w.(http.Flusher).Flush()
		interrupt()
		<-r.Context().Done()
	})))
	_, err := builder.Ensure(ctx, []components.Component{program("kubelet")})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that it was interrupted", err)
	}
	if left := leftovers(t, builder.CacheDir); left != nil || strings.Contains(told(), "compiling") {
		t.Errorf("left in the cache: %v, told:\n%s", left, told())
	}
}

func TestWhatAKilledBuildHasLeftIsRemovedAndNotUsed(t *testing.T) {
	builder, _ := newBuilder(t, t.TempDir())
	for _, left := range []string{"download-123", "build-123"} {
		half := filepath.Join(builder.CacheDir, left)
		if err := os.MkdirAll(half, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(half, "kubelet"), []byte("#!"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	builder.Sites = kubernetesAt(serve(t, publish("kubelet", reporting("v1.37.1"))))
	binaries, err := builder.Ensure(t.Context(), []components.Component{program("kubelet")})
	if err != nil {
		t.Fatal(err)
	}
	if got := says(t, binaries["kubelet"]); got != "Kubernetes v1.37.1" {
		t.Errorf("the program says %q", got)
	}
	if left := leftovers(t, builder.CacheDir); left != nil {
		t.Errorf("left in the cache: %v", left)
	}
}

// TestProgramsOfKubernetesComeFromOnePlace: if one of two cannot be downloaded, both are compiled.
func TestProgramsOfKubernetesComeFromOnePlace(t *testing.T) {
	group := []components.Component{program("small"), program("kubectl")}
	builder, _ := newBuilder(t, t.TempDir())
	tc, err := findToolchain(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	builder.Sites = kubernetesAt(serve(t, publish("small", reporting("v1.37.1"))))
	if err := builder.downloadGroup(t.Context(), group, tc); err == nil || !strings.Contains(err.Error(), "does not have kubectl.sha256") {
		t.Errorf("error %v, want one that names kubectl", err)
	}
	if got := builder.downloaded(group, tc); got != nil {
		t.Errorf("a part of a group is used: %v", got)
	}
	builds, downloads := builder.split(group, group[1:], tc)
	if len(builds) != 0 || len(downloads) != 1 || len(downloads[0].group) != 2 || len(downloads[0].missing) != 1 {
		t.Errorf("built are %v, downloaded %+v; want that all are downloaded, and else only compiled what is missing", builds, downloads)
	}
}

func TestDownloadsAndBuildsRunBesideEachOther(t *testing.T) {
	started, proceed := make(chan struct{}), make(chan struct{})
	pages := publish("kubelet", reporting("v1.37.1"))
	var once sync.Once
	builder, told := newBuilder(t, t.TempDir())
	builder.Sites = kubernetesAt(serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		once.Do(func() { close(started) })
		<-proceed
		pages.ServeHTTP(w, r)
	})))
	builder.Progress = func(tell func(string, ...any)) func(string, ...any) {
		return func(format string, args ...any) {
			tell(format, args...)
			// The download goes on when the build is done, and not before.
			if strings.Contains(fmt.Sprintf(format, args...), "small: built in") {
				<-started
				close(proceed)
			}
		}
	}(builder.Progress)
	kubelet := program("kubelet")
	kubelet.Pin = "kubernetes"
	binaries, err := builder.Ensure(t.Context(), []components.Component{kubelet, small(hello)})
	if err != nil {
		t.Fatal(err)
	}
	if says(t, binaries["kubelet"]) != "Kubernetes v1.37.1" || says(t, binaries["small"]) != "hello" {
		t.Errorf("got %v, told:\n%s", binaries, told())
	}
}

func TestAddressesOfPublishedPrograms(t *testing.T) {
	for address, want := range map[string]string{
		"https://dl.k8s.io":             "https://dl.k8s.io/release/v1.37.1/bin/linux/arm64/kubectl",
		"https://mirror.example/k8s/":   "https://mirror.example/k8s/release/v1.37.1/bin/linux/arm64/kubectl",
		"http://mirror.example:8080/k8": "http://mirror.example:8080/k8/release/v1.37.1/bin/linux/arm64/kubectl",
	} {
		p, _ := program("kubectl").Published(components.Toolchain{OS: "linux", Arch: "arm64"})
		if got := siteAt(t, address).address(p.File); got != want {
			t.Errorf("%q: kubectl lies at %s, want %s", address, got, want)
		}
	}
	if site, err := ParseSite(components.GitHub, ""); site != nil || err != nil {
		t.Errorf("an empty address is %v, %v", site, err)
	}
	for _, address := range []string{"dl.k8s.io", "ftp://dl.k8s.io", "https://", "file:///srv", "http://[::1"} {
		if _, err := ParseSite(components.KubernetesHost, address); err == nil || !strings.Contains(err.Error(), "is not an address such as https://dl.k8s.io") {
			t.Errorf("%q: error %v", address, err)
		}
	}
}

// releaseOf is a component of another project, which also builds within a second and then says "hello", and what the project publishes.
func releaseOf(t *testing.T, pin, name string) (components.Component, components.Published) {
	t.Helper()
	c := components.Component{Name: name, Pin: pin, Package: ".", Source: hello}
	p, ok := c.Published(components.Toolchain{OS: runtime.GOOS, Arch: runtime.GOARCH})
	if !ok {
		t.Fatalf("%s is not published", pin)
	}
	return c, p
}

// archive has files in it, by their names.
func archive(files map[string]string) string {
	var packed strings.Builder
	zipped := gzip.NewWriter(&packed)
	tarred := tar.NewWriter(zipped)
	for name, content := range files {
		tarred.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Mode: 0o755, Typeflag: tar.TypeReg})
		io.WriteString(tarred, content)
	}
	tarred.Close()
	zipped.Close()
	return packed.String()
}

// releaseSite has a file, and a list of digests that names the file among others.
func releaseSite(p components.Published, content string) site {
	digest := sha256.Sum256([]byte(content))
	list := "-----BEGIN PGP SIGNED MESSAGE-----\n" + strings.Repeat("0", 64) + "  another.tar.gz\n" +
		hex.EncodeToString(digest[:]) + " *" + path.Base(p.File) + "\n"
	return site{"/" + p.File: content, "/" + p.Digests: list}
}

func TestProgramsOfAnArchiveAreDownloadedOnceForAll(t *testing.T) {
	containerd, p := releaseOf(t, "containerd", "containerd")
	ctr, _ := releaseOf(t, "containerd", "ctr")
	report := "#!/bin/sh\necho containerd github.com/containerd/containerd/v2 " + p.Version + "\n"
	pages := releaseSite(p, archive(map[string]string{"./bin/containerd": report, "bin/ctr": report, "bin/other": "#!/bin/sh\n"}))
	var asked atomic.Int32
	builder, told := newBuilder(t, t.TempDir())
	builder.Sites = map[components.Host]*Site{components.GitHub: serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		pages.ServeHTTP(w, r)
	}))}
	binaries, err := builder.Ensure(t.Context(), []components.Component{containerd, ctr})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"containerd", "ctr"} {
		if got := says(t, binaries[name]); !strings.HasSuffix(got, p.Version) {
			t.Errorf("%s says %q, and is not the published one; told:\n%s", name, got, told())
		}
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("%d requests, want one for the digests and one for the archive", n)
	}
	if want := "containerd " + p.Version + " from "; !strings.Contains(told(), want) {
		t.Errorf("told:\n%s\nwant %q", told(), want)
	}
	if left := leftovers(t, builder.CacheDir); left != nil {
		t.Errorf("left in the cache: %v", left)
	}
}

func TestAProjectWithoutItsReleaseCostsOneBuild(t *testing.T) {
	etcd, p := releaseOf(t, "etcd", "etcd")
	good := "#!/bin/sh\necho etcd Version: " + strings.TrimPrefix(p.Version, "v") + "\n"
	for name, tc := range map[string]struct {
		site site
		want string
	}{
		"no digests":                  {site{"/" + p.File: archive(map[string]string{p.Member: good})}, "does not have SHA256SUMS (404 Not Found)"},
		"no digest of the file":       {site{"/" + p.Digests: strings.Repeat("0", 64) + "  another.tar.gz\n"}, "has no SHA-256 digest of " + path.Base(p.File)},
		"no archive":                  {releaseSite(p, good), "unpacking: gzip: invalid header"},
		"an archive without etcd":     {releaseSite(p, archive(map[string]string{"etcd": good})), "it has no file " + p.Member},
		"another version":             {releaseSite(p, archive(map[string]string{p.Member: "#!/bin/sh\necho etcd Version: 3.1.0\n"})), "3.1.0 is not " + p.Version},
		"an archive that breaks off":  {releaseSite(p, archive(map[string]string{p.Member: good})[:60]), "unpacking"},
		"a program that does not run": {releaseSite(p, archive(map[string]string{p.Member: "\x7fELF"})), "does not run here as " + p.Version},
	} {
		t.Run(name, func(t *testing.T) {
			builder, told := newBuilder(t, t.TempDir())
			builder.Sites = map[components.Host]*Site{
				components.GitHub:         serve(t, tc.site),
				components.KubernetesHost: serve(t, publish("kubelet", reporting("v1.37.1"))),
			}
			ofKubernetes := program("kubelet")
			ofKubernetes.Pin = "kubernetes"
			binaries, err := builder.Ensure(t.Context(), []components.Component{etcd, ofKubernetes})
			if err != nil {
				t.Fatal(err)
			}
			if got := says(t, binaries["etcd"]); got != "hello" {
				t.Errorf("etcd says %q, and is not the one that is compiled", got)
			}
			if got := says(t, binaries["kubelet"]); got != "Kubernetes v1.37.1" {
				t.Errorf("the kubelet says %q, and is not the published one", got)
			}
			if !strings.Contains(told(), tc.want) || !strings.Contains(told(), ": compiling etcd "+p.Version) {
				t.Errorf("told:\n%s\nwant %q and that etcd is compiled", told(), tc.want)
			}
			if left := leftovers(t, builder.CacheDir); left != nil {
				t.Errorf("left in the cache: %v", left)
			}
		})
	}
}
