package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/fakeupstream"
)

// state is the part of an upstream's state that the page shows.
type state struct {
	Address  string
	Eligible bool
	Why      string
	Status   string
	Mode     string
	Failed   uint64 `json:"minute_failed_attempts"`
	Cached   int    `json:"cached_projects"`
	Assumed  int    `json:"assumed_projects"`
	Breaker  struct{ State string }
}

func states(t *testing.T, s sidecar) (list []state) {
	return get[struct{ Upstreams []state }](t, s, "/api/upstreams").Upstreams
}

// figures is the part of a window's figures that the page shows.
type figures struct{ Jobs, Complete, Failed, Partial, Absent uint64 }

type fleet struct {
	Fleet struct {
		Mode    string
		Windows []struct{ High, Low, All figures }
	}
}

func count(t *testing.T, text string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(strings.ReplaceAll(text, ",", ""), 10, 64)
	require.NoError(t, err)
	return n
}

// While jobs run and an upstream is killed, the page shows what the API returns.
func TestThePageShowsWhatTheAPIReturns(t *testing.T) {
	servers, addresses := upstreams(t, 3)
	s := serve(t, addresses, "reports: {interval: 500ms}\nbreaker: {failures: 1, open: 1h}\nretry: {attempts: 1, budget: 1}\n")
	stop := s.load(t)
	b := open(t, s, 1400, 1000, "light")

	hour := func() figures { return get[fleet](t, s, "/api/now").Fleet.Windows[2].High }
	shown := func() figures {
		row := b.table("#windows")[4] // the window of 60 minutes
		return figures{count(t, row["jobs"]), count(t, row["complete"]), count(t, row["failed"]), count(t, row["partial"]), count(t, row["absent"])}
	}
	for range 3 {
		before := hour()
		b.afterNext()
		now, after := shown(), hour()
		assert.LessOrEqual(t, before.Complete, now.Complete)
		assert.LessOrEqual(t, now.Complete, after.Complete)
		assert.Positive(t, now.Complete)
	}
	b.shot("running")

	// A job must be in flight at the upstream that is killed, so that one fails there: only
	// that opens a breaker for certain before failing reports make the upstream ineligible.
	list := states(t, s)
	victim := slices.IndexFunc(list, func(u state) bool { return u.Cached > 0 })
	require.NotEqual(t, -1, victim)
	dying := servers[slices.Index(addresses, list[victim].Address)]
	dying.SetFault(fakeupstream.Fault{Hang: true})
	seen := len(dying.Jobs())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, dying.Await(ctx, func(jobs []fakeupstream.Job) bool { return len(jobs) > seen }))
	dying.Kill()
	require.Eventually(t, func() bool {
		u := states(t, s)[victim]
		return !u.Eligible && u.Breaker.State == "open"
	}, patience, 100*time.Millisecond, "the breaker opens")
	b.afterNext()
	rows := b.table("#fleet")
	require.Len(t, rows, 3)
	for _, row := range rows {
		gone := row["upstream"] == dying.Address()
		assert.Equal(t, gone, !strings.HasPrefix(row["state"], "eligible"), row)
	}
	assert.Equal(t, dying.Address(), rows[0]["upstream"], "those that get no jobs come first")
	assert.Equal(t, "2 of 3", b.tile("upstreams eligible"))
	assert.Equal(t, "2 eligible, 1 not", eval[string](b, `document.querySelector("#shown").textContent`))
	assert.Less(t, eval[float64](b, `document.querySelector("#fleet tbody tr").getBoundingClientRect().bottom`), 800.0, "above the fold while something is wrong")
	events := get[struct {
		Events []struct{ Text, Cause string }
	}](t, s, "/api/events").Events
	require.Greater(t, len(events), 1, "upstreams joined, and one is gone")
	b.until(fmt.Sprintf(`document.querySelectorAll("#events li").length >= %d`, len(events)))
	timeline := eval[string](b, `document.querySelector("#events").textContent`)
	for _, e := range events {
		assert.Contains(t, timeline, e.Text)
		assert.Contains(t, timeline, e.Cause)
	}
	assert.Contains(t, timeline, dying.Address())
	b.shot("killed")
	require.Eventually(t, func() bool {
		return len(get[struct{ Points []any }](t, s, "/api/history").Points) > 2
	}, patience, 100*time.Millisecond)
	b.do(chromedp.Reload(), chromedp.WaitReady("body[data-at]"))
	assert.True(t, eval[bool](b, `(() => {
		const c = document.querySelector("#chart-jobs canvas"), pixels = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
		for (let i = 0; i < pixels.length; i += 4) if (pixels[i + 3] > 200 && pixels[i + 2] > pixels[i] + 100) return true;
		return false;
	})()`), "a page that is opened after warnings shows the line of jobs at once")

	stop()
	b.afterNext()
	assert.Equal(t, hour(), shown(), "once nothing happens any more, to the last job")
	var sum fleet
	var mode string
	for steady := false; !steady; { // modes also change with time
		sum, list = get[fleet](t, s, "/api/now"), states(t, s)
		b.afterNext()
		mode, rows = eval[string](b, `document.querySelector("#mode").textContent`), b.table("#fleet")
		steady = reflect.DeepEqual(sum, get[fleet](t, s, "/api/now")) && slices.Equal(list, states(t, s))
	}
	assert.Equal(t, sum.Fleet.Mode, mode)
	for _, u := range list {
		row := rows[slices.IndexFunc(rows, func(row map[string]string) bool { return row["upstream"] == u.Address })]
		assert.Equal(t, u.Status, row["state"])
		assert.Equal(t, u.Mode, row["mode"])
		assert.Equal(t, u.Failed, count(t, row["failed/min"]))
		cached := strconv.Itoa(u.Cached)
		if u.Assumed > 0 {
			cached += fmt.Sprintf(" +%d", u.Assumed)
		}
		assert.Equal(t, cached, row["cached"])
	}
	now := get[struct {
		Failures []struct{ Session, Outcome string }
	}](t, s, "/api/now")
	eval[bool](b, `(() => { const more = document.querySelector("#more"); if (!more.hidden) more.click(); return true; })()`)
	failures := b.table("#failures")
	require.NotEmpty(t, now.Failures, "jobs under way at the server that was killed")
	require.Len(t, failures, len(now.Failures))
	for i, f := range now.Failures {
		assert.Equal(t, f.Session, failures[i]["session"])
		assert.Contains(t, failures[i]["outcome"], strings.ReplaceAll(f.Outcome, "_", " "))
		assert.Equal(t, 1, strings.Count(failures[i]["what happened"], dying.Address()), failures[i]["what happened"])
	}
	b.do(chromedp.EmulateViewport(1200, 800))
	assert.Empty(t, eval[[]string](b, `[...document.querySelectorAll("#failures tbody tr")].filter((r) => r.clientHeight > 40).map((r) => r.textContent)`), "rows of more than one line")
	b.shot("failures-1200")
	assert.Contains(t, eval[string](b, `document.querySelector("#configuration").textContent`), "interval: 500ms")
	assert.Equal(t, 4, eval[int](b, `document.querySelectorAll("#charts canvas").length`))
	b.do(colors("dark"))
	b.next()
	b.shot("killed-dark")
}

