package main

import (
	"context"

	"go.uber.org/zap"

	"example.org/pilotfish/internal/report"
)

// reports is a source of reports of the upstreams that it is told to follow.
type reports interface {
	Follow(addresses []string)
	Run(ctx context.Context)
}

func (s *sidecar) newReports(settings report.Settings) (reports, error) {
	c := report.Config{
		Settings: settings, Rand: stream(), Report: s.balancer.Report, Listing: s.balancer.Listing,
		Failed: func(address string, err error) {
			s.metrics.ReportFailed(address)
			s.log.Debug("report", zap.String("upstream", address), zap.Error(err))
		},
	}
	if settings.Source == report.FromPrometheus {
		return report.NewPrometheus(c)
	}
	return report.NewPoller(c)
}
