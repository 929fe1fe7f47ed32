package browser

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tab is a page in its own Chromium process.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	requests []string
	problems []string // errors in the browser's console
}

// open opens a sidecar's page, and waits until it shows data.
func open(t *testing.T, s sidecar, width, height int64, scheme string) *tab {
	t.Helper()
	b := visit(t, "http://"+s.admin+"/", "body[data-at]", width, height, scheme)
	t.Cleanup(func() { assert.Greater(t, len(b.requests), 5) })
	return b
}

// visit opens a page, and waits for an element. When the test ends, all requests must have been for URLs below the
// page's, and the console must be empty.
func visit(t *testing.T, page, ready string, width, height int64, scheme string) *tab {
	t.Helper()
	path, err := exec.LookPath("chromium")
	require.NoError(t, err, "install Debian's package chromium: ./tools/need chromium")
	const limit = 4 * time.Minute // of the test, including the start of the browser
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath(path), chromedp.Headless, chromedp.WSURLReadTimeout(limit)}
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses root otherwise
	}
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, limit)
	t.Cleanup(cancel)
	b := &tab{t: t}
	b.ctx, cancel = chromedp.NewContext(ctx, chromedp.WithListener(b.hear))
	t.Cleanup(cancel)
	b.do(command(network.Enable, network.EnableParams{}), command(runtime.Enable, cdp.Empty{}), command(log.Enable, cdp.Empty{}),
		colors(scheme), chromedp.EmulateViewport(width, height), chromedp.Navigate(page), chromedp.WaitReady(ready))
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, url := range b.requests {
			assert.True(t, strings.HasPrefix(url, page), "requests another host: %s", url)
		}
		assert.Empty(t, b.problems, "the console")
	})
	return b
}

// colors sets the browser's preferred color scheme, light or dark.
func colors(scheme string) chromedp.Action[chromedp.Void] {
	return command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
}

// hear records requests, and errors of the page.
func (b *tab) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	case *runtime.EventExceptionThrown:
		b.problems = append(b.problems, fmt.Sprint(e.ExceptionDetails))
	case *runtime.EventConsoleAPICalled:
		b.problems = append(b.problems, fmt.Sprint(e.Type, e.Args))
	case *log.EventEntryAdded: // including violations of the Content-Security-Policy
		b.problems = append(b.problems, fmt.Sprint(e.Entry.Level, " ", e.Entry.Text, " ", e.Entry.URL))
	}
}

// command is a command of the browser's protocol.
func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, actions...))
}

// eval evaluates an expression in the page.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	require.NoError(b.t, err, expression)
	return value
}

// table returns the text of a table's rows, by column titles. A cell that spans the table is
// omitted.
func (b *tab) table(selector string) []map[string]string {
	b.t.Helper()
	return eval[[]map[string]string](b, fmt.Sprintf(`(() => {
		const t = document.querySelector(%q);
		const heads = [...t.tHead.rows[0].cells].map((c) => c.textContent);
		return [...t.tBodies[0].rows].filter((r) => r.cells.length > 1)
			.map((r) => Object.fromEntries([...r.cells].map((c, i) => [heads[i], c.textContent])));
	})()`, selector))
}

// next waits until the page shows newer data.
func (b *tab) next() {
	b.t.Helper()
	at := eval[string](b, `document.body.dataset.at`)
	b.until(fmt.Sprintf(`document.body.dataset.at !== %q`, at))
}

// afterNext waits for the result of a request that the page sends from now on. The next one that it
// shows may have been requested earlier.
func (b *tab) afterNext() {
	b.t.Helper()
	b.next()
	b.next()
}

// tile returns the value of a tile.
func (b *tab) tile(title string) string {
	b.t.Helper()
	return eval[string](b, fmt.Sprintf(`[...document.querySelectorAll("#tiles div")].find((d) => d.firstChild.textContent === %q).children[1].textContent`, title))
}

// until waits until an expression is true in the page.
func (b *tab) until(expression string) {
	b.t.Helper()
	_, err := chromedp.Run(b.ctx, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(0)))
	require.NoError(b.t, err, expression)
}

// shot writes a screenshot into the folder $SHOTS, for people to look at.
func (b *tab) shot(name string) {
	b.t.Helper()
	folder := os.Getenv("SHOTS")
	if folder == "" {
		return
	}
	image, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(folder+"/"+name+".png", image, 0o600))
}

// The page of a scenario needs no other file, and each figure has content.
func TestFiguresOfAScenario(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	out, err := exec.Command("go", "-C", "../../lab", "run", "./cmd/tracelab", "simulate", "../testdata/scenarios/small.yaml", "--html", page).CombinedOutput()
	require.NoError(t, err, "%s", out)
	b := visit(t, (&url.URL{Scheme: "file", Path: page}).String(), "body[data-drawn]", 1300, 1000, "light")
	b.shot("figures")
	assert.Equal(t, "30", eval[string](b, `document.body.dataset.drawn`), "10 of all runs, and 4 of each of 5")
	assert.Empty(t, eval[[]string](b, `[...document.querySelectorAll("figure")].filter((f) => {
		const c = f.querySelector("canvas"), pixels = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
		let colored = 0;
		for (let i = 0; i < pixels.length; i += 4) {
			const rgb = [pixels[i], pixels[i + 1], pixels[i + 2]];
			if (pixels[i + 3] > 200 && Math.max(...rgb) - Math.min(...rgb) > 60) colored++;
		}
		return colored < 50;
	}).map((f) => f.querySelector("figcaption").textContent)`), "these are empty")
	b.do(chromedp.EmulateViewport(390, 844), chromedp.Reload(), chromedp.WaitReady("body[data-drawn]"))
	assert.LessOrEqual(t, eval[int](b, `document.documentElement.scrollWidth`), 390, "a narrow screen")
}
