package fakeupstream_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.org/pilotfish/pkg/fakeupstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// submitter returns a client with its own connections, which are closed at the end of the test.
func submitter(t *testing.T) *http.Client {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func send(t *testing.T, c *http.Client, method, url, body string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	return c.Do(r)
}

func get(t *testing.T, url string) string {
	t.Helper()
	response, err := send(t, submitter(t), "GET", url, "")
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(body)
}

// head is the head of a response; zero if none was received.
type head struct {
	status int
	header http.Header
	length int64
}

// job sends the thesis's job and reads the response.
func job(t *testing.T, up *fakeupstream.Upstream) (h head, body string, err error) {
	response, err := send(t, submitter(t), "POST", up.URL+"/v1/jobs", fakeupstream.ExampleJob())
	if err != nil {
		return head{}, "", err
	}
	defer response.Body.Close()
	all, err := io.ReadAll(response.Body)
	return head{response.StatusCode, response.Header, response.ContentLength}, string(all), err
}

// A prefetch is recorded like a job, and loads the project's data.
func TestRecordsPrefetches(t *testing.T) {
	up := fakeupstream.New(t, fakeupstream.Options{})
	response, err := send(t, submitter(t), "POST", up.URL+"/v1/prefetch", `{"project_id": 12345}`)
	require.NoError(t, err)
	response.Body.Close()
	assert.Equal(t, http.StatusNoContent, response.StatusCode)
	require.Len(t, up.Jobs(), 1)
	assert.Equal(t, []string{"/v1/prefetch", `{"project_id": 12345}`}, []string{up.Jobs()[0].Path, string(up.Jobs()[0].Body)})
	assert.Contains(t, get(t, up.URL+"/v1/cache/projects"), `"12345"`)
}

func TestRecordsJobs(t *testing.T) {
	up := fakeupstream.New(t, fakeupstream.Options{})
	r, err := http.NewRequestWithContext(t.Context(), "POST", up.URL+"/v1/jobs", strings.NewReader(fakeupstream.ExampleJob()))
	require.NoError(t, err)
	r.Header["X-Twice"] = []string{"a", "b"}
	response, err := submitter(t).Do(r)
	require.NoError(t, err)
	response.Body.Close()
	get(t, up.URL+"/metrics")
	get(t, up.URL+"/healthz")
	get(t, up.URL+"/anything")

	require.NoError(t, up.Await(t.Context(), func(jobs []fakeupstream.Job) bool { return len(jobs) == 2 && jobs[0].Ended }))
	jobs := up.Jobs()
	assert.Equal(t, []byte(fakeupstream.ExampleJob()), jobs[0].Body)
	assert.Equal(t, []string{"a", "b"}, jobs[0].Header["X-Twice"])
	assert.Equal(t, "/v1/jobs", jobs[0].Path)
	assert.Equal(t, "/anything", jobs[1].Path)
	up.Forget()
	assert.Empty(t, up.Jobs())
}

// A fault replaces the status, header and body of the next responses, as many as its Times. A nil value removes a field from
// the header.
func TestStatusAndHeader(t *testing.T) {
	up := fakeupstream.New(t, fakeupstream.Options{})
	up.SetFault(fakeupstream.Fault{
		Status: 503, Body: "busy", Times: 2,
		Header: http.Header{"Retry-After": {"7"}, "Set-Cookie": {"a=1", "b=2"}},
	})
	for range 2 {
		got, body, err := job(t, up)
		require.NoError(t, err)
		assert.Equal(t, 503, got.status)
		assert.Equal(t, "busy", body)
		assert.Equal(t, "7", got.header.Get("Retry-After"))
		assert.Equal(t, []string{"a=1", "b=2"}, got.header["Set-Cookie"])
		assert.EqualValues(t, 4, got.length)
	}
	got, _, err := job(t, up)
	require.NoError(t, err)
	assert.Equal(t, 200, got.status, "the fault applied to two responses only")
	assert.NotEmpty(t, got.header.Get("X-Load"))

	up.SetFault(fakeupstream.Fault{Header: http.Header{"X-Load": nil}})
	got, _, err = job(t, up)
	require.NoError(t, err)
	assert.Equal(t, 200, got.status)
	assert.Empty(t, got.header.Get("X-Load"))
}

// With a handler of the test's own, faults apply to its responses, and its jobs are recorded without their bodies; the
// reports and /healthz remain. With a handler for the metrics only, jobs are executed. A draining server does not start jobs.
func TestHandler(t *testing.T) {
	copied := make(chan error, 2)
	up := fakeupstream.New(t, fakeupstream.Options{
		Listen: "127.0.0.2:0", Cached: []string{"7"},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, err := io.Copy(w, r.Body)
			copied <- err
		}),
	})
	assert.True(t, strings.HasPrefix(up.Address(), "127.0.0.2:"))
	_, body, err := job(t, up)
	require.NoError(t, err)
	require.NoError(t, <-copied)
	assert.Equal(t, fakeupstream.ExampleJob(), body)
	up.SetFault(fakeupstream.Fault{Cut: fakeupstream.CutFIN, CutAfter: 10})
	_, body, err = job(t, up)
	require.Error(t, err)
	require.ErrorIs(t, <-copied, fakeupstream.ErrCut, "the handler learns that its response was cut")
	assert.Equal(t, fakeupstream.ExampleJob()[:10], body)
	assert.Len(t, up.Jobs(), 2)
	assert.Nil(t, up.Jobs()[0].Body, "the handler reads the body, so it is not recorded")
	assert.Contains(t, get(t, up.URL+"/v1/cache/projects"), `"id":"7"`)
	assert.Equal(t, "ok\n", get(t, up.URL+"/healthz"))
	assert.Contains(t, get(t, up.URL+"/metrics"), "ruleserver_cores 4")

	metrics := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "mine 1\n") }
	up = fakeupstream.New(t, fakeupstream.Options{Cost: "fetch=1ms", Metrics: http.HandlerFunc(metrics)})
	assert.Equal(t, "mine 1\n", get(t, up.URL+"/metrics"))
	got, body, err := job(t, up)
	require.NoError(t, err)
	assert.Contains(t, body, "T-shirt", "jobs get the result of the rules")
	assert.Contains(t, got.header.Get("X-Load"), "fetch=")
	up.Drain()
	assert.Equal(t, "draining\n", get(t, up.URL+"/healthz"))
	got, _, err = job(t, up)
	require.NoError(t, err)
	assert.Equal(t, "no", got.header.Get("Job-Started"))
}

