package proxy_test

import (
	"io"
	"log"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // the transport comments on upstreams that misbehave
	goleak.VerifyTestMain(m)
}
