package fakeupstream_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.org/pilotfish/pkg/fakeupstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// submitter has connections of its own, which end with the test.
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

// head is what comes before an answer's body; zero when nothing came.
type head struct {
	status int
	header http.Header
	length int64
}

// job sends the thesis's job and reads the whole answer.
func job(t *testing.T, up *fakeupstream.Upstream) (h head, body string, err error) {
	response, err := send(t, submitter(t), "POST", up.URL+"/v1/jobs", fakeupstream.ExampleJob())
	if err != nil {
		return head{}, "", err
	}
	defer response.Body.Close()
	all, err := io.ReadAll(response.Body)
	return head{response.StatusCode, response.Header, response.ContentLength}, string(all), err
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
	assert.Equal(t, up.Address(), jobs[0].Host)
	assert.Equal(t, "POST /v1/jobs", jobs[0].Method+" "+jobs[0].Path)
	assert.Equal(t, "/anything", jobs[1].Path)
	assert.NotEqual(t, jobs[0].Remote, jobs[1].Remote)
	up.Forget()
	assert.Empty(t, up.Jobs())
}

// TestForgetsAJobThatRuns, which ends as if nothing were.
func TestForgetsAJobThatRuns(t *testing.T) {
	up := fakeupstream.New(t, fakeupstream.Options{})
	up.SetFault(fakeupstream.Fault{Stall: true})
	response, err := send(t, submitter(t), "POST", up.URL+"/v1/jobs", fakeupstream.ExampleJob())
	require.NoError(t, err)
	defer response.Body.Close()
	up.Forget()
	up.SetFault(fakeupstream.Fault{})
	_, err = io.ReadAll(response.Body)
	require.NoError(t, err)
	assert.Empty(t, up.Jobs())
}

// TestRecordsHalfABody: an upload that breaks off is never a whole job.
func TestRecordsHalfABody(t *testing.T) {
	up := fakeupstream.New(t, fakeupstream.Options{})
	conn, err := net.Dial("tcp", up.Address())
	require.NoError(t, err)
	fmt.Fprint(conn, "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
	conn.Close()
	require.NoError(t, up.Await(t.Context(), func(jobs []fakeupstream.Job) bool { return len(jobs) == 1 }))
	assert.Equal(t, "{", string(up.Jobs()[0].Body))
	assert.ErrorIs(t, up.Jobs()[0].BodyErr, io.ErrUnexpectedEOF)
}

func TestStatusAndHeader(t *testing.T) {
	up := fakeupstream.New(t, fakeupstream.Options{})
	up.SetFault(fakeupstream.Fault{
		Status: 503, Body: "busy", Times: 2,
		Header: http.Header{"Retry-After": {"7"}, "Set-Cookie": {"a=1", "b=2"}},
	})
	for range 2 {
		answer, body, err := job(t, up)
		require.NoError(t, err)
		assert.Equal(t, 503, answer.status)
		assert.Equal(t, "busy", body)
		assert.Equal(t, "7", answer.header.Get("Retry-After"))
		assert.Equal(t, []string{"a=1", "b=2"}, answer.header["Set-Cookie"])
		assert.EqualValues(t, 4, answer.length)
	}
	answer, _, err := job(t, up)
	require.NoError(t, err)
	assert.Equal(t, 200, answer.status, "the fault's times are over")
	assert.NotEmpty(t, answer.header.Get("X-Load"))

	up.SetFault(fakeupstream.Fault{Header: http.Header{"X-Load": nil}})
	answer, _, err = job(t, up)
	require.NoError(t, err)
	assert.Equal(t, 200, answer.status)
	assert.Empty(t, answer.header.Get("X-Load"))
}

// TestInterimResponsesOfTheServer come before the response, not instead of it.
func TestInterimResponsesOfTheServer(t *testing.T) {
	up := fakeupstream.New(t, fakeupstream.Options{})
	seen := traced(t, up, "job-started")
	assert.Equal(t, []int{102}, seen.interim)
	assert.Equal(t, http.StatusOK, seen.status)
}

// whole is an answer to its end, with the statuses before it.
type whole struct {
	interim []int
	status  int
	body    []byte
	trailer http.Header
}

// traced sends the thesis's job with a preference, and reads the whole answer.
func traced(t *testing.T, up *fakeupstream.Upstream, prefer string) (seen whole) {
	t.Helper()
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(code int, _ textproto.MIMEHeader) error { seen.interim = append(seen.interim, code); return nil },
	})
	r, err := http.NewRequestWithContext(ctx, "POST", up.URL+"/v1/jobs", strings.NewReader(fakeupstream.ExampleJob()))
	require.NoError(t, err)
	r.Header.Set("Prefer", prefer)
	response, err := submitter(t).Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	seen.body, err = io.ReadAll(response.Body)
	require.NoError(t, err)
	seen.status, seen.trailer = response.StatusCode, response.Trailer
	return seen
}

