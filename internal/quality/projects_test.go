package quality

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/hash"
	"example.org/pilotfish/internal/intake"
)

// noted counts n jobs of a project that an upstream answered.
func noted(p *Projects, now time.Time, key uint64, upstream string, n int) {
	for range n {
		p.Note(now, key, intake.NewText(fmt.Sprint("project ", key)), upstream)
	}
}

func TestBusiestProjects(t *testing.T) {
	var p Projects
	assert.Empty(t, p.Counts(start, "").Top(3))
	noted(&p, start, 0, "", 100) // no project
	noted(&p, start, 1, "", 5)
	noted(&p, start, 2, "a:1", 7)
	noted(&p, start.Add(6*time.Minute), 1, "", 3)
	noted(&p, start.Add(6*time.Minute), 3, "", 1)
	assert.Equal(t, []Busy{{1, "project 1", 8}, {2, "project 2", 7}, {3, "project 3", 1}}, p.Counts(start.Add(6*time.Minute), "").Top(5))
	assert.Equal(t, []Busy{{1, "project 1", 3}}, p.Counts(start.Add(12*time.Minute), "").Top(1), "what was before is forgotten")
	noted(&p, start.Add(12*time.Minute), 4, "", 1)
	assert.Len(t, p.Counts(start.Add(21*time.Minute), "").Top(1), 1)
	noted(&p, start.Add(22*time.Minute), 4, "", 1)
	assert.Empty(t, p.Counts(start.Add(33*time.Minute), "").Top(1), "it counts at most twice as long as a span")
}

func TestBusiestProjectsOfAnUpstream(t *testing.T) {
	var p Projects
	noted(&p, start, 1, "a:1", 2)
	noted(&p, start, 1, "b:1", 1)
	noted(&p, start, 1, "", 9) // nobody answered
	noted(&p, start, 2, "a:1", 5)
	noted(&p, start, 3, "b:1", 9)
	noted(&p, start, 4, "a:1", 2)
	assert.Equal(t, []Busy{{2, "project 2", 5}, {1, "project 1", 2}, {4, "project 4", 2}}, p.Counts(start, "a:1").Top(9))
	assert.Equal(t, []Busy{{2, "project 2", 5}}, p.Counts(start, "a:1").Top(1))
	assert.Equal(t, []Busy{{3, "project 3", 9}, {1, "project 1", 1}}, p.Counts(start, "b:1").Top(9))
	assert.Empty(t, p.Counts(start, "c:1").Top(9))

	next := start.Add(projectSpan)
	noted(&p, next, 1, "a:1", 4)
	noted(&p, next, 5, "a:1", 1)
	noted(&p, next, 2, "", 1)
	assert.Equal(t, []Busy{{1, "project 1", 6}, {2, "project 2", 5}, {4, "project 4", 2}, {5, "project 5", 1}}, p.Counts(next, "a:1").Top(9), "both spans count")
	assert.Equal(t, []Busy{{1, "project 1", 4}, {5, "project 5", 1}}, p.Counts(next.Add(projectSpan), "a:1").Top(9), "and no others")

	p = Projects{}
	noted(&p, start, 1, "a:1", 1)
	assert.NotEmpty(t, p.Counts(start.Add(2*projectSpan-1), "a:1").Top(9))
	p = Projects{}
	noted(&p, start, 1, "a:1", 1)
	assert.Empty(t, p.Counts(start.Add(2*projectSpan), "a:1").Top(9), "nothing happened for a whole span")
}

// ended is a job that ended.
type ended struct {
	key      uint64
	upstream string
}

// Projects against a naive list of jobs. What is counted stays as it is while jobs end.
func TestProjectsLikeANaiveList(t *testing.T) {
	shown := 0
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 2))
		var p Projects
		var spans [2][]ended // the previous and the current one
		now, began := start, time.Time{}
		step := func() {
			now = now.Add(time.Duration(rng.ExpFloat64() * float64(time.Second)))
			if rng.IntN(500) == 0 {
				now = now.Add(time.Duration(rng.IntN(12)) * time.Minute)
			}
			if past := now.Sub(began); past >= projectSpan {
				if began, spans = now, [2][]ended{spans[1], nil}; past >= 2*projectSpan {
					spans[0] = nil
				}
			}
			job := ended{1 + rng.Uint64N(30), []string{"", "a:1", "b:1", "c:1"}[rng.IntN(4)]}
			spans[1] = append(spans[1], job)
			noted(&p, now, job.key, job.upstream, 1)
		}
		step()
		for range 20 {
			for range 1 + rng.IntN(100) {
				step()
			}
			upstream, n := []string{"", "a:1", "b:1"}[rng.IntN(3)], rng.IntN(35)
			want := busiest(slices.Concat(spans[0], spans[1]), upstream, n)
			shown += len(want)
			counts, got := p.Counts(now, upstream), make(chan []Busy, 1)
			go func() { got <- counts.Top(n) }()
			for range rng.IntN(100) {
				step()
			}
			require.Equal(t, want, <-got, "seed %d", seed)
		}
	}
	assert.Greater(t, shown, 10_000)
}

