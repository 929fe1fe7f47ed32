package main

import (
	"context"
	"example.org/pilotfish/internal/config"

	"go.uber.org/zap"

	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/prewarm"
	"example.org/pilotfish/internal/proxy"
)

// prewarming is what is fetched elsewhere before an upstream goes: nothing
// when it is empty.
type prewarming struct{ *prewarm.Prewarmer }

func newPrewarming(cfg config.Prewarm, b *balancer.Balancer, log *zap.Logger) (prewarming, error) {
	if cfg.Projects == 0 {
		return prewarming{}, nil
	}
	p, err := prewarm.New(prewarm.Config{
		Heir: b.Heir, Projects: cfg.Projects, Path: cfg.Path,
		Observe: func(f prewarm.Prefetch, err error) {
			line := log.With(zap.String("project", f.Project), zap.String("upstream", f.Upstream), zap.String("leaving", f.Leaving))
			if err != nil {
				line.Warn("prewarm", zap.Error(err))
				return
			}
			line.Info("prewarm")
		},
	})
	return prewarming{p}, err
}

func (p prewarming) run(ctx context.Context) {
	if p.Prewarmer != nil {
		p.Run(ctx)
	}
}

func (p prewarming) follow(set []pool.Upstream) {
	if p.Prewarmer != nil {
		p.Follow(set)
	}
}

// note counts a job where it was answered.
func (p prewarming) note(r *proxy.Record) {
	if n := len(r.Attempts); p.Prewarmer != nil && n > 0 && r.Outcome == intake.Answered {
		p.Note(r.Attempts[n-1].Upstream, r.Facts.Key, r.Facts.Project)
	}
}
