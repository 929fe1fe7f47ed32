package ruleserver

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"example.org/pilotfish/internal/ruleserver/executor"
	"example.org/pilotfish/internal/ruleserver/rules"
)

// hintHeader is the response header of the load hint.
const hintHeader = "X-Load"

// The headers of ORCA (Open Request Cost Aggregation), a format of load reports that Envoy,
// gRPC and others read. Only its text format is supported.
const (
	orcaHeader       = "Endpoint-Load-Metrics"        // of the response
	orcaFormatHeader = "Endpoint-Load-Metrics-Format" // of the request, to request a report
	orcaText         = "text"
)

// load returns the load that the server reports, with the injected fault.
func (s *Server) load() executor.Load {
	load := s.executor.Load()
	if s.config.AdjustLoad != nil {
		s.config.AdjustLoad(&load)
	}
	if s.fault.Load() == faultLieCores {
		load.Cores = 4000
	}
	return load
}

// setLoad adds the load to the header of a response: the load hint, and an ORCA report if the
// request has a header for it.
func (s *Server) setLoad(header, request http.Header, job executor.Facts) {
	if s.fault.Load() == faultSilent {
		return
	}
	load := s.load()
	header.Set(hintHeader, hint(time.Now(), load, job))
	if strings.EqualFold(request.Get(orcaFormatHeader), orcaText) {
		header.Set(orcaHeader, orca(load, job))
	}
}

// serveLoad responds to a probe: with the load in the header, as to a job. If the query names a project, cached says
// whether its data is cached or being fetched: a job would not fetch it.
func (s *Server) serveLoad(w http.ResponseWriter, r *http.Request) {
	job := executor.Facts{}
	if project := r.URL.Query().Get("project"); project != "" {
		version, err := s.feeds.version(rules.Project(project))
		key := executor.Key{Kind: executor.FeedSource, Project: project, Version: version}
		job.Started, job.Cached = true, err == nil && s.executor.Has(key)
	}
	s.setLoad(w.Header(), r.Header, job)
}

// hint returns the current load and the facts of the job as a load hint. The job itself still
// counts as running.
func hint(now time.Time, load executor.Load, job executor.Facts) string {
	return fmt.Sprintf("at=%.3f, ", float64(now.UnixMilli())/1000) + strings.Join(figures(load, job), ", ")
}

// orca returns the load as an ORCA report in text format. The utilizations are shares of the cores;
// application_utilization includes stalled joblets, so it can exceed 1.
func orca(load executor.Load, job executor.Facts) string {
	cores, stalled := float64(load.Cores), load.Stalled[executor.High]+load.Stalled[executor.Low]
	return fmt.Sprintf("TEXT cpu_utilization=%v, application_utilization=%v, named_metrics.", float64(load.Busy)/cores, float64(load.Busy+stalled)/cores) +
		strings.Join(figures(load, job), ", named_metrics.")
}

// figures returns the figures that load hints and ORCA reports have in common.
func figures(load executor.Load, job executor.Facts) []string {
	high, low := executor.High, executor.Low
	all := []string{
		fmt.Sprintf("running=%d", load.Running[high]+load.Running[low]),
		fmt.Sprintf("stalled=%d", load.Stalled[high]+load.Stalled[low]),
		fmt.Sprintf("stalled_high=%d", load.Stalled[high]),
		fmt.Sprintf("cores=%d", load.Cores),
		fmt.Sprintf("busy=%d", load.Busy),
	}
	if job.Started {
		cached := 0
		if job.Cached {
			cached = 1
		}
		all = append(all, fmt.Sprintf("cached=%d", cached), "waited="+seconds(job.Wait))
	}
	if job.Fetch > 0 {
		all = append(all, "fetch="+seconds(job.Fetch))
	}
	return all
}

// seconds formats a duration in seconds, to the microsecond, without an exponent.
func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Round(time.Microsecond).Seconds(), 'f', -1, 64)
}