// The number of upstreams needed, the open jobs and the projects at their limit are those of
// the API.
func TestCapacityAndLimits(t *testing.T) {
	_, addresses := upstreams(t, 2)
	s := serve(t, addresses, "reports: {interval: 200ms}\nprojects: {limit: 2}\n")
	ctx, cancel := context.WithCancel(context.Background())
	var jobs sync.WaitGroup
	defer func() { cancel(); jobs.Wait() }()
	var n atomic.Int64
	for range 4 {
		jobs.Go(func() {
			for ctx.Err() == nil {
				_, _ = s.work(ctx, n.Add(1), "flood")
			}
		})
	}
	b := open(t, s, 1400, 1000, "light")
	type advice struct {
		Needed int `json:"upstreams_needed"`
	}
	type moment struct{ Capacity *advice }
	require.Eventually(t, func() bool { return get[moment](t, s, "/api/now").Capacity != nil }, patience, 100*time.Millisecond)
	b.until(`document.querySelector("#advice").textContent.includes("would serve every job") && document.querySelector("#projects tbody").rows[0].cells.length > 1`)
	b.until(`document.querySelector("#open tbody").rows[0].cells.length > 1`)
	assert.Equal(t, "flood", b.table("#open")[0]["project"])
	assert.Contains(t, addresses, b.table("#open")[0]["upstream"])
	b.until(`document.querySelector("#projects tbody").rows[0].cells[1].textContent === "2 of 2"`)
	var needed advice
	var says string
	for steady := false; !steady; { // minutes end with time
		needed = *get[moment](t, s, "/api/now").Capacity
		b.afterNext()
		says = eval[string](b, `document.querySelector("#advice").textContent`)
		steady = needed == *get[moment](t, s, "/api/now").Capacity
	}
	assert.Contains(t, says, fmt.Sprintf(" %d would serve every job", needed.Needed))
	b.shot("capacity")
}

