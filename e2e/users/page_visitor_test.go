//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package users

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"k8s.io/apimachinery/pkg/util/wait"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// patience is how long a person waits for something to be seen.
const patience = time.Minute

// visitor is a person with a browser tab, and a page that kubectl lockstep dashboard serves to him.
type visitor struct {
	t         *testing.T
	namespace string
	// address is where the page is, with its token, and origin the address without.
	address, origin string
	tab             context.Context
}

// opensPage opens the page in a namespace of his own.
func opensPage(t *testing.T) *visitor {
	t.Helper()
	return opensPageWith(t, cluster.Namespace(t), cluster.Kubeconfig)
}

// opensPageWith opens the page with a kubeconfig.
func opensPageWith(t *testing.T, namespace, kubeconfig string) *visitor {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "kubectl-lockstep", "dashboard", "-n", namespace)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("it prints no address: %v", err)
	}
	v := &visitor{t: t, namespace: namespace, address: strings.TrimSpace(address)}
	v.origin, _, _ = strings.Cut(v.address, "/?")
	v.opensTab()
	v.does(chromedp.Navigate(v.address))
	return v
}

// startBrowser starts the browser in which each test opens tabs of its own. TestMain closes it.
var startBrowser = sync.OnceValues(func() (browser context.Context, err error) {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.IgnoreCertErrors, chromedp.WindowSize(1280, 900))
	if path := os.Getenv("BROWSER"); path != "" {
		options = append(options, chromedp.ExecPath(path))
	}
	allocator, closeAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	browser, closeTabs := chromedp.NewContext(allocator)
	closeBrowser = func() {
		closeTabs()
		closeAllocator() // It waits for the browser, and removes its files.
	}
	return browser, chromedp.Do(browser, chromedp.Navigate("about:blank"))
})

// closeBrowser ends the browser, if there is one.
var closeBrowser = func() {}

// opensTab opens a tab of the browser.
func (v *visitor) opensTab() {
	v.t.Helper()
	browser, err := startBrowser()
	if err != nil {
		v.t.Fatalf("starting a browser: %v", err)
	}
	var closes context.CancelFunc
	v.tab, closes = chromedp.NewContext(browser)
	v.t.Cleanup(closes)
	// The tab lives as long as the context of the first call.
	if err := chromedp.Do(v.tab, chromedp.Navigate("about:blank")); err != nil {
		v.t.Fatal(err)
	}
}

// does something in the browser, or the test fails.
func (v *visitor) does(steps ...chromedp.Action[chromedp.Void]) {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.tab, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		v.t.Fatalf("in the browser: %v", err)
	}
}

// opens a page.
func (v *visitor) opens(path string) {
	v.t.Helper()
	v.does(chromedp.Navigate(v.origin+path), chromedp.WaitReady(chromedp.CSS("main")))
}

// sees waits until the page shows all of the texts, in whatever case.
func (v *visitor) sees(texts ...string) {
	v.t.Helper()
	missing, shown := "", ""
	var trouble error
	err := wait.PollUntilContextTimeout(v.t.Context(), 50*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		shown, trouble = tries[string](v, `(document.querySelector("main") ?? document.body)?.innerText ?? ""`)
		missing = ""
		for _, text := range texts {
			if !strings.Contains(strings.ToLower(shown), strings.ToLower(text)) {
				missing = text
			}
		}
		return trouble == nil && missing == "", nil
	})
	if err != nil {
		v.t.Fatalf("%q is not to be seen (%v) in\n%s", missing, trouble, shown)
	}
}

// finds waits until something on the page is chosen by a selector.
func (v *visitor) finds(selector string) {
	v.t.Helper()
	v.until(selector, "true")
}

// clicks on the first that is chosen by a selector.
func (v *visitor) clicks(selector string) {
	v.t.Helper()
	v.until(selector, "(found.click(), true)")
}

// until waits until something is found, and a script says true of it.
func (v *visitor) until(selector, script string) {
	v.t.Helper()
	var trouble error
	err := wait.PollUntilContextTimeout(v.t.Context(), 50*time.Millisecond, patience, true, func(context.Context) (is bool, _ error) {
		is, trouble = tries[bool](v, fmt.Sprintf(`(() => { const found = document.querySelector(%q); return !!found && %s; })()`, selector, script))
		return trouble == nil && is, nil
	})
	if err != nil {
		v.t.Fatalf("%s is not on the page (%v)", selector, trouble)
	}
}

// evaluates returns what a script says.
func evaluates[T any](v *visitor, script string) T {
	v.t.Helper()
	value, err := tries[T](v, script)
	if err != nil {
		v.t.Fatalf("in the browser: %v", err)
	}
	return value
}

// tries returns what a script says, or why it can't: between two pages there is nothing that could run it.
func tries[T any](v *visitor, script string) (T, error) {
	ctx, cancel := context.WithTimeout(v.tab, patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](script))
}

// creates a Framework.
func (v *visitor) creates(b *jobs.FrameworkBuilder) *frameworkv1.Framework {
	v.t.Helper()
	return cluster.CreateFramework(v.t, v.namespace, b.Obj())
}

// asks sends a request without a browser.
func asks(t *testing.T, method, address string, change func(*http.Request)) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}
