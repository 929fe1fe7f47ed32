package proxy

import (
	"net/http"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/job"
	"example.org/pilotfish/internal/proxy/upstreamclient"
)

// exchange is one job on its way through the proxy, on the handler's
// goroutine. Nothing of it changes after read, except the book.
type exchange struct {
	p    *Proxy
	w    http.ResponseWriter
	r    *http.Request
	rc   http.ResponseController
	book job.Book

	expects bool // the submitter waits to be told to go on

	// What read adds.
	paced   pacedBody
	counted int64 // of the heads of job and answers, in the budget
	body    *intake.Body

	under      attempt                   // the one under way
	withdrawal upstreamclient.Withdrawal // of it

	target   string      // what all attempts send alike
	header   http.Header // likewise, but for one
	expected [1]string   // the value of the header that says how long the job is expected to take
}
