package ruleserver

import (
	"context"
	"time"

	"example.org/pilotfish/internal/ruleserver/executor"
	"example.org/pilotfish/internal/ruleserver/rules"
)

// chain splits a job into its joblets. The key of a joblet has all that its result
// depends on: the version of the data and the digests of the operators so far.
func (s *Server) chain(job rules.Job, version int64, format rules.Format, cost Cost) []executor.Joblet {
	key := func(kind executor.Kind, inputs string) executor.Key {
		return executor.Key{Kind: kind, Project: job.Project, Version: version, Inputs: inputs}
	}
	shared := job.Shared.Digest
	channel := shared + " " + job.Channel.Digest
	return []executor.Joblet{
		s.feedSource(job.Project, version, cost),
		s.apply(key(executor.SharedOperators, shared), job.Shared, cost),
		s.apply(key(executor.Operators, channel), job.Channel, cost),
		s.output(key(executor.OutputFeed, channel+" "+string(format)), format, cost),
	}
}

func (s *Server) feedSource(project string, version int64, cost Cost) executor.Joblet {
	key := executor.Key{Kind: executor.FeedSource, Project: project, Version: version}
	return executor.Joblet{Key: key, Work: func(ctx context.Context, _ any) (executor.Result, error) {
		begin := time.Now()
		feed, err := s.feeds.read(project, version)
		if err != nil {
			return executor.Result{}, err
		}
		return feedResult(feed), cost.extend(ctx, begin, key, feed)
	}}
}

func (s *Server) apply(key executor.Key, operators rules.Operators, cost Cost) executor.Joblet {
	return executor.Joblet{Key: key, Work: func(ctx context.Context, input any) (executor.Result, error) {
		begin := time.Now()
		feed := input.(*rules.Feed)
		made, err := rules.Apply(feed, operators, int64(s.settings.MaxFeed))
		if err != nil {
			return executor.Result{}, err
		}
		return feedResult(made), cost.extend(ctx, begin, key, feed)
	}}
}

func (s *Server) output(key executor.Key, format rules.Format, cost Cost) executor.Joblet {
	return executor.Joblet{Key: key, Work: func(ctx context.Context, input any) (executor.Result, error) {
		begin := time.Now()
		feed := input.(*rules.Feed)
		chunks := feed.Encode(format)
		result := executor.Result{Value: chunks}
		for _, chunk := range chunks {
			result.Bytes += int64(cap(chunk))
		}
		return result, cost.extend(ctx, begin, key, feed)
	}}
}

func feedResult(feed *rules.Feed) executor.Result {
	return executor.Result{Value: feed, Bytes: feed.Bytes()}
}