func TestInformationalAndTrailer(t *testing.T) {
	up := fakeupstream.New(t, fakeupstream.Options{})
	up.SetFault(fakeupstream.Fault{Informational: []int{103, 102}, Trailer: http.Header{"X-Sum": {"5"}}})
	seen := traced(t, up, "")
	assert.NotEmpty(t, seen.body)
	assert.Equal(t, []int{103, 102}, seen.interim)
	assert.Equal(t, http.Header{"X-Sum": {"5"}}, seen.trailer)
}

// TestHandler: a handler's responses meet faults, and its jobs are recorded.
func TestHandler(t *testing.T) {
	up := fakeupstream.New(t, fakeupstream.Options{
		Listen: "127.0.0.2:0", Cached: []string{"7"},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, err := io.Copy(w, r.Body)
			if err != nil {
				assert.ErrorIs(t, err, fakeupstream.ErrCut)
			}
		}),
	})
	assert.True(t, strings.HasPrefix(up.Address(), "127.0.0.2:"))
	_, body, err := job(t, up)
	require.NoError(t, err)
	assert.Equal(t, fakeupstream.ExampleJob(), body)
	up.SetFault(fakeupstream.Fault{Cut: fakeupstream.CutFIN, CutAfter: 10})
	_, body, err = job(t, up)
	require.Error(t, err)
	assert.Equal(t, fakeupstream.ExampleJob()[:10], body)
	assert.Len(t, up.Jobs(), 2)
	assert.Nil(t, up.Jobs()[0].Body, "bodies are the handler's")
	assert.Contains(t, get(t, up.URL+"/v1/cache/projects"), `"id":7`)
	assert.Equal(t, "ok\n", get(t, up.URL+"/healthz"))
	assert.Contains(t, get(t, up.URL+"/metrics"), "ruleserver_cores 4")

	up = fakeupstream.New(t, fakeupstream.Options{Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "mine 1\n")
	})})
	assert.Equal(t, "mine 1\n", get(t, up.URL+"/metrics"))
	_, body, err = job(t, up)
	require.NoError(t, err)
	assert.Contains(t, body, "T-shirt", "jobs are answered by the rules")
}

