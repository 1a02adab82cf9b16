// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package build turns components into binaries in a cache that all clusters of a user share.
//
// A binary lies in CACHE/bin/<component>-<key>/<component>, where the key is a digest of all
// that decides its content (components.CacheKey). A component of an older release has its
// version in front of the key. A binary gets there by a rename when it is whole on disk, so a file in the
// cache is always whole. What a Site has is kept in the same way, under a digest of where it came from. One build runs at a time
// per cache: a second one waits for the lock and then finds the work done. Components of one pin are built by one `go build`,
// which compiles what they share once. While one pin is compiled, the modules of those to come are
// downloaded.
package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockstep-k8s/lockstep/internal/disk"
	"github.com/lockstep-k8s/lockstep/localcluster/components"
)

// minFree is the free space that a build asks for, in bytes. A cold build of everything
// leaves about 3 GiB in Go's module cache, 3 GiB in its build cache and 0.6 GiB here.
const minFree = 7 << 30

// Builder builds components into a cache.
type Builder struct {
	// CacheDir holds the binaries; it is made if missing.
	CacheDir string
	// Sites are where programs are downloaded rather than built, by the host whose files the site has. What a host that is not in it
	// publishes is built.
	Sites map[components.Host]*Site
	// DownloadOnly has Ensure bring into the cache what it can download, compile nothing, and return what there is.
	DownloadOnly bool
	// Progress receives one line per event, for a person to read. Goroutines call it side by side.
	Progress func(format string, args ...any)
	// Tick is the time between two signs of life of a running build; zero means 8 seconds.
	Tick time.Duration
	// Free says how many bytes of a folder are free; nil asks the system.
	Free func(folder string) (uint64, error)
}

// Binaries maps the name of a component to the path of its binary.
type Binaries map[string]string

// Ensure returns the binaries of the components, downloading or building those that the cache lacks.
func (b *Builder) Ensure(ctx context.Context, wanted []components.Component) (Binaries, error) {
	toolchain, err := findToolchain(ctx)
	if err != nil {
		return nil, err
	}
	binaries, err := b.ensure(ctx, wanted, toolchain)
	if err != nil {
		return nil, err
	}
	for _, group := range byPin(wanted) {
		if b.downloaded(group, toolchain) != nil {
			b.Progress("%s from %s: %s", b.project(group, toolchain), b.site(group[0], toolchain).base.Host, strings.Join(names(group), ", "))
		}
	}
	return binaries, nil
}

func (b *Builder) ensure(ctx context.Context, wanted []components.Component, toolchain components.Toolchain) (Binaries, error) {
	binaries, missing, err := b.lookup(wanted, toolchain)
	if err != nil || len(missing) == 0 {
		return binaries, err
	}
	if err := os.MkdirAll(b.CacheDir, 0o755); err != nil {
		return nil, fmt.Errorf("making the cache directory: %w", err)
	}
	unlock, err := b.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()

	// Another process may have built them while this one waited.
	if binaries, missing, err = b.lookup(wanted, toolchain); err != nil || len(missing) == 0 {
		return binaries, err
	}
	if err := b.sweep(); err != nil {
		return nil, err
	}
	builds, downloads := b.split(wanted, missing, toolchain)
	steps := len(builds) + len(downloads)
	title := func(i int, group []components.Component) string {
		return fmt.Sprintf("[%d/%d] %s", i+1, steps, strings.Join(names(group), ", "))
	}
	compile := func(i int, group []components.Component) error {
		if err := b.checkPrerequisites(group); err != nil {
			return err
		}
		return b.buildGroup(ctx, title(i, group), group, toolchain)
	}
	if b.DownloadOnly {
		builds = nil
	}
	if err := b.checkPrerequisites(slices.Concat(builds...)); err != nil {
		return nil, err
	}
	aside, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer func() { stop(); running.Wait() }()
	for i, d := range downloads {
		running.Go(func() { b.download(aside, title(len(builds)+i, d.group), d, toolchain) })
	}
	if len(builds) > 0 {
		b.Progress("building %d components from source, once (a cold build takes minutes)", len(slices.Concat(builds...)))
	}
	running.Go(func() {
		b.fetch(aside, builds[min(1, len(builds)):])
		for _, d := range downloads {
			if <-d.done; d.err != nil && !b.DownloadOnly {
				b.fetch(aside, [][]components.Component{d.missing})
			}
		}
	})
	if b.DownloadOnly {
		for _, d := range downloads {
			<-d.done
		}
		binaries, _, err := b.lookup(wanted, toolchain)
		return binaries, err
	}
	for i, group := range builds {
		if err := compile(i, group); err != nil {
			return nil, err
		}
	}
	for i, d := range downloads {
		<-d.done
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if d.err == nil {
			continue
		}
		if err := compile(len(builds)+i, d.missing); err != nil {
			return nil, err
		}
	}
	binaries, missing, err = b.lookup(wanted, toolchain)
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("building %s: go build reported success but left no binary", missing[0].Name)
	}
	return binaries, err
}

