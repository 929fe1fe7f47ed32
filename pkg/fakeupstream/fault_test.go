package fakeupstream_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/fakeupstream"
)

// TestCut: the submitter receives a part of the response, and an error.
func TestCut(t *testing.T) {
	up := fakeupstream.New(t, fakeupstream.Options{})
	_, whole, err := job(t, up)
	require.NoError(t, err)
	for _, cut := range []fakeupstream.Cut{fakeupstream.CutFIN, fakeupstream.CutRST} {
		for _, after := range []int64{0, 1, 100, int64(len(whole)), 1 << 20} {
			up.SetFault(fakeupstream.Fault{Cut: cut, CutAfter: after})
			got, body, err := job(t, up)
			require.Error(t, err, "cut %d after %d", cut, after)
			if cut == fakeupstream.CutRST {
				require.ErrorIs(t, err, syscall.ECONNRESET, "after %d", after)
			} else {
				require.NotErrorIs(t, err, syscall.ECONNRESET, "after %d", after)
			}
			require.Equal(t, 200, got.status)
			require.Equal(t, whole[:min(after, int64(len(whole)))], body, "after %d", after)
		}
		up.SetFault(fakeupstream.Fault{Cut: cut, CutAfter: fakeupstream.BeforeHeaders})
		got, _, err := job(t, up)
		require.Error(t, err)
		require.Zero(t, got.status)
	}
	up.SetFault(fakeupstream.Fault{Body: "0123456789", Cut: fakeupstream.CutFIN, CutAfter: 4})
	got, body, err := job(t, up)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.Equal(t, "0123", body)
	assert.EqualValues(t, 10, got.length)
}

// TestHang: no response until the submitter disconnects, which ends the job, or until the fault
// is replaced.
func TestHang(t *testing.T) {
	up := fakeupstream.New(t, fakeupstream.Options{})
	up.SetFault(fakeupstream.Fault{Hang: true})
	ctx, leave := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "POST", up.URL+"/v1/jobs", strings.NewReader(fakeupstream.ExampleJob()))
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := submitter(t).Do(r) //nolint:bodyclose // there is no response
		assert.ErrorIs(t, err, context.Canceled)
	})
	require.NoError(t, up.Await(t.Context(), func(jobs []fakeupstream.Job) bool { return len(jobs) == 1 }))
	leave()
	wg.Wait()
	require.NoError(t, up.Await(t.Context(), func(jobs []fakeupstream.Job) bool { return jobs[0].Ended }))

	wg.Go(func() {
		got, _, err := job(t, up)
		if assert.NoError(t, err) {
			assert.Equal(t, 200, got.status)
		}
	})
	require.NoError(t, up.Await(t.Context(), func(jobs []fakeupstream.Job) bool { return len(jobs) == 2 }))
	assert.False(t, up.Jobs()[1].Ended)
	up.SetFault(fakeupstream.Fault{})
	wg.Wait()
}

func TestRefuse(t *testing.T) {
	up := fakeupstream.New(t, fakeupstream.Options{})
	c := submitter(t)
	response, err := send(t, c, "POST", up.URL+"/v1/jobs", fakeupstream.ExampleJob())
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(t, err)
	response.Body.Close()

	require.NoError(t, up.Refuse(true))
	require.NoError(t, up.Refuse(true))
	_, err = net.Dial("tcp", up.Address())
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.Eventually(t, func() bool { // its idle connection was closed, too
		response, err := send(t, c, "POST", up.URL+"/v1/jobs", fakeupstream.ExampleJob())
		if err == nil {
			response.Body.Close()
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	}, time.Minute, time.Millisecond)

	require.NoError(t, up.Refuse(false))
	_, _, err = job(t, up)
	require.NoError(t, err)
}

// TestKill: the response to a running job is truncated, and the cache survives.
func TestKill(t *testing.T) {
	up := fakeupstream.New(t, fakeupstream.Options{})
	up.SetFault(fakeupstream.Fault{Stall: true, StallAfter: 4})
	response, err := send(t, submitter(t), "POST", up.URL+"/v1/jobs", fakeupstream.ExampleJob())
	require.NoError(t, err)
	defer response.Body.Close()
	up.Kill()
	_, err = io.ReadAll(response.Body)
	require.Error(t, err)
	_, err = net.Dial("tcp", up.Address())
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	up.Kill() // a second call changes nothing

	up.SetFault(fakeupstream.Fault{})
	require.NoError(t, up.Refuse(false))
	got, _, err := job(t, up)
	require.NoError(t, err)
	assert.Contains(t, got.header.Get("X-Load"), "cached=1")
}