// busiest counts and sorts all.
func busiest(jobs []ended, upstream string, n int) []Busy {
	counts := map[uint64]int{}
	for _, j := range jobs {
		if upstream == "" || j.upstream == upstream {
			counts[j.key]++
		}
	}
	all := []Busy{}
	for key, jobs := range counts {
		all = append(all, Busy{key, fmt.Sprint("project ", key), jobs})
	}
	slices.SortFunc(all, func(a, b Busy) int { return cmp.Or(b.Jobs-a.Jobs, strings.Compare(a.Name, b.Name)) })
	return all[:min(n, len(all))]
}

func TestProjectsAreBounded(t *testing.T) {
	var p Projects
	for key := range uint64(2 * maxProjects) {
		noted(&p, start, key+1, "a:1", 1)
	}
	assert.Len(t, p.current, maxProjects)
	noted(&p, start, 1, "a:1", 1)
	assert.Equal(t, []Busy{{1, "project 1", 2}}, p.Counts(start, "a:1").Top(1), "what is in it still counts")

	for i := range 2 * maxPlaces {
		noted(&p, start, 2, fmt.Sprint("b:", i), 9)
	}
	assert.Len(t, p.current[2].places, maxPlaces)
	assert.Equal(t, 1+2*maxPlaces*9, p.Counts(start, "").Top(1)[0].Jobs)
	noted(&p, start, 2, "b:0", 1)
	assert.Equal(t, 10, p.Counts(start, "b:0").Top(1)[0].Jobs, "an upstream that is in it still counts")
}

// Most projects, each at most upstreams. No job can end while they are counted.
func BenchmarkProjects(b *testing.B) {
	var p Projects
	upstreams := strings.Fields("b:0 b:1 b:2 b:3 b:4 b:5 b:6 b:7")
	for key := range uint64(2 * maxProjects) {
		for _, upstream := range upstreams {
			noted(&p, start.Add(time.Duration(key/maxProjects)*projectSpan), hash.Mix(1+key), upstream, 1+int(key%10))
		}
	}
	now := start.Add(projectSpan)
	b.Run("counts", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p.Counts(now, "b:7")
		}
	})
	for _, n := range []int{20, 4000} {
		b.Run(fmt.Sprint("top ", n), func(b *testing.B) {
			for b.Loop() {
				p.Counts(now, "b:7").Top(n)
			}
		})
	}
}

// Jobs that are counted together count as if each were counted when it ended.
func TestJobsAreCountedWhenTheyEnded(t *testing.T) {
	var together, each Projects
	random := rand.New(rand.NewPCG(3, 4))
	now := start
	for range 5000 {
		now = now.Add(time.Duration(random.IntN(int(projectSpan / 8))))
		key, upstream := uint64(random.IntN(20)), []string{"", "a:1", "b:1"}[random.IntN(3)]
		noted(&together, now, key, upstream, 1)
		noted(&each, now, key, upstream, 1)
		each.count()
		if random.IntN(40) == 0 {
			assert.Equal(t, each.Counts(now, upstream).Top(9), together.Counts(now, upstream).Top(9))
		}
	}
}

// BenchmarkNote is the count of a job of one of 5,000 projects while the processor's cache
// holds what is done for jobs otherwise: reading 1 MB of memory stands for that, and is not timed.
func BenchmarkNote(b *testing.B) {
	var p Projects
	addresses := []string{"127.0.0.1:9000", "127.0.0.1:9001", "127.0.0.1:9002", "127.0.0.1:9003"}
	random := rand.New(rand.NewPCG(1, 2))
	keys := make([]uint64, 5000)
	for i := range keys {
		keys[i] = random.Uint64()
		p.Note(start, keys[i], intake.NewText("12345"), addresses[i%4])
	}
	other, sum := make([]byte, 1<<20), 0
	var spent time.Duration
	for b.Loop() {
		for i := 0; i < len(other); i += 64 {
			other[i]++
			sum += int(other[i])
		}
		i := random.IntN(len(keys))
		begin := time.Now()
		p.Note(start, keys[i], intake.NewText("12345"), addresses[i%4])
		spent += time.Since(begin)
	}
	b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N), "ns/job")
	runtime.KeepAlive(sum)
}