func TestExplainForm(t *testing.T) {
	servers, addresses := upstreams(t, 3)
	require.NoError(t, servers[2].SetCached("12345"))
	s := serve(t, addresses, "reports: {interval: 200ms}\n") // a suspect would not be listed
	require.Eventually(t, func() bool { return states(t, s)[2].Cached == 1 || states(t, s)[0].Cached+states(t, s)[1].Cached == 1 }, patience, 50*time.Millisecond)
	b := open(t, s, 1400, 1000, "light")
	b.do(chromedp.SendKeys("#ask input", "12345"), chromedp.SendKeys("#ask select", "high"), chromedp.Click("#ask button"), chromedp.WaitReady("#answer .bars"))
	pick := get[struct {
		Upstream string
		Ranking  []struct {
			Address, Cache string
			Cost           struct{ Total, Wait, Fetch, Placement, Stop float64 }
		}
	}](t, s, "/api/pick?project=12345&priority=high")
	assert.Equal(t, servers[2].Address(), pick.Upstream)
	assert.Equal(t, pick.Upstream+" ← here", eval[string](b, `document.querySelector("#answer .picked").textContent`))
	assert.Equal(t, 3, eval[int](b, `document.querySelectorAll("#answer .bar").length`))
	top := 0.0
	for _, r := range pick.Ranking {
		top = max(top, r.Cost.Total)
	}
	last := pick.Ranking[2]
	assert.Positive(t, last.Cost.Fetch, "its data is not there")
	width := eval[float64](b, `parseFloat([...document.querySelectorAll("#answer .bar")][2].querySelector(".fetch").style.width)`)
	assert.InDelta(t, 100*last.Cost.Fetch/top, width, 1, "the bar is as long as the cost")
	assert.Contains(t, eval[string](b, `document.querySelector("#answer").textContent`), "not cached")
	b.shot("pick")
}

// Upstreams that respond to every job with 500 are not shown as a success: the mode, the tiles and
// the upstreams show failing jobs.
func TestFailingUpstreams(t *testing.T) {
	servers, addresses := upstreams(t, 2)
	for _, u := range servers {
		u.SetFault(fakeupstream.Fault{Status: 500, Body: "no"})
	}
	s := serve(t, addresses, "")
	b := open(t, s, 1280, 800, "light")
	b.next() // by now the sidecar polls its upstreams
	for i := range 12 {
		status, err := s.submit(t.Context(), fmt.Sprint(i), "p")
		require.NoError(t, err)
		require.Equal(t, 500, status)
	}
	b.until(`document.querySelector("#mode").textContent === "jobs fail"`)
	assert.Equal(t, "0.0 %", b.tile("complete"))
	b.until(`document.querySelector("#sentence").textContent.includes("panic: every breaker is open")`)
	assert.Contains(t, eval[string](b, `document.querySelector("#fleet").textContent`), "breaker opened: 5 ")
	assert.Equal(t, "12", b.tile("failed"))
	assert.Equal(t, "0", b.tile("lost"))
	failed := uint64(0)
	for _, row := range b.table("#fleet") {
		failed += count(t, row["failed/min"])
	}
	assert.Equal(t, uint64(12), failed)
	assert.Len(t, b.table("#failures"), 5)
	b.do(chromedp.Click("#more"))
	assert.Len(t, b.table("#failures"), 12)
	b.shot("failing")
}

// A refused configuration is stated beside the mode, which is then not green.
func TestARefusedConfiguration(t *testing.T) {
	_, addresses := upstreams(t, 1)
	s := serve(t, addresses, "")
	require.NoError(t, os.WriteFile(s.file, []byte("logs: none\n"), 0o600))
	require.Equal(t, http.StatusUnprocessableEntity, s.change(t, "/-/reload"))
	b := open(t, s, 1280, 800, "light")
	b.until(`document.querySelector("#sentence").textContent.includes("Configuration refused since ")`)
	assert.Contains(t, eval[string](b, `document.querySelector("#sentence").textContent`), "logs: unknown key; did you mean log?")
	assert.Equal(t, "badge warn", eval[string](b, `document.querySelector("#mode").className`))
	b.shot("refused")
}

