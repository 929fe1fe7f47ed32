package discovery

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
)

// play feeds the replies of a script to a guard. It returns the script's lines with what is in force after each reply, and
// the doubt, if any.
func play(t *testing.T, script []string) (played []string) {
	t.Helper()
	g := &guard{emptyAfter: 30 * time.Second}
	for _, line := range script {
		second, text, ok := strings.Cut(strings.TrimSpace(line), " ")
		require.True(t, ok, line)
		after, err := time.ParseDuration(second + "s")
		require.NoError(t, err)
		text, _, _ = strings.Cut(text, " => ")
		var r verdict
		switch text {
		case "!":
			g.fail()
		case "-":
			r = g.decide(epoch.Add(after), ups(""))
		default:
			r = g.decide(epoch.Add(after), ups(text))
		}
		got := fmt.Sprintf("  %s %s => %s", second, text, names(g.current()))
		if r.doubt != none {
			got += fmt.Sprintf(" (%s, %s)", r.doubt, r.confirm)
		}
		played = append(played, got)
	}
	return played
}

// The random histories below find what else the guard does wrong.
func TestGuardScripts(t *testing.T) {
	text, err := os.ReadFile("testdata/guard.txt")
	require.NoError(t, err)
	scripts := strings.Split(strings.TrimSpace(string(text)), "\n\n")[1:]
	require.NotEmpty(t, scripts)
	for _, script := range scripts {
		lines := strings.Split(script, "\n")
		t.Run(lines[0], func(t *testing.T) { assert.Equal(t, lines[1:], play(t, lines[1:])) })
	}
}

// said is one reply, as a bit set of upstreams, or a failure.
type said struct {
	at  time.Time
	set int
	ok  bool
}

// unbroken is for how long all replies up to the last have been as wanted.
func unbroken(history []said, wanted func(said) bool) (age time.Duration) {
	last := history[len(history)-1].at
	for _, h := range slices.Backward(history) {
		if !wanted(h) {
			break
		}
		age = last.Sub(h.at)
	}
	return age
}

// TestGuardNeverLosesMoreThanHalfUnconfirmed compares with a naive rule: a set that
// loses more than half is applied only if all replies of the hold before it lacked
// the same upstreams, or disagreed for as long as patience allows.
func TestGuardNeverLosesMoreThanHalfUnconfirmed(t *testing.T) {
	rng := seeded()
	losses := 0
	for range 2000 {
		g, now := &guard{emptyAfter: 30 * time.Second}, epoch
		var history []said
		good := -1
		for range 60 {
			now = now.Add(time.Duration(500+rng.IntN(4000)) * time.Millisecond)
			s := said{at: now, set: rng.IntN(16), ok: rng.IntN(15) > 0}
			if n := len(history); n > 0 && rng.IntN(6) > 0 {
				s.set = history[n-1].set
			}
			history = append(history, s)
			if !s.ok {
				g.fail()
				continue
			}
			var text []string
			for i, l := range []string{"a", "b", "c", "d"} {
				if s.set&(1<<i) != 0 {
					text = append(text, l)
				}
			}
			if g.decide(now, ups(strings.Join(text, " "))).doubt != none {
				continue
			}
			if lost := good &^ s.set; good > 0 && (s.set == 0 || 2*ones(lost) > ones(good)) {
				losses++
				hold := g.emptyAfter / 3
				if s.set == 0 {
					hold = g.emptyAfter
				}
				agreeing := unbroken(history, func(h said) bool {
					return h.ok && good&^h.set == lost && (h.set == 0) == (s.set == 0)
				})
				doubtful := unbroken(history, func(h said) bool { return h.ok && good&^h.set != 0 })
				require.True(t, agreeing >= hold || s.set != 0 && doubtful >= 4*g.emptyAfter)
			}
			good = s.set
		}
	}
	assert.Greater(t, losses, 1000, "the scenario does lose upstreams")
}

func ones(b int) (n int) {
	for ; b > 0; b &= b - 1 {
		n++
	}
	return n
}

// A source that names other upstreams in each reply does not make the set in force grow.
func TestGuardHoldsABoundedSet(t *testing.T) {
	of := func(format string) (set []pool.Upstream) {
		for i := range maxUpstreams {
			set = append(set, pool.Upstream{Address: fmt.Sprintf(format, i)})
		}
		return arrange(set, own{})
	}
	now, g := time.Unix(1_800_000_000, 0), guard{emptyAfter: time.Hour, good: of("a%d:1")}
	g.decide(now, of("b%d:1"))
	assert.Equal(t, of("a%d:1"), g.current(), "the upstreams that serve are kept")
	g.good = g.good[:maxUpstreams-2]
	g.decide(now, of("b%d:1"))
	assert.Len(t, g.current(), maxUpstreams)
}

