package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFetches(t *testing.T) {
	const scenario = "../../testdata/scenarios/tuning/fetch-times.yaml"
	code, out, stderr := tracelab("simulate", scenario, "--fetches", "--run", "jobs", "--scale", "0.02")
	require.Zero(t, code, stderr)
	assert.Contains(t, out, "jobs, seed 161: fetches, and how long they were expected to take\n")
	assert.Contains(t, out, "\nmore than 10 s ")
	assert.Contains(t, out, "listings, seed 161", "and the run that it is compared with")
}
