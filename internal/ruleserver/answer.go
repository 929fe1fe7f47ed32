package ruleserver

import (
	"errors"
	"net/http"
	"os"
	"time"
)

// refuse answers with a problem, which is always whole.
func (x *exchange) refuse(err error) (whole bool) {
	p := problemOf(err)
	x.record.Status, x.record.Outcome, x.record.Err = p.Status, p.outcome, err
	x.hint()
	p.write(x.w, x.record.Facts.Started)
	return true
}

// stream sends the chunks of an answer, each as soon as the connection takes it.
func (x *exchange) stream(chunks [][]byte, timeout time.Duration) (whole bool) {
	connection := http.NewResponseController(x.w)
	// Where the connection has no deadlines, its owner bounds it.
	_ = connection.SetWriteDeadline(time.Now().Add(timeout))
	x.record.Status, x.record.Outcome = http.StatusOK, OK
	x.hint()
	x.w.WriteHeader(http.StatusOK)
	for _, chunk := range chunks {
		n, err := x.w.Write(chunk)
		x.record.Bytes += int64(n)
		if err == nil {
			err = connection.Flush()
		}
		if err == nil || errors.Is(err, http.ErrNotSupported) {
			continue
		}
		x.record.Outcome, x.record.Err = Cancelled, err
		if errors.Is(err, os.ErrDeadlineExceeded) {
			x.record.Outcome = Timeout
		}
		return false
	}
	return true // net/http takes the deadline off once it has sent the end
}

func (x *exchange) done(status int) (whole bool) {
	x.record.Status, x.record.Outcome = status, OK
	x.hint()
	x.w.WriteHeader(status)
	return true
}

func (x *exchange) hint() {
	x.w.Header().Set(HintHeader, hint(time.Now(), x.server.load(), x.record.Facts))
}