// The page distinguishes a lost connection from a fault of its script. It recovers from both.
func TestALostConnectionAndAFault(t *testing.T) {
	_, addresses := upstreams(t, 1)
	b := open(t, serve(t, addresses, ""), 1280, 800, "light")
	link := func(text string) {
		b.until(`document.querySelector("#link").textContent.includes("` + text + `")`)
	}
	eval[bool](b, `(window.before = window.fetch, window.fetch = () => Promise.reject(new TypeError("refused")), true)`)
	link("no connection since ")
	eval[bool](b, `(window.fetch = () => Promise.resolve(new Response("{}")), true)`)
	link("this page has a fault: ")
	eval[bool](b, `(window.fetch = window.before, true)`)
	link("live")
	assert.NotEmpty(t, b.problems, "a fault is logged in the console")
	b.problems = nil
}

// Text from submitters is shown as text, not as markup.
func TestTextIsNotMarkup(t *testing.T) {
	servers, addresses := upstreams(t, 1)
	servers[0].SetFault(fakeupstream.Fault{Status: 500, Body: "no"})
	s := serve(t, addresses, "")
	const name = `<img src=x onerror="document.title='broken in'">`
	status, err := s.submit(context.Background(), name, name)
	require.NoError(t, err)
	require.Equal(t, 500, status)
	b := open(t, s, 1400, 1000, "light")
	rows := b.table("#failures")
	require.Len(t, rows, 1)
	assert.Equal(t, name, rows[0]["session"])
	assert.Equal(t, name, rows[0]["project"])
	assert.Equal(t, 0, eval[int](b, `document.querySelectorAll("img").length`))
	assert.NotEqual(t, "broken in", eval[string](b, `document.title`))
}

func TestKeyboard(t *testing.T) {
	_, addresses := upstreams(t, 3)
	s := serve(t, addresses, "")
	b := open(t, s, 1400, 1000, "light")
	focus := func() string {
		return eval[string](b, `document.activeElement.id || document.activeElement.textContent`)
	}
	b.do(chromedp.KeyEvent(kb.Tab))
	assert.Equal(t, "Skip to the upstreams", focus())
	b.do(chromedp.KeyEvent("\r"))
	assert.Equal(t, "upstreams", focus())
	b.do(chromedp.KeyEvent("/"))
	assert.Equal(t, "find", focus())
	eval[string](b, `document.querySelector("#find").value = ""`) // the driver types an expression that the page handles
	_, port, _ := strings.Cut(addresses[1], ":")
	b.do(chromedp.KeyEvent(port))
	require.Len(t, b.table("#fleet"), 1)
	assert.Equal(t, "1 of 3", eval[string](b, `document.querySelector("#shown").textContent`))
	b.do(chromedp.KeyEvent(kb.Escape))
	assert.Len(t, b.table("#fleet"), 3)
	b.do(chromedp.KeyEvent(kb.Tab)) // to the head of the first column
	b.do(chromedp.KeyEvent("\r"))
	before := b.table("#fleet")
	b.do(chromedp.KeyEvent("\r"))
	after := b.table("#fleet")
	assert.Equal(t, before[0]["upstream"], after[2]["upstream"], "the other way round")
	assert.Equal(t, "descending", eval[string](b, `document.activeElement.closest("th").ariaSort`))
	for range 40 { // through all focusable elements; each must show its focus
		b.do(chromedp.KeyEvent(kb.Tab))
		if outline := eval[string](b, `document.activeElement === document.body ? "3px" : getComputedStyle(document.activeElement).outlineWidth`); outline != "3px" {
			assert.Fail(t, "no outline", "%s at %s", outline, focus())
		}
	}
}

