// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lockstep-k8s/lockstep/localcluster/components"
)

// Site is an address with the files of a components.Host: the host itself, or a mirror with the same paths below its address.
//
// What is trusted is TLS and the digests that lie beside the files. Only an address that itself begins with http:// is asked without
// TLS, and no answer leads away from TLS.
type Site struct {
	base *url.URL
	// connect bounds how long a connection may take to be there, idle how long it may bring nothing, and
	// total all downloads of a project together: compiling does not take much longer.
	connect, idle, total time.Duration
	// limit bounds the size of a file and of a program, in bytes.
	limit int64
	// roots are the certificates that are trusted; nil are those of the machine.
	roots *x509.CertPool
}

// ParseSite reads the address of a host or of its mirror. An empty one is no site at all. The error goes behind the name of a flag.
func ParseSite(host components.Host, address string) (*Site, error) {
	if address == "" {
		return nil, nil
	}
	base, err := url.Parse(address)
	if err != nil || base.Host == "" || base.Scheme != "https" && base.Scheme != "http" {
		return nil, fmt.Errorf("%q is not an address such as %s; empty means that what is published there is built", address, host)
	}
	return &Site{base: base, connect: 5 * time.Second, idle: 20 * time.Second, total: 5 * time.Minute, limit: 512 << 20}, nil
}

// published is what may be downloaded of a component. It is false for a component that is built.
func (b *Builder) published(c components.Component, tc components.Toolchain) (components.Published, bool) {
	p, ok := c.Published(tc)
	return p, ok && b.Sites[p.Host] != nil
}

// site is where a component that is published is downloaded.
func (b *Builder) site(c components.Component, tc components.Toolchain) *Site {
	p, _ := b.published(c, tc)
	return b.Sites[p.Host]
}

// place is where in the cache the download of a component is kept; empty for a component that is built.
func (b *Builder) place(c components.Component, tc components.Toolchain) string {
	p, ok := b.published(c, tc)
	if !ok {
		return ""
	}
	digest := sha256.Sum256([]byte(b.Sites[p.Host].address(p.File)))
	folder := fmt.Sprintf("%s-%s-published-%s", c.Name, p.Version, hex.EncodeToString(digest[:])[:16])
	return filepath.Join(b.CacheDir, "bin", folder, c.Name)
}

// address is where a file of the host lies on the site.
func (s *Site) address(file string) string { return s.base.JoinPath(file).String() }

// downloaded returns the programs of a group if all of them have been downloaded, and nil otherwise.
func (b *Builder) downloaded(group []components.Component, tc components.Toolchain) Binaries {
	found := Binaries{}
	for _, c := range group {
		file := b.place(c, tc)
		if file == "" {
			return nil
		}
		if _, err := os.Stat(file); err != nil {
			return nil
		}
		found[c.Name] = file
	}
	return found
}

// download is one group of programs that is being downloaded.
type download struct {
	group []components.Component
	// missing are those that have to be compiled if the download fails.
	missing []components.Component
	// done is closed when err is known.
	done chan struct{}
	err  error
}

// split divides what is missing into what has to be built and what may be downloaded.
func (b *Builder) split(wanted, missing []components.Component, tc components.Toolchain) (builds [][]components.Component, downloads []*download) {
	whole := map[string][]components.Component{}
	for _, group := range byPin(wanted) {
		whole[group[0].Pin] = group
	}
	for _, group := range byPin(missing) {
		if b.place(group[0], tc) == "" {
			builds = append(builds, group)
		} else {
			downloads = append(downloads, &download{group: whole[group[0].Pin], missing: group, done: make(chan struct{})})
		}
	}
	return builds, downloads
}

