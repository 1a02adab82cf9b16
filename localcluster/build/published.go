// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
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

// KubernetesURL is where the project of Kubernetes publishes its programs.
const KubernetesURL = "https://dl.k8s.io"

// Published is an address where the programs of Kubernetes lie as their project publishes them: NAME, and
// beside it NAME.sha256, which holds its digest in hexadecimal digits.
//
// What is trusted is TLS and the digest. Only an address that itself begins with http:// is asked without
// TLS, and no answer leads away from TLS.
type Published struct {
	base *url.URL
	// connect bounds how long a connection may take to be there, idle how long it may bring nothing, and
	// total all downloads together: compiling does not take much longer.
	connect, idle, total time.Duration
	// limit bounds the size of a program, in bytes.
	limit int64
	// roots are the certificates that are trusted; nil are those of the machine.
	roots *x509.CertPool
}

// ParsePublished reads an address. An empty one is no place at all. The error goes behind the name of a flag.
func ParsePublished(address string) (*Published, error) {
	if address == "" {
		return nil, nil
	}
	base, err := url.Parse(address)
	if err != nil || base.Host == "" || base.Scheme != "https" && base.Scheme != "http" {
		return nil, fmt.Errorf("%q is not an address such as %s; empty means that Kubernetes is built", address, KubernetesURL)
	}
	return &Published{base: base, connect: 5 * time.Second, idle: 20 * time.Second, total: 5 * time.Minute, limit: 512 << 20}, nil
}

// place is where a component lies, and where in the cache it is kept. Both are empty if it is not published.
func (b *Builder) place(c components.Component, tc components.Toolchain) (address, file string) {
	if b.Published == nil {
		return "", ""
	}
	below, ok := c.Published(tc)
	if !ok {
		return "", ""
	}
	address = b.Published.base.JoinPath(below).String()
	digest := sha256.Sum256([]byte(address))
	folder := fmt.Sprintf("%s-%s-published-%s", c.Name, c.Kubernetes, hex.EncodeToString(digest[:])[:16])
	return address, filepath.Join(b.CacheDir, "bin", folder, c.Name)
}

// downloaded returns the programs of a group if all of them have been downloaded, and nil otherwise.
func (b *Builder) downloaded(group []components.Component, tc components.Toolchain) Binaries {
	found := Binaries{}
	for _, c := range group {
		_, file := b.place(c, tc)
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
		if address, _ := b.place(group[0], tc); address == "" {
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
	host := b.Published.base.Host
	d.err = b.withProgress(title, "downloading from "+host, "downloaded", func() error { return b.downloadGroup(ctx, d.group, tc) })
	if d.err != nil && ctx.Err() == nil {
		b.Progress("%v: compiling %s", d.err, kubernetes(d.group))
	}
}

func (b *Builder) downloadGroup(ctx context.Context, group []components.Component, tc components.Toolchain) error {
	p := b.Published
	ctx, cancel := context.WithTimeoutCause(ctx, p.total, fmt.Errorf("%s did not send all of it within %s", p.base.Host, p.total))
	defer cancel()
	work, err := os.MkdirTemp(b.CacheDir, "download-")
	if err != nil {
		return fmt.Errorf("nothing can be downloaded (%w)", err)
	}
	defer os.RemoveAll(work)
	client := p.client()
	defer client.CloseIdleConnections()
	all, ctx := errgroup.WithContext(ctx)
	for _, c := range group {
		address, file := b.place(c, tc)
		if _, err := os.Stat(file); err == nil {
			continue
		}
		all.Go(func() error {
			fetched := filepath.Join(work, c.Name)
			if err := p.fetch(ctx, client, address, fetched); err != nil {
				return err
			}
			how, _ := c.Installed()
			if _, err := how.Fits(ask(ctx, fetched, how.Ask)); err != nil {
				return fmt.Errorf("%s from %s does not run here as %s (%w)", c.Name, p.base.Host, c.Kubernetes, err)
			}
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				return err
			}
			return os.Rename(fetched, file)
		})
	}
	return all.Wait()
}

// fetch downloads a program into a file, which is whole on disk and executable if there is no error.
func (p *Published) fetch(ctx context.Context, client *http.Client, address, file string) error {
	var published strings.Builder
	if err := p.get(ctx, client, address+".sha256", 4<<10, &published); err != nil {
		return err
	}
	// Some mirrors put the name behind the digest, as sha256sum does.
	want, _, _ := strings.Cut(strings.TrimSpace(published.String()), " ")
	if sum, err := hex.DecodeString(want); err != nil || len(sum) != sha256.Size {
		return fmt.Errorf("%s has no SHA-256 digest of %s", p.base.Host, filepath.Base(file))
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	defer f.Close()
	digest := sha256.New()
	if err := p.get(ctx, client, address, p.limit, io.MultiWriter(f, digest)); err != nil {
		return err
	}
	if got := hex.EncodeToString(digest.Sum(nil)); !strings.EqualFold(got, want) {
		return fmt.Errorf("%s from %s has the digest %s, not the published %s", filepath.Base(file), p.base.Host, got, want)
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return f.Close()
}

// get writes what lies at an address. Its errors are for a person to read.
func (p *Published) get(ctx context.Context, client *http.Client, address string, limit int64, to io.Writer) error {
	host := p.base.Host
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := time.AfterFunc(p.idle, func() { cancel(fmt.Errorf("%s has sent nothing for %s", host, p.idle)) })
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
	n, err := io.Copy(to, io.LimitReader(&watched{from: response.Body, idle: idle, patience: p.idle}, limit+1))
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

func (p *Published) client() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = (&net.Dialer{Timeout: p.connect}).DialContext
	transport.TLSHandshakeTimeout = p.connect
	transport.TLSClientConfig = &tls.Config{RootCAs: p.roots}
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

// kubernetes names the version of a group that is published.
func kubernetes(group []components.Component) string {
	return "Kubernetes " + group[0].Kubernetes
}
