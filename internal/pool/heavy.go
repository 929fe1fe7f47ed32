package pool

import (
	"fmt"
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/settings"
)

// HeavySettings says which jobs are heavy: those for dedicated upstreams (the thesis, 8.2.3).
type HeavySettings struct {
	// Projects are those whose jobs are heavy.
	Projects []string `yaml:"projects,omitempty"`
	// Bytes is the size of a project's data from which on its jobs are heavy, where the size is known. 0 is none.
	Bytes settings.Size `yaml:"bytes"`
	// Expected is the time on a core, fetches aside, from which on jobs that are expected to take it are heavy. 0 is none.
	Expected time.Duration `yaml:"expected"`
}

// maxHeavyProjects bounds Projects.
const maxHeavyProjects = 10_000

// Check reports what cannot be used.
func (s HeavySettings) Check(f *settings.Faults) {
	f.Within("projects", len(s.Projects), 0, maxHeavyProjects)
	for i, project := range s.Projects {
		if project == "" || len(project) > intake.MaxProject {
			f.Add(fmt.Sprintf("projects[%d]", i), "%s is not a project: want 1 to %d bytes", settings.Quote(project), intake.MaxProject)
		}
	}
	f.AtLeast("bytes", int64(s.Bytes), 0)
	f.NotNegative("expected", s.Expected)
}

// keys is the set of the projects' hashes.
func (s HeavySettings) keys() map[uint64]bool {
	keys := make(map[uint64]bool, len(s.Projects))
	for _, project := range s.Projects {
		keys[intake.Key(project)] = true
	}
	return keys
}

// Heavy reports whether a job is for the upstreams for heavy jobs. None is while there are none, or no others.
func (p *Pool) Heavy(r Request) bool {
	if !p.mixed || r.Project == 0 {
		return false
	}
	n, s := p.need(r.Project, r.Data, false), &p.cfg.Heavy
	size := n.total()
	if !n.set && saneBytes(r.Bytes) {
		size = r.Bytes
	}
	return p.heavyProjects[r.Project] || p.heavyProjects[n.project.id] ||
		s.Bytes > 0 && size >= float64(s.Bytes) ||
		s.Expected > 0 && p.lengths.n > 1 && p.lengths.expected(n.project.lengths, shrinkLengths) >= s.Expected.Seconds()
}

// serves reports whether an upstream may get jobs of a class.
func (p *Pool) serves(m *member, heavy bool) bool { return heavy || !m.Heavy || !p.mixed }