// lookup splits the wanted components into those in the cache and those missing. What is published counts
// as a whole, so that all programs of Kubernetes come from one place.
func (b *Builder) lookup(wanted []components.Component, tc components.Toolchain) (Binaries, []components.Component, error) {
	found := Binaries{}
	var missing []components.Component
	for _, group := range byPin(wanted) {
		maps.Copy(found, b.downloaded(group, tc))
	}
	for _, c := range wanted {
		if found[c.Name] != "" {
			continue
		}
		key, err := c.CacheKey(tc)
		if err != nil {
			return nil, nil, err
		}
		file := b.path(c, key)
		// An older program that did not wait for the disk may have left an empty one when the machine went down.
		if info, err := os.Stat(file); err == nil && info.Size() > 0 {
			found[c.Name] = file
		} else {
			missing = append(missing, c)
		}
	}
	return found, missing, nil
}

func (b *Builder) path(c components.Component, key string) string {
	folder := c.Name + "-" + key
	if c.Version != "" {
		folder = c.Name + "-" + c.Version + "-" + key
	}
	return filepath.Join(b.CacheDir, "bin", folder, c.Name)
}

// lock waits until no other process builds into this cache.
func (b *Builder) lock(ctx context.Context) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(b.CacheDir, "build.lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the build lock: %w", err)
	}
	told := false
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			f.Close()
			return nil, fmt.Errorf("locking %s: %w", f.Name(), err)
		}
		if !told {
			b.Progress("waiting for another lockstep-local that is building the same components")
			told = true
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, context.Cause(ctx)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// buildGroup builds components of one pin and moves them into the cache.
func (b *Builder) buildGroup(ctx context.Context, title string, group []components.Component, tc components.Toolchain) error {
	work, err := b.folder(group[0])
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)

	out := filepath.Join(work, "out") + string(filepath.Separator)
	cmd := goCommand(ctx, work, group, append([]string{"build", "-o", out}, group[0].BuildFlags(tc)...)...)
	if err := b.runWithProgress(cmd, title); err != nil {
		return fmt.Errorf("building %s: %w", strings.Join(names(group), ", "), err)
	}
	for _, c := range group {
		if err := b.store(filepath.Join(out, binaryName(c)), c, tc); err != nil {
			return err
		}
	}
	return nil
}

// fetch downloads the modules that the packages of groups need, and no others. It is all right if
// it fails: the build downloads what is missing, and says what is wrong.
func (b *Builder) fetch(ctx context.Context, groups [][]components.Component) {
	for _, group := range groups {
		if !group[0].NeedsModules() || ctx.Err() != nil {
			continue
		}
		work, err := b.folder(group[0])
		if err != nil {
			return
		}
		_ = goCommand(ctx, work, group, "list", "-deps").Run()
		os.RemoveAll(work)
	}
}

// folder makes a folder in which go can build a component and others of its pin.
func (b *Builder) folder(c components.Component) (string, error) {
	work, err := os.MkdirTemp(b.CacheDir, "build-")
	if err != nil {
		return "", fmt.Errorf("making a build directory: %w", err)
	}
	files, err := c.Files()
	for name, content := range files {
		if err == nil {
			err = os.WriteFile(filepath.Join(work, name), content, 0o644)
		}
	}
	if err != nil {
		os.RemoveAll(work)
		return "", fmt.Errorf("writing the pin: %w", err)
	}
	return work, nil
}

// compilerGOGC has the compiler collect its garbage more rarely, for a sixth less CPU, unless GOGC says otherwise. It does
// not change what is built.
const compilerGOGC = "400"

// goCommand is a go command for all components of a group, in the folder of their pin.
func goCommand(ctx context.Context, folder string, group []components.Component, args ...string) *exec.Cmd {
	for _, c := range group {
		args = append(args, c.Package)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "CGO_ENABLED="+cgo(group[0]), "GOOS=", "GOARCH=")
	if os.Getenv("GOGC") == "" {
		cmd.Env = append(cmd.Env, "GOGC="+compilerGOGC)
	}
	return cmd
}

// store moves a built binary to its place, once it is whole on disk: a rename alone may outlive a crash of the machine
// that what the file holds does not.
func (b *Builder) store(built string, c components.Component, tc components.Toolchain) error {
	key, err := c.CacheKey(tc)
	if err != nil {
		return err
	}
	target := b.path(c, key)
	if err := disk.Sync(built); err != nil {
		return fmt.Errorf("storing %s: %w", c.Name, err)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return fmt.Errorf("storing %s: %w", c.Name, err)
	}
	if err := os.Rename(built, target); err != nil {
		return fmt.Errorf("storing %s: %w", c.Name, err)
	}
	return nil
}

