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
		output(key(executor.OutputFeed, channel+" "+string(format)), format, cost),
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
	return onFeed(key, cost, func(feed *rules.Feed) (executor.Result, error) {
		made, err := rules.Apply(feed, operators, int64(s.settings.MaxFeed))
		if err != nil {
			return executor.Result{}, err
		}
		return feedResult(made), nil
	})
}

func output(key executor.Key, format rules.Format, cost Cost) executor.Joblet {
	return onFeed(key, cost, func(feed *rules.Feed) (executor.Result, error) {
		chunks := feed.Encode(format)
		result := executor.Result{Value: chunks}
		for _, chunk := range chunks {
			result.Bytes += int64(cap(chunk))
		}
		return result, nil
	})
}

// onFeed is a joblet that makes something of the feed before it, at a cost.
func onFeed(key executor.Key, cost Cost, work func(*rules.Feed) (executor.Result, error)) executor.Joblet {
	return executor.Joblet{Key: key, Work: func(ctx context.Context, input any) (executor.Result, error) {
		begin, feed := time.Now(), input.(*rules.Feed)
		result, err := work(feed)
		if err != nil {
			return executor.Result{}, err
		}
		return result, cost.extend(ctx, begin, key, feed)
	}}
}

func feedResult(feed *rules.Feed) executor.Result {
	return executor.Result{Value: feed, Bytes: feed.Bytes()}
}
