package record

// Refusal is an error in what the submitter sent. It says how it is answered.
type Refusal struct {
	Status int
	Reason string // the word of the Pilotfish-Reason header
	Title  string // of the problem: what is wrong, in a few words
	Text   string // of the error
}

func (r *Refusal) Error() string { return r.Text }

// The refusals.
var (
	// ErrMalformed: the body is not a job.
	ErrMalformed = &Refusal{400, "malformed-job", "the body is not a valid job", "malformed job"}
	// ErrFraming: the body's length or chunks are malformed.
	ErrFraming = &Refusal{400, "malformed-body", "the body's framing is broken", "malformed body"}
	// ErrTarget: the request line names what no upstream can be asked for.
	ErrTarget = &Refusal{400, "bad-target", "the request target is refused", "the request target cannot be passed on unaltered"}
	// ErrRequest is what no HTTP/1.1 request can carry, though HTTP/2 did.
	ErrRequest = &Refusal{400, "bad-request", "the request's head is refused", "the request cannot be passed on unaltered"}
	// ErrCrossSite: a browser sent it for another site's page.
	ErrCrossSite = &Refusal{403, "cross-site", "requests of web pages are refused", "a web page must not submit jobs"}
	// ErrForeignHost: the Host header names nobody here.
	ErrForeignHost = &Refusal{
		403, "foreign-host", "the Host header names another machine; hosts allows more names",
		"the Host header names another machine; if this name is meant for pilotfish, list it under the key hosts of its configuration",
	}
	// ErrMethod: the method asks for a tunnel or an echo.
	ErrMethod = &Refusal{405, "method-refused", "CONNECT and TRACE are refused", "the method is refused"}
	// ErrSlow: the submitter hardly sends its body.
	ErrSlow = &Refusal{408, "slow-body", "the body came too slowly", "the body comes too slowly"}
	// ErrMode is Envoy's configuration, not the submitter's request. It is answered like a
	// refusal because the submitter is the one who hears of it.
	ErrMode = &Refusal{500, "envoy-misconfigured", "Envoy shows bodies in a way that pilotfish cannot use", "Envoy's processing_mode cannot be used"}
	// ErrLoop: the job has come back to this sidecar again and again.
	ErrLoop = &Refusal{508, "loop", "the job goes in a circle: an upstream's address leads back to a sidecar", "the job goes in a circle"}
)