// sweep removes what builds and downloads that were killed have left. The caller holds the lock of the cache.
func (b *Builder) sweep() error {
	var errs []error
	for _, pattern := range []string{"build-*", "download-*"} {
		left, err := filepath.Glob(filepath.Join(b.CacheDir, pattern))
		errs = append(errs, err)
		for _, folder := range left {
			errs = append(errs, os.RemoveAll(folder))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("removing what a build that was killed has left: %w", err)
	}
	return nil
}

// download brings the programs of a group into the cache, side by side, and tells if it cannot.
func (b *Builder) download(ctx context.Context, title string, d *download, tc components.Toolchain) {
	defer close(d.done)
	host := b.site(d.group[0], tc).base.Host
	d.err = b.withProgress(title, "downloading from "+host, "downloaded", func() error { return b.downloadGroup(ctx, d.group, tc) })
	if d.err != nil && ctx.Err() == nil && !b.DownloadOnly {
		b.Progress("%v: compiling %s", d.err, b.project(d.group, tc))
	}
}

func (b *Builder) downloadGroup(ctx context.Context, group []components.Component, tc components.Toolchain) error {
	site := b.site(group[0], tc)
	ctx, cancel := context.WithTimeoutCause(ctx, site.total, fmt.Errorf("%s did not send all of it within %s", site.base.Host, site.total))
	defer cancel()
	work, err := os.MkdirTemp(b.CacheDir, "download-")
	if err != nil {
		return fmt.Errorf("nothing can be downloaded (%w)", err)
	}
	defer os.RemoveAll(work)
	client := site.client()
	defer client.CloseIdleConnections()
	files := map[string][]components.Component{} // several programs may be in one archive
	for _, c := range group {
		if _, err := os.Stat(b.place(c, tc)); err == nil {
			continue
		}
		p, _ := b.published(c, tc)
		files[p.File] = append(files[p.File], c)
	}
	all, ctx := errgroup.WithContext(ctx)
	for name, programs := range files {
		all.Go(func() error {
			p, _ := b.published(programs[0], tc)
			file := filepath.Join(work, path.Base(name))
			if err := site.fetch(ctx, client, p, file); err != nil {
				return err
			}
			for _, c := range programs {
				if err := b.take(ctx, site, c, tc, file); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return all.Wait()
}

// take brings a program into the cache from the file that was downloaded, if it runs here and is of its version.
func (b *Builder) take(ctx context.Context, site *Site, c components.Component, tc components.Toolchain, file string) error {
	p, _ := b.published(c, tc)
	program := file
	if p.Member != "" {
		program = filepath.Join(filepath.Dir(file), "unpacked-"+c.Name)
		if err := unpack(file, p.Member, program, site.limit); err != nil {
			return fmt.Errorf("%s from %s: %w", path.Base(p.File), site.base.Host, err)
		}
	}
	if err := p.Fits(ask(ctx, program, p.Ask)); err != nil {
		return fmt.Errorf("%s from %s does not run here as %s (%w)", c.Name, site.base.Host, p.Version, err)
	}
	target := b.place(c, tc)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	return os.Rename(program, target)
}

// fetch downloads what is published into a file, which is whole on disk and executable if there is no error.
func (s *Site) fetch(ctx context.Context, client *http.Client, p components.Published, file string) error {
	var digests strings.Builder
	if err := s.get(ctx, client, s.address(p.Digests), 64<<10, &digests); err != nil {
		return err
	}
	want, ok := digestOf(path.Base(p.File), digests.String())
	if !ok {
		return fmt.Errorf("%s has no SHA-256 digest of %s", s.base.Host, path.Base(p.File))
	}
	digest := sha256.New()
	err := create(file, func(f io.Writer) error {
		return s.get(ctx, client, s.address(p.File), s.limit, io.MultiWriter(f, digest))
	})
	if err != nil {
		return err
	}
	if got := hex.EncodeToString(digest.Sum(nil)); !strings.EqualFold(got, want) {
		return fmt.Errorf("%s from %s has the digest %s, not the published %s", path.Base(p.File), s.base.Host, got, want)
	}
	return nil
}

// digestOf finds the digest of a file in a list as sha256sum writes it, with a name behind each digest, or in one that is the digest
// alone. Other lines, such as those of a signature around the list, are no digests.
func digestOf(name, list string) (string, bool) {
	for line := range strings.Lines(list) {
		digest, of, _ := strings.Cut(strings.TrimSpace(line), " ")
		of = path.Base(strings.TrimLeft(of, " *"))
		if sum, err := hex.DecodeString(digest); err == nil && len(sum) == sha256.Size && (of == "." || of == name) {
			return digest, true
		}
	}
	return "", false
}

// unpack writes a program of an archive (tar and gzip) into a file.
func unpack(archive, member, file string, limit int64) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("unpacking: %w", err)
	}
	for files := tar.NewReader(unzipped); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("it has no file %s", member)
		}
		if err != nil {
			return fmt.Errorf("unpacking: %w", err)
		}
		if header.Typeflag != tar.TypeReg || path.Clean(header.Name) != member {
			continue
		}
		if header.Size > limit {
			return fmt.Errorf("%s has more than %d bytes", member, limit)
		}
		return create(file, func(to io.Writer) error {
			_, err := io.Copy(to, files)
			return err
		})
	}
}

// create makes an executable file of what write writes, whole on disk.
func create(file string, write func(io.Writer) error) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := write(f); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return f.Close()
}

// get writes what lies at an address. Its errors are for a person to read.
func (s *Site) get(ctx context.Context, client *http.Client, address string, limit int64, to io.Writer) error {
	host := s.base.Host
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := time.AfterFunc(s.idle, func() { cancel(fmt.Errorf("%s has sent nothing for %s", host, s.idle)) })
	defer idle.Stop()

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // without the address, which may hold a password
		}
		return fmt.Errorf("%s cannot be reached (%w)", host, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s does not have %s (%s)", host, path.Base(address), response.Status)
	}
	n, err := io.Copy(to, io.LimitReader(&watched{from: response.Body, idle: idle, patience: s.idle}, limit+1))
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case n > limit:
		return fmt.Errorf("%s sends more than %d bytes for %s", host, limit, path.Base(address))
	case err != nil:
		return fmt.Errorf("the download from %s broke off (%w)", host, err)
	}
	return nil
}

// watched has a timer run while, and only while, a read waits.
type watched struct {
	from     io.Reader
	idle     *time.Timer
	patience time.Duration
}

func (w *watched) Read(p []byte) (int, error) {
	w.idle.Reset(w.patience)
	defer w.idle.Stop()
	return w.from.Read(p)
}

func (s *Site) client() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = (&net.Dialer{Timeout: s.connect}).DialContext
	transport.TLSHandshakeTimeout = s.connect
	transport.TLSClientConfig = &tls.Config{RootCAs: s.roots}
	transport.DisableCompression = true // a file is what its digest is of
	return &http.Client{Transport: transport, CheckRedirect: func(request *http.Request, via []*http.Request) error {
		if request.URL.Scheme != "https" && via[len(via)-1].URL.Scheme == "https" {
			return fmt.Errorf("it leads to %s, without TLS", request.URL.Host)
		}
		if len(via) >= 10 {
			return errors.New("it leads from one address to the other")
		}
		return nil
	}}
}

// project names the version of a group that is published.
func (b *Builder) project(group []components.Component, tc components.Toolchain) string {
	if group[0].Kubernetes != "" {
		return "Kubernetes " + group[0].Kubernetes
	}
	p, _ := b.published(group[0], tc)
	return group[0].Pin + " " + p.Version
}