func TestDrainByHand(t *testing.T) {
	_, addresses := upstreams(t, 2)
	s := serve(t, addresses, "")
	b := open(t, s, 1400, 1000, "light")
	first := b.table("#fleet")[0]["upstream"]
	eval[bool](b, `(window.confirm = () => true)()`)
	drained := func() bool {
		for _, u := range states(t, s) {
			if u.Address == first {
				return u.Why == "drained by hand"
			}
		}
		return false
	}
	b.do(chromedp.Click("#fleet button.act"))
	require.Eventually(t, drained, patience, 50*time.Millisecond)
	b.until(`document.querySelector("#fleet button.act").textContent === "undrain"`)
	assert.Equal(t, "drained by hand", b.table("#fleet")[0]["state"])
	b.do(chromedp.Click("#fleet button.act"))
	require.Eventually(t, func() bool { return !drained() }, patience, 50*time.Millisecond)

	// An open page shows the changes of a reload.
	text, err := os.ReadFile(s.file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(s.file, []byte(strings.Replace(string(text), "admin_write: true", "admin_write: false", 1)), 0o600))
	require.Equal(t, http.StatusOK, s.change(t, "/-/reload"))
	b.until(`document.querySelector("#configuration").textContent.includes("admin_write: false")`)
	b.until(`!document.querySelector("#fleet button.act")`)
	assert.NotContains(t, b.table("#fleet")[0], "by hand")
}

// overloaded returns the upstreams of the page with figures as wide as those of a large server.
func overloaded(t *testing.T, s sidecar) []map[string]any {
	list := get[struct{ Upstreams []map[string]any }](t, s, "/api/now").Upstreams
	for _, u := range list {
		maps.Copy(u, map[string]any{
			"status": "breaker opened: 5 responses of 500 in a row", "mode": "attempts fail", "report_fresh": true,
			"jobs": 99999, "in_flight": 99999, "stalled": 999999, "wait_seconds": 3599, "minute_attempts": 99999, "minute_failed_attempts": 999999,
			"latency_seconds": 0.9985, "rate": 9999, "cores": 128, "cores_busy": 127.5, "cached_projects": 99999, "assumed_projects": 999, "report_age_seconds": 3599,
			"minute_data": map[string]any{"jobs": 1000, "found": 999},
		})
	}
	return list
}

// Nothing is wider than the screen, on small screens and in the dark scheme.
func TestNarrowAndDark(t *testing.T) {
	servers, addresses := upstreams(t, 3)
	servers[0].SetFault(fakeupstream.Fault{Status: 500, Body: "no"})
	servers[1].Kill()
	servers[2].SetFault(fakeupstream.Fault{Status: 500, Body: "no"})
	s := serve(t, addresses, "")
	for range 6 {
		status, err := s.submit(t.Context(), strings.Repeat("s", 120), strings.Repeat("p", 120))
		require.NoError(t, err)
		require.Equal(t, 500, status)
	}
	servers[2].SetFault(fakeupstream.Fault{})
	defer s.load(t)()
	b := open(t, s, 1280, 800, "dark")
	b.until(`document.querySelector("#failures tbody").rows.length === 5`)
	eval[any](b, `import("./fleet.js").then((module) => { window.fleet = module; })`)
	b.until(`Boolean(window.fleet)`)
	for _, width := range []int64{1280, 800, 390} {
		b.do(chromedp.EmulateViewport(width, 800))
		b.next()
		large, err := json.Marshal(overloaded(t, s))
		require.NoError(t, err)
		for name, rows := range map[string]string{"now": "", "overloaded": fmt.Sprintf("fleet.setUpstreams(%s);", large)} {
			wide := eval[[]string](b, fmt.Sprintf(`(() => { %s return [...document.querySelectorAll("main *")]
				.filter((e) => e.getBoundingClientRect().right > %d || e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX !== "visible")
				.map((e) => e.tagName + " " + e.id + " " + e.textContent.slice(0, 40)); })()`, rows, width))
			assert.Empty(t, wide, "%s: wider than %d", name, width)
		}
		assert.LessOrEqual(t, eval[int64](b, `document.documentElement.scrollWidth`), width, "nothing hangs over the edge")
		assert.Equal(t, []int{1, 1, 0}, eval[[]int](b, `(() => {
			const boxes = [...document.querySelectorAll("#tiles div")].map((e) => e.getBoundingClientRect());
			const kinds = (of) => new Set(boxes.map((r) => Math.round(of(r)))).size;
			return [kinds((r) => r.width), kinds((r) => r.height), boxes.length % kinds((r) => r.left)];
		})()`), "tiles of one size in full rows at %d", width)
		b.shot(fmt.Sprintf("dark-%d", width))
	}
	assert.Equal(t, "grid", eval[string](b, `getComputedStyle(document.querySelector("#fleet tbody tr")).display`), "a card for each upstream")
	dark := eval[string](b, `getComputedStyle(document.body).backgroundColor`)
	light := open(t, s, 390, 844, "light")
	assert.NotEqual(t, dark, eval[string](light, `getComputedStyle(document.body).backgroundColor`))
	light.shot("light-390")
}

