package main

import (
	"context"

	"go.uber.org/zap"

	"example.org/pilotfish/internal/config"
	"example.org/pilotfish/internal/report"
)

// reports is a source of reports of the upstreams that it is told to follow.
type reports interface {
	Follow(addresses []string)
	Run(ctx context.Context)
}

func (s *sidecar) newReports(r *config.Reports) (reports, error) {
	c := report.Config{
		Interval: r.Interval, CacheInterval: r.CacheInterval, Timeout: r.Timeout,
		MetricsPath: r.MetricsPath, CachePath: r.CachePath,
		Names: report.Names(r.Names),
	}
	failed := func(address string, err error) {
		s.metrics.ReportFailed(address)
		s.log.Debug("report", zap.String("upstream", address), zap.Error(err))
	}
	if r.Source != config.FromPrometheus {
		return report.New(c, stream(), s.balancer.Report, failed)
	}
	if r.Prometheus != nil {
		c.Prometheus = report.Server{URL: r.Prometheus.URL, InstanceLabel: r.Prometheus.InstanceLabel}
	}
	return report.NewPrometheus(c, stream(), s.balancer.Report, s.balancer.Listing, failed)
}