func TestArrangeBelievesTheNewestStart(t *testing.T) {
	old := pool.Upstream{Address: "a:1", StartedAt: epoch, Draining: true, Weight: 5}
	young := pool.Upstream{Address: "a:1", StartedAt: epoch.Add(time.Hour)}
	assert.Equal(t, []pool.Upstream{young}, arrange([]pool.Upstream{old, young}, own{}))
	assert.Equal(t, []pool.Upstream{young}, arrange([]pool.Upstream{young, old}, own{}))
}

// TestArrangeForgetsTheOrder shuffles random lists.
func TestArrangeForgetsTheOrder(t *testing.T) {
	rng := seeded()
	for range 500 {
		var list []pool.Upstream
		for range rng.IntN(12) {
			list = append(list, pool.Upstream{
				Address: string(rune('a'+rng.IntN(4))) + ":1", Weight: float64(rng.IntN(2)), Cores: rng.IntN(2),
				StartedAt: epoch.Add(time.Duration(rng.IntN(2)) * time.Hour), Draining: rng.IntN(2) == 0,
			})
		}
		set := arrange(list, own{})
		rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		require.Equal(t, set, arrange(list, own{}))
		require.True(t, same(set, arrange(list, own{})))

		var addresses []string
		for _, u := range set {
			addresses = append(addresses, u.Address)
		}
		require.True(t, slices.IsSorted(addresses))
		require.Len(t, slices.Compact(addresses), len(set))
		for _, u := range list {
			require.Contains(t, addresses, u.Address)
		}
	}
}

func TestSameComparesEveryField(t *testing.T) {
	base := pool.Upstream{Address: "a:1", Weight: 1, Cores: 2, StartedAt: epoch, StopsAt: epoch}
	others := pool.Upstream{Address: "b:1", Weight: 2, Cores: 3, StartedAt: epoch.Add(1), StopsAt: epoch.Add(1), Draining: true, Heavy: true}
	for i := range reflect.TypeFor[pool.Upstream]().NumField() {
		changed := base
		value := reflect.ValueOf(others).Field(i)
		reflect.ValueOf(&changed).Elem().Field(i).Set(value)
		require.NotEqual(t, base, changed, "others needs another value")
		assert.False(t, same([]pool.Upstream{base}, []pool.Upstream{changed}), reflect.TypeFor[pool.Upstream]().Field(i).Name)
	}
	zone := base
	zone.StartedAt = epoch.In(time.FixedZone("x", 3600))
	assert.True(t, same([]pool.Upstream{base}, []pool.Upstream{zone}), "the same instant elsewhere")
}

func TestPacerKeepsToOneQueryASecond(t *testing.T) {
	rng := seeded()
	p, now := &pacer{gap: time.Second, rng: seeded()}, epoch
	before := epoch.Add(-time.Minute)
	for range 10_000 {
		soon := time.Duration(max(0, rng.IntN(6000)-4000)) * time.Millisecond
		now = now.Add(p.pause(now, rng.IntN(10) == 0, soon))
		require.GreaterOrEqual(t, now.Sub(before), time.Second)
		before, now = now, now.Add(time.Duration(rng.IntN(3))*500*time.Millisecond) // the reply takes a while
	}
	now = now.Add(time.Minute)
	assert.Zero(t, p.pause(now, false, 0), "after a long wait it asks at once")
	for _, want := range []float64{1, 2, 4, 5, 5, 5} {
		now = now.Add(time.Hour)
		got := p.pause(now, true, 0).Seconds()
		assert.GreaterOrEqual(t, got, want)
		assert.LessOrEqual(t, got, want*(1+spread))
	}
	p.pause(now.Add(time.Hour), false, 0)
	assert.Less(t, p.pause(now.Add(2*time.Hour), true, 0), 2*time.Second, "a success forgets the failures")
}

func TestPacerSpreadsAndHastens(t *testing.T) {
	p, now := &pacer{gap: 10 * time.Second, rng: seeded()}, epoch
	seen := map[time.Duration]bool{}
	p.pause(now, false, 0)
	for range 50 {
		d := p.pause(now, false, 0)
		assert.GreaterOrEqual(t, d, 10*time.Second)
		assert.LessOrEqual(t, d, 12*time.Second)
		seen[d] = true
		now = now.Add(d)
	}
	assert.Greater(t, len(seen), 40)
	assert.Equal(t, 3*time.Second, p.pause(now, false, 3*time.Second))
	assert.Equal(t, time.Second, p.pause(now.Add(3*time.Second), false, time.Millisecond), "but not below the shortest gap")
}
