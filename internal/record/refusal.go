package record

// Refusal is an error in the submitter's request, with the response to send.
type Refusal struct {
	Status int
	Reason string // value of the Pilotfish-Reason header
	Title  string // title of the problem
	Text   string // error text
}

func (r *Refusal) Error() string { return r.Text }

// The refusals.
var (
	// ErrMalformed: the body is not a job.
	ErrMalformed = &Refusal{400, "malformed-job", "the body is not a valid job", "malformed job"}
	// ErrFraming: the body's Content-Length or chunked encoding is malformed.
	ErrFraming = &Refusal{400, "malformed-body", "the body's Content-Length or chunked encoding is malformed", "malformed body"}
	// ErrHead: the head is not that of an HTTP/1 request.
	ErrHead = &Refusal{400, "malformed-head", "the request line or a header field is malformed", "malformed head"}
	// ErrTarget: the request target cannot be forwarded to an upstream unchanged.
	ErrTarget = &Refusal{400, "bad-target", "the request target is refused", "the request target cannot be forwarded unchanged"}
	// ErrRequest: an HTTP/2 request cannot be represented in HTTP/1.1.
	ErrRequest = &Refusal{400, "bad-request", "the request header is refused", "the request cannot be forwarded unchanged"}
	// ErrCrossSite: a browser sent the request on behalf of a page of another site.
	ErrCrossSite = &Refusal{403, "cross-site", "requests from web pages in browsers are refused", "a web page must not submit jobs"}
	// ErrForeignHost: the Host header is neither local nor listed in hosts.
	ErrForeignHost = &Refusal{
		403, "foreign-host", "the Host header names another machine; hosts allows more names",
		"the Host header names another machine; if this name is meant for pilotfish, list it under the key hosts of its configuration",
	}
	// ErrMethod: the method is CONNECT or TRACE.
	ErrMethod = &Refusal{405, "method-refused", "CONNECT and TRACE are refused", "the method is refused"}
	// ErrSlow: the submitter sends its body too slowly.
	ErrSlow = &Refusal{408, "slow-body", "the body arrived too slowly", "the body arrives too slowly"}
	// ErrExpectation: the submitter expects something other than 100-continue.
	ErrExpectation = &Refusal{417, "expectation-failed", "expectations other than 100-continue are refused", "the expectation is refused"}
	// ErrLongHead: the head is too long.
	ErrLongHead = &Refusal{431, "head-too-large", "the request line and the header exceed 32 KiB", "the head is too large"}
	// ErrMode: Envoy's configuration is wrong, not the submitter's request. It is a Refusal
	// because the submitter gets the response.
	ErrMode = &Refusal{500, "envoy-misconfigured", "Envoy's processing_mode for bodies is not supported", "Envoy's processing_mode is not supported"}
	// ErrCoding: the body has a transfer coding other than chunked.
	ErrCoding = &Refusal{501, "transfer-coding", "transfer codings other than chunked are refused", "the transfer coding is refused"}
	// ErrVersion: the request is neither HTTP/1 nor HTTP/2.
	ErrVersion = &Refusal{505, "http-version", "only HTTP/1 and HTTP/2 are supported", "the version of HTTP is not supported"}
	// ErrLoop: the job has returned to this sidecar several times.
	ErrLoop = &Refusal{508, "loop", "forwarding loop: an upstream's address leads back to a sidecar", "forwarding loop"}
)