func TestReports(t *testing.T) {
	up := fakeupstream.New(t, fakeupstream.Options{Cached: []string{"7", "shop"}})
	listing := get(t, up.URL+"/v1/cache/projects")
	assert.Regexp(t, `^{"projects":\[{"id":7,.*},{"id":"shop",.*}\]}`, listing)
	require.NoError(t, up.SetCached("12345"))
	assert.Regexp(t, `^{"projects":\[{"id":12345,[^{]*}\]}`, get(t, up.URL+"/v1/cache/projects"))
	answer, _, err := job(t, up)
	require.NoError(t, err)
	assert.Contains(t, answer.header.Get("X-Load"), "cached=1")
	require.Error(t, up.SetCached("../x"))

	up.SetStalled(2, 40)
	up.SetRunning(3, 50)
	metrics := get(t, up.URL+"/metrics")
	assert.Contains(t, metrics, "ruleserver_stalled_joblets{priority=\"high\"} 2\n")
	assert.Contains(t, metrics, "ruleserver_stalled_joblets{priority=\"low\"} 40\n")
	assert.Contains(t, metrics, "ruleserver_jobs_running{priority=\"low\"} 50\n")
	answer, _, err = job(t, up)
	require.NoError(t, err)
	assert.Contains(t, answer.header.Get("X-Load"), "running=53, stalled=42, stalled_high=2")
	up.SetStalled(9, -1)
	assert.Contains(t, get(t, up.URL+"/metrics"), "ruleserver_stalled_joblets{priority=\"low\"} 0\n")

	// A fault of reports is none of jobs.
	up.SetReportFault(fakeupstream.Fault{Status: 500, Body: "garbage"})
	assert.Equal(t, "garbage", get(t, up.URL+"/metrics"))
	assert.Equal(t, "garbage", get(t, up.URL+"/v1/cache/projects"))
	_, body, err := job(t, up)
	require.NoError(t, err)
	assert.NotEqual(t, "garbage", body)
}

func TestOptions(t *testing.T) {
	up := fakeupstream.New(t, fakeupstream.Options{
		Cores: 2, Cost: "fetch=1ms", Feeds: fstest.MapFS{"1.csv": {Data: []byte("id\n5\n")}},
	})
	response, err := send(t, submitter(t), "POST", up.URL+"/v1/jobs", `{"project_id": 1}`)
	require.NoError(t, err)
	defer response.Body.Close()
	line, err := bufio.NewReader(response.Body).ReadString('\n')
	require.NoError(t, err)
	assert.JSONEq(t, `{"id":"5"}`, line)
	assert.Contains(t, get(t, up.URL+"/metrics"), "ruleserver_cores 2\n")

	for want, o := range map[string]fakeupstream.Options{
		"fakeupstream: cost: fetch: want a duration such as 2s or 400ms, got \"1\"": {Cost: "fetch=1"},
		"fakeupstream: ruleserver: cores: -1 is not between 1 and 4096":             {Cores: -1},
		"fakeupstream: unknown project 7: there is no feed 7.csv":                   {Feeds: fstest.MapFS{}, Cached: []string{"7"}},
	} {
		_, err := fakeupstream.Start(o)
		assert.EqualError(t, err, want)
	}
}

func TestDrain(t *testing.T) {
	up := fakeupstream.New(t, fakeupstream.Options{})
	up.Drain()
	assert.Equal(t, "draining\n", get(t, up.URL+"/healthz"))
	answer, _, err := job(t, up)
	require.NoError(t, err)
	assert.Equal(t, "no", answer.header.Get("Job-Started"))
}

// TestSwitchesWhileRunning: everything may be switched while jobs run.
func TestSwitchesWhileRunning(t *testing.T) {
	up := fakeupstream.New(t, fakeupstream.Options{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 25 {
				_, _, _ = job(t, up) // whole or not, it ends
			}
		})
	}
	for i := range 100 {
		up.SetFault([]fakeupstream.Fault{
			{}, {Hang: true}, {Status: 500}, {Cut: fakeupstream.CutRST, CutAfter: 10}, {Stall: true}, {Delay: time.Hour},
		}[i%6])
		up.SetStalled(i, i)
		require.NoError(t, up.SetCached(fmt.Sprint(i)))
		get(t, up.URL+"/metrics")
	}
	up.SetFault(fakeupstream.Fault{})
	wg.Wait()
	require.NoError(t, up.Await(t.Context(), func(jobs []fakeupstream.Job) bool {
		for _, j := range jobs {
			if !j.Ended {
				return false
			}
		}
		return true
	}))
}
