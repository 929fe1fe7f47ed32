package fakeupstream_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/fakeupstream"
)

// TestExample is what somebody else's test may look like.
func TestExample(t *testing.T) {
	up := fakeupstream.New(t, fakeupstream.Options{})
	up.SetFault(fakeupstream.Fault{Status: 503, Body: "not now\n", Times: 1})
	var statuses []int
	var body []byte
	for range 2 {
		response, err := submitter(t).Post(up.URL+"/v1/jobs", "application/json", strings.NewReader(fakeupstream.ExampleJob()))
		require.NoError(t, err)
		body, err = io.ReadAll(response.Body)
		require.NoError(t, err)
		response.Body.Close()
		statuses = append(statuses, response.StatusCode)
	}
	assert.Equal(t, []int{http.StatusServiceUnavailable, http.StatusOK}, statuses)
	assert.Contains(t, string(body), `"title":"T-shirt “Triangle” Blue","color":"Blue","stock":"34","availability":"in stock"`)
	assert.Equal(t, up.Jobs()[0].Body, up.Jobs()[1].Body)
}