// runWithProgress runs cmd, tells every Tick how long it has been running, and on failure
// returns the last lines that it wrote.
func (b *Builder) runWithProgress(cmd *exec.Cmd, title string) error {
	output := &tail{limit: 2000}
	cmd.Stdout, cmd.Stderr = output, output
	err := b.withProgress(title, "building", "built", cmd.Run)
	if err != nil && cmd.Process != nil {
		err = fmt.Errorf("%w\n%s", err, output)
	}
	return err
}

// withProgress tells that work begins, every Tick that it goes on, and that it is done.
func (b *Builder) withProgress(title, doing, finished string, work func() error) error {
	start := time.Now()
	b.Progress("%s: %s", title, doing)
	done := make(chan error, 1)
	go func() { done <- work() }()

	tick := b.Tick
	if tick == 0 {
		tick = 8 * time.Second
	}
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			b.Progress("%s: still %s after %s", title, doing, time.Since(start).Round(time.Second))
		case err := <-done:
			if err == nil {
				b.Progress("%s: %s in %s", title, finished, time.Since(start).Round(time.Second))
			}
			return err
		}
	}
}

// findToolchain asks the go command what it is, and pkg-config whether libseccomp is there.
func findToolchain(ctx context.Context) (components.Toolchain, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOVERSION").Output()
	if errors.Is(err, exec.ErrNotFound) {
		return components.Toolchain{}, errors.New("no go command in PATH: Go 1.26 or later is needed to build the components")
	}
	if err != nil {
		return components.Toolchain{}, fmt.Errorf("asking go for its version: %w", err)
	}
	seccomp := exec.CommandContext(ctx, "pkg-config", "--exists", "libseccomp").Run() == nil
	return components.Toolchain{
		GoVersion:  strings.TrimSpace(string(out)),
		OS:         runtime.GOOS,
		Arch:       runtime.GOARCH,
		Libseccomp: seccomp,
	}, nil
}

func (b *Builder) checkPrerequisites(missing []components.Component) error {
	for _, c := range missing {
		if !c.Cgo {
			continue
		}
		if _, err := exec.LookPath("gcc"); err != nil {
			return fmt.Errorf("no gcc in PATH: %s needs a C compiler to be built", c.Name)
		}
	}
	if !slices.ContainsFunc(missing, components.Component.NeedsModules) {
		return nil // nothing to download, and little to compile
	}
	free := b.Free
	if free == nil {
		free = freeOf
	}
	switch bytes, err := free(b.CacheDir); {
	case err != nil:
		return fmt.Errorf("asking for the free space of %s: %w", b.CacheDir, err)
	case bytes < minFree:
		return fmt.Errorf("%s has %.1f GiB free, and building the components takes up to %d GiB", b.CacheDir, float64(bytes)/(1<<30), minFree>>30)
	}
	return nil
}

func freeOf(folder string) (uint64, error) {
	var fs unix.Statfs_t
	err := unix.Statfs(folder, &fs)
	return fs.Bavail * uint64(fs.Bsize), err
}

// byPin groups components that one `go build` can make: those of one pin come as neighbours.
func byPin(list []components.Component) [][]components.Component {
	var groups [][]components.Component
	index := map[string]int{}
	for _, c := range list {
		i, ok := index[c.Pin]
		if !ok {
			i = len(groups)
			index[c.Pin] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], c)
	}
	return groups
}

// binaryName is the file that `go build -o dir/` makes of a component: the last element of its
// path that is not a major version.
func binaryName(c components.Component) string {
	if c.Source != "" {
		return c.Pin
	}
	base := path.Base(c.Package)
	if len(base) > 1 && base[0] == 'v' && strings.Trim(base[1:], "0123456789") == "" {
		return path.Base(path.Dir(c.Package))
	}
	return base
}

// names are the names of components for a person to read, with the versions that are not the
// usual ones.
func names(list []components.Component) []string {
	var out []string
	for _, c := range list {
		out = append(out, strings.TrimSpace(c.Name+" "+c.Version))
	}
	return out
}

func cgo(c components.Component) string {
	if c.Cgo {
		return "1"
	}
	return "0"
}

// tail is a writer that keeps the end of what was written.
type tail struct {
	limit int
	kept  []byte
}

var _ io.Writer = (*tail)(nil)

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if extra := len(t.kept) - t.limit; extra > 0 {
		t.kept = t.kept[extra:]
	}
	return len(p), nil
}

func (t *tail) String() string {
	return strings.TrimSpace(string(t.kept))
}