// SetCached and SetLoad determine the load reports: the list of cached projects, the metrics and X-Load. A fault of reports
// does not apply to jobs.
func TestReports(t *testing.T) {
	up := fakeupstream.New(t, fakeupstream.Options{Cached: []string{"7", "shop"}, Cores: 2})
	listing := get(t, up.URL+"/v1/cache/projects")
	assert.Regexp(t, `^{"projects":\[{"id":"7",.*},{"id":"shop",.*}\]}`, listing)
	require.NoError(t, up.SetCached("12345"))
	assert.Regexp(t, `^{"projects":\[{"id":"12345",[^{]*}\]}`, get(t, up.URL+"/v1/cache/projects"))
	got, _, err := job(t, up)
	require.NoError(t, err)
	assert.Contains(t, got.header.Get("X-Load"), "cached=1")
	require.EqualError(t, up.SetCached("../x"), `unknown project "../x"`)
	require.NoError(t, up.SetCached())
	assert.NotContains(t, get(t, up.URL+"/v1/cache/projects"), "12345")

	up.SetLoad(50, 40)
	metrics := get(t, up.URL+"/metrics")
	assert.Contains(t, metrics, "ruleserver_stalled_joblets{priority=\"low\"} 40\n")
	assert.Contains(t, metrics, "ruleserver_jobs_running{priority=\"low\"} 50\n")
	assert.Contains(t, metrics, "ruleserver_cores 2\n")
	got, _, err = job(t, up)
	require.NoError(t, err)
	assert.Contains(t, got.header.Get("X-Load"), "running=50, stalled=40, stalled_high=0")
	up.SetLoad(9, -1)
	assert.Contains(t, get(t, up.URL+"/metrics"), "ruleserver_stalled_joblets{priority=\"low\"} 0\n")

	up.SetReportFault(fakeupstream.Fault{Status: 500, Body: "garbage"})
	assert.Equal(t, "garbage", get(t, up.URL+"/metrics"))
	assert.Equal(t, "garbage", get(t, up.URL+"/v1/cache/projects"))
	_, body, err := job(t, up)
	require.NoError(t, err)
	assert.NotEqual(t, "garbage", body)
}

// TestSwitchesWhileRunning: all settings can be changed while jobs run.
func TestSwitchesWhileRunning(t *testing.T) {
	up := fakeupstream.New(t, fakeupstream.Options{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 25 {
				_, _, _ = job(t, up) // complete or truncated
			}
		})
	}
	for i := range 100 {
		up.SetFault([]fakeupstream.Fault{
			{}, {Hang: true}, {Status: 500}, {Cut: fakeupstream.CutRST, CutAfter: 10}, {Stall: true},
		}[i%5])
		up.SetLoad(i, i)
		require.NoError(t, up.SetCached(fmt.Sprint(i)))
		get(t, up.URL+"/metrics")
	}
	up.SetFault(fakeupstream.Fault{})
	wg.Wait()
	require.NoError(t, up.Await(t.Context(), func(jobs []fakeupstream.Job) bool {
		return len(jobs) == 100 && !slices.ContainsFunc(jobs, func(j fakeupstream.Job) bool { return !j.Ended })
	}))
}
