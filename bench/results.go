//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
)

// results are the figures of all rounds.
type results struct {
	Machine   string     `json:"machine"`
	Scenarios []scenario `json:"scenarios"`
	Peers     []string   `json:"peers"`
	// Subject is the pilotfish that the peers are compared with.
	Subject string `json:"subject"`
	// Figures are the values of each round, by scenario, peer and name.
	Figures map[string]map[string]map[string][]float64 `json:"figures"`
	Missing []string                                   `json:"missing,omitempty"`
	Failed  []string                                   `json:"failed,omitempty"`
}

func newResults(subject string) *results {
	return &results{Machine: machineName(), Subject: subject, Figures: map[string]map[string]map[string][]float64{}}
}

// machineName says on what was measured.
func machineName() string {
	model := "unknown processor"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if _, rest, found := strings.Cut(string(text), "model name"); found {
			line, _, _ := strings.Cut(rest, "\n")
			model = strings.TrimLeft(line, "\t :")
		}
	}
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		kernel = []byte("unknown")
	}
	return fmt.Sprintf("%d x %s, Linux %s, %s", runtime.NumCPU(), model, strings.TrimSpace(string(kernel)), runtime.Version())
}

// added are the figures whose difference to direct is told.
var added = []string{"p50 us", "p99 us", "first byte us"}

// costs are the figures of which the subject's is told as a multiple of each peer's. It is
// taken within a round, because what else the machine does changes from round to round.
var costs = []string{"cpu us/job", "cpu s/GB"}

// add adds a round's figures of one scenario, by peer.
func (r *results) add(scenario string, got map[string]map[string]float64) {
	base := got[direct]
	for peer, figures := range got {
		if r.Figures[scenario] == nil {
			r.Figures[scenario] = map[string]map[string][]float64{}
		}
		if r.Figures[scenario][peer] == nil {
			r.Figures[scenario][peer] = map[string][]float64{}
		}
		to := r.Figures[scenario][peer]
		for name, value := range figures {
			if slices.Contains(added, name) && peer != direct && base != nil {
				name, value = "added "+name, value-base[name]
			}
			to[name] = append(to[name], value)
			if own := got[r.Subject][name]; peer != r.Subject && slices.Contains(costs, name) && value > 0 && own > 0 {
				times := r.Subject + "'s cpu / this"
				to[times] = append(to[times], own/value)
			}
		}
	}
}

// print writes a table for each scenario: medians over the rounds, with the least and the largest.
func (r *results) print(w io.Writer) {
	fmt.Fprintf(w, "%s\n", r.Machine)
	for i := range r.Scenarios {
		figures := r.Figures[r.Scenarios[i].Name]
		names := map[string]bool{}
		for peer, f := range figures {
			if peer == direct && len(figures) > 1 {
				continue
			}
			for name := range f {
				names[name] = true
			}
		}
		columns := slices.Sorted(maps.Keys(names))
		fmt.Fprintf(w, "\n%s\n\n| |%s|\n|---|%s\n", r.Scenarios[i].Name, strings.Join(columns, "|"), strings.Repeat("---|", len(columns)))
		for _, peer := range r.Peers {
			if len(figures[peer]) == 0 {
				continue
			}
			fmt.Fprintf(w, "|%s|", peer)
			for _, name := range columns {
				values, plain := figures[peer][name], figures[peer][strings.TrimPrefix(name, "added ")]
				if peer == direct && values == nil && plain != nil {
					fmt.Fprintf(w, "(itself %s)|", spread(plain))
					continue
				}
				fmt.Fprintf(w, "%s|", spread(values))
			}
			fmt.Fprintln(w)
		}
	}
	for _, m := range r.Missing {
		fmt.Fprintf(w, "\nmissing: %s\n", m)
	}
	for _, f := range r.Failed {
		fmt.Fprintf(w, "\nfailed: %s\n", f)
	}
}

// spread is the median of some values, with the least and the largest.
func spread(values []float64) string {
	if len(values) == 0 {
		return ""
	}
	sorted := slices.Sorted(slices.Values(values))
	median := (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
	if len(sorted) == 1 {
		return number(median)
	}
	return fmt.Sprintf("%s (%s to %s)", number(median), number(sorted[0]), number(sorted[len(sorted)-1]))
}

// number writes three digits.
func number(x float64) string {
	switch {
	case x >= 99.95 || x <= -99.95:
		return fmt.Sprintf("%.0f", x)
	case x >= 9.995 || x <= -9.995:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

// save writes all figures as JSON.
func (r *results) save(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o600)
}
