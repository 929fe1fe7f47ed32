package fakeupstream_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"example.org/pilotfish/pkg/fakeupstream"
)

// ExampleNew shows a test of a submitter: the first attempt fails, and the submitter sends its job again.
func ExampleNew() {
	t := new(inTest) // in a test, its *testing.T
	defer t.end()
	up := fakeupstream.New(t, fakeupstream.Options{})
	up.SetFault(fakeupstream.Fault{Status: http.StatusServiceUnavailable, Times: 1})
	for range 2 {
		response, err := http.Post(up.URL+"/v1/jobs", "application/json", strings.NewReader(fakeupstream.ExampleJob()))
		if err != nil {
			fmt.Println(err)
			return
		}
		response.Body.Close()
		fmt.Println(response.StatusCode)
	}
	for _, job := range up.Jobs() {
		fmt.Println(job.Path, len(job.Body) == len(fakeupstream.ExampleJob()))
	}
	// Output:
	// 503
	// 200
	// /v1/jobs true
	// /v1/jobs true
}

// inTest replaces the *testing.T, which an example does not have.
type inTest struct {
	testing.TB
	ends []func()
}

func (*inTest) Helper()            {}
func (t *inTest) Cleanup(f func()) { t.ends = append(t.ends, f) }

func (t *inTest) end() {
	http.DefaultClient.CloseIdleConnections()
	for i := len(t.ends) - 1; i >= 0; i-- {
		t.ends[i]()
	}
}
