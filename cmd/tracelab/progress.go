package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
)

// progress tells a person how far a lab is: a bar on a terminal, a line per
// trial elsewhere.
type progress struct {
	out   io.Writer
	bar   bool
	begin time.Time
	ended int
	stop  chan struct{}
	quiet chan struct{}
}

// startProgress shows the lab's progress on out until end is called.
func startProgress(l *lab, out io.Writer) *progress {
	p := &progress{out: out, begin: time.Now(), stop: make(chan struct{}), quiet: make(chan struct{})}
	if f, ok := out.(*os.File); ok {
		p.bar = isatty.IsTerminal(f.Fd())
	}
	l.finished = func(t *trial) { p.trial(l, t) }
	go p.follow(l)
	return p
}

// follow redraws the bar a few times in a second.
func (p *progress) follow(l *lab) {
	defer close(p.quiet)
	if !p.bar {
		return
	}
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			fmt.Fprint(p.out, "\r\x1b[K")
			return
		case now := <-tick.C:
			fmt.Fprintf(p.out, "\r\x1b[K%s", draw(float64(l.done.Load())/float64(l.jobs), now.Sub(p.begin)))
		}
	}
}

// trial tells of one that ended.
func (p *progress) trial(l *lab, t *trial) {
	p.ended++
	clear := ""
	if p.bar {
		clear = "\r\x1b[K"
	}
	fmt.Fprintf(p.out, "%s%d/%d %s, seed %d: %s jobs in %.1f s\n",
		clear, p.ended, len(l.trials), t.spec.Name, t.seed, thousands(int(t.counts.Jobs)), t.took.Seconds())
}

func (p *progress) end() {
	close(p.stop)
	<-p.quiet
}

// draw is the bar for a share that is done after some time.
func draw(share float64, took time.Duration) string {
	const width = 40
	share = min(max(share, 0), 1)
	full := int(share * width)
	text := fmt.Sprintf("[%s%s] %3.0f %%", strings.Repeat("#", full), strings.Repeat(".", width-full), 100*share)
	if share > 0.01 {
		left := time.Duration(float64(took) * (1 - share) / share)
		text += fmt.Sprintf(", %v left", left.Round(time.Second))
	}
	return text
}