// A job moves to its upstream's column. A job that fetches its data looks different from one that finds it cached, and
// afterwards the column lists the project.
func TestThePictureOfTheFleet(t *testing.T) {
	_, addresses := upstreams(t, 3)
	s := serve(t, addresses, "selection: {shadow: least-in-flight}\nreports: {interval: 200ms}\n")
	require.Eventually(t, func() bool { return len(states(t, s)) == 3 }, patience, 50*time.Millisecond)
	b := open(t, s, 1280, 800, "light")
	eval[bool](b, `(() => {
		window.flew = [];
		new MutationObserver((list) => list.forEach((m) => m.addedNodes.forEach((n) => n.classList?.contains("job") && window.flew.push(n.className + " " + n.textContent))))
			.observe(document.querySelector("#stage"), { childList: true });
		return true;
	})()`)
	_, err := s.submit(t.Context(), "first", "4711")
	require.NoError(t, err)
	b.until(`window.flew.includes("job fetched 4711")`)
	b.until(`document.querySelector("#columns li.fetched")?.textContent === "4711"`)
	b.shot("fetched")
	_, err = s.submit(t.Context(), "second", "4711")
	require.NoError(t, err)
	b.until(`window.flew.includes("job found 4711")`)
	type holding struct {
		Project   string
		Upstreams []string
	}
	held := get[struct{ Holdings []holding }](t, s, "/api/now").Holdings
	require.Len(t, held, 1)
	assert.Equal(t, held[0].Upstreams, eval[[]string](b, `[...document.querySelectorAll("#columns .column")].filter((c) => c.querySelector("li:not(.more)")?.textContent === "4711").map((c) => c.dataset.address)`))
	assert.Contains(t, eval[string](b, `document.querySelector("#story").textContent`), "Project 4711: ")
	b.until(`/least-in-flight: \d/.test(document.querySelector("#tiles").textContent)`)
	b.shot("picture")
}

// With 300 upstreams, an event changes only the affected elements.
func TestManyUpstreams(t *testing.T) {
	var addresses []string
	for i := range 300 {
		addresses = append(addresses, fmt.Sprintf("127.0.0.1:%d", 20000+i))
	}
	s := serve(t, addresses, "reports: {interval: 1h}\n")
	b := open(t, s, 1400, 1000, "light")
	require.Equal(t, http.StatusOK, s.change(t, "/api/upstreams/"+addresses[7]+"/drain"))
	b.until(`/^\d+ eligible, [1-9]\d* not$/.test(document.querySelector("#shown").textContent)`)
	assert.LessOrEqual(t, len(b.table("#fleet")), 10, "the others are folded")
	assert.Equal(t, 16, eval[int](b, `document.querySelectorAll("#columns .column").length`))
	b.do(chromedp.Click("#fold"))
	assert.Len(t, b.table("#fleet"), 300)
	eval[bool](b, `(() => {
		window.touched = 0;
		new MutationObserver((list) => { window.touched += list.length; }).observe(document.querySelector("#fleet"), { subtree: true, childList: true, characterData: true, attributes: true });
		return true;
	})()`)
	quiet := false
	for range 20 { // the first polls fail, which changes each upstream once
		eval[int](b, `window.touched = 0`)
		b.next()
		if quiet = eval[int](b, `window.touched`) < 50; quiet {
			break
		}
	}
	assert.True(t, quiet, "rows are written although nothing changed at the upstreams")
	took := eval[float64](b, `(() => { const from = performance.now(); const find = document.querySelector("#find"); find.value = ":202"; find.dispatchEvent(new Event("input")); return performance.now() - from; })()`)
	t.Logf("looking through 300 upstreams took %.1f ms", took)
	assert.Equal(t, "100 of 300", eval[string](b, `document.querySelector("#shown").textContent`))
	b.shot("many")
}
