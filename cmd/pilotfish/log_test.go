package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"example.org/pilotfish/internal/config"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/record"
)

func TestWhichJobsAreLogged(t *testing.T) {
	records := []*record.Job{
		{Outcome: intake.Answered, Total: time.Second},
		{Outcome: intake.Answered, Total: time.Hour},
		{Outcome: intake.Gone, Total: time.Second},
		{Outcome: intake.NoAnswer, Total: time.Second},
	}
	for jobs, want := range map[string][]string{
		config.LogAll:    {"info answered 1", "info answered 3600", "info gone 1", "warn no_answer 1"},
		config.LogSlow:   {"info answered 3600", "warn no_answer 1"},
		config.LogFailed: {"warn no_answer 1"},
		config.LogNone:   nil,
	} {
		core, logs := observer.New(zap.DebugLevel)
		l := jobLog{log: zap.New(core)}
		set := config.Default().Log
		set.Jobs = jobs
		var got []string
		for _, r := range records {
			l.write(set, r)
			for _, e := range logs.TakeAll() {
				fields := e.ContextMap()
				got = append(got, fmt.Sprint(e.Level, " ", fields["outcome"], " ", fields["total_seconds"]))
			}
		}
		assert.Equal(t, want, got, jobs)
	}
}

// A share of the good jobs is logged, evenly; of the failed ones, all are.
func TestAShareOfTheJobsIsLogged(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	l := jobLog{log: zap.New(core)}
	set := config.Log{Jobs: config.LogAll, Slow: time.Minute, Share: 0.1}
	for i := range 1000 {
		l.write(set, &record.Job{Outcome: intake.Answered})
		assert.Equal(t, (i+1)/10, logs.Len())
	}
	logs.TakeAll()
	for range 10 {
		l.write(set, &record.Job{Outcome: intake.Truncated})
	}
	assert.Equal(t, 10, logs.Len())
	set.Share = 0
	l.write(set, &record.Job{Outcome: intake.Answered})
	assert.Equal(t, 10, logs.Len())
}
