package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/settings"
)

// shop has commands with everything that a command can have.
func shop() (Program, *sellCommand) {
	sell := &sellCommand{Within: 2 * time.Second, terms: terms{Weight: 1 << 10}}
	return Program{Name: "shop", Description: "Sells and buys.", Commands: []Command{
		{Name: "sell", About: "Sell what there is.", Do: sell},
		{Name: "buy", About: "Buy what there is not.", Do: new(doCommand)},
	}}, sell
}

type sellCommand struct {
	Item  string   `arg:"" help:"What is sold."`
	To    []string `arg:"" optional:"" help:"Who gets it."`
	Price prices
	terms
	Count    int           `short:"n" default:"1" placeholder:"N" help:"How many."`
	Within   time.Duration `help:"How soon."`
	Note     []string      `default:"none" help:"What is said of it; it may be long, and then it goes on in the next line."`
	Paid     string        `default:"cash" enum:"cash,card" help:"Paid by cash or card."`
	Seed     uint64        `help:"Chance."`
	Receipts string        `type:"existingdir" placeholder:"DIR" help:"Where receipts go."`
	Hidden   int
	sold     int
}

type prices struct {
	Each float64 `required:"" help:"What each costs."`
}

type terms struct {
	Weight settings.Size `help:"What each weighs."`
	Gift   bool          `help:"Nobody pays."`
}

func (s *sellCommand) Run(Console) error { s.sold++; return nil }

func TestFlagsAndArguments(t *testing.T) {
	dir := t.TempDir()
	p, sell := shop()
	args := []string{"sell", "--each=2.5", "tea", "-n3", "--weight=2KiB", "Ann", "--gift", "--note=a,b", "--note", "c",
		"--within=1m", "--seed=18446744073709551615", "--receipts=" + dir, "--", "--paid"}
	assert.Zero(t, p.Run(args, Console{}))
	assert.Equal(t, &sellCommand{
		Item: "tea", To: []string{"Ann", "--paid"}, Price: prices{Each: 2.5}, terms: terms{Weight: 2 << 10, Gift: true}, Count: 3,
		Within: time.Minute, Note: []string{"a,b", "c"}, Paid: "cash", Seed: 18446744073709551615, Receipts: dir, sold: 1,
	}, sell)

	p, sell = shop()
	assert.Zero(t, p.Run([]string{"sell", "tea", "--each", "1"}, Console{}))
	assert.Equal(t, &sellCommand{
		Item: "tea", Price: prices{Each: 1}, terms: terms{Weight: 1 << 10}, Count: 1, Within: 2 * time.Second, Note: []string{"none"}, Paid: "cash", sold: 1,
	}, sell)
}

func TestACommandLineThatMakesNoSense(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, `expected one of "sell", "buy"`},
		{[]string{"sel"}, `unexpected argument sel, did you mean "sell"?`},
		{[]string{"quarrel"}, `unexpected argument quarrel`},
		{[]string{"--versin"}, `unknown flag --versin, did you mean "--version"?`},
		{[]string{"--gift", "sell"}, `unknown flag --gift`},
		{[]string{"sell"}, `expected "<item>"`},
		{[]string{"sell", "tea"}, `missing flags: --each=FLOAT64`},
		{[]string{"sell", "tea", "--each"}, `--each: it needs a value`},
		{[]string{"sell", "tea", "--each=x"}, `--each: "x" is not a number`},
		{[]string{"sell", "tea", "--each=1", "--weight=1x"}, `--weight: "1x" is not a size such as 65536, 512KiB, 64MiB or 1GiB`},
		{[]string{"sell", "tea", "--each=1", "-n", "x"}, `--count: "x" is not a whole number`},
		{[]string{"sell", "tea", "--each=1", "-x"}, `unknown flag -x`},
		{[]string{"sell", "tea", "--each=1", "--within=5"}, `--within: 5 has no unit: write 5s`},
		{[]string{"sell", "tea", "--each=1", "--gift=maybe"}, `--gift: "maybe" is neither true nor false`},
		{[]string{"sell", "tea", "--each=1", "--paid=gold"}, `--paid must be one of "cash","card" but got "gold"`},
		{[]string{"sell", "tea", "--each=1", "--hidden=1"}, `unknown flag --hidden`},
		{[]string{"sell", "tea", "--each=1", "--receipts=" + filepath.Join(dir, "gone")}, `--receipts: stat ` + filepath.Join(dir, "gone") + `: no such file or directory`},
		{[]string{"buy", "more"}, `unexpected argument more`},
	} {
		p, _ := shop()
		_, err := p.parse(c.args)
		assert.EqualError(t, err, c.want, "%q", c.args)
	}
}

func helpOf(t *testing.T, p Program, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	assert.Zero(t, p.Run(args, Console{Out: &out}))
	return out.String()
}

func TestHelp(t *testing.T) {
	p, _ := shop()
	assert.Equal(t, `Usage: shop <command> [flags]

Sells and buys.

Flags:
  -h, --help      Show this help.
      --version   Print the version.

Commands:
  sell --each=FLOAT64 <item> [<to> ...] [flags]
    Sell what there is.

  buy [flags]
    Buy what there is not.

Run "shop <command> --help" for more information on a command.
`, helpOf(t, p, "--help"))
	assert.Equal(t, `Usage: shop sell --each=FLOAT64 <item> [<to> ...] [flags]

Sell what there is.

Arguments:
  <item>
    What is sold.
  [<to> ...]
    Who gets it.

Flags:
  -h, --help              Show this help.
      --version           Print the version.
      --each FLOAT64      What each costs.
      --weight SIZE       What each weighs. (default 1KiB)
      --gift              Nobody pays.
  -n, --count N           How many. (default 1)
      --within DURATION   How soon. (default 2s)
      --note STRING       What is said of it; it may be long, and then it
                          goes on in the next line. (default none)
      --paid STRING       Paid by cash or card. (default cash)
      --seed UINT64       Chance.
      --receipts DIR      Where receipts go.
`, helpOf(t, p, "sell", "-h"))
}

// lendCommand has an argument with a default.
type lendCommand struct {
	To string `arg:"" default:"Ann" enum:"Ann,Bob" help:"Who gets it."`
}

func (*lendCommand) Run(Console) error { return nil }

func TestAProgramWithoutCommands(t *testing.T) {
	for _, c := range []struct {
		args     []string
		to, want string
	}{
		{nil, "Ann", ""},
		{[]string{"Bob"}, "Bob", ""},
		{[]string{"Eve"}, "Eve", `<to> must be one of "Ann","Bob" but got "Eve"`},
	} {
		lend := new(lendCommand)
		_, err := Program{Name: "lend", Do: lend}.parse(c.args)
		assert.Equal(t, c.to, lend.To)
		if c.want == "" {
			assert.NoError(t, err)
		} else {
			assert.EqualError(t, err, c.want)
		}
	}
	assert.Equal(t, `Usage: lend [<to>] [flags]

Lends what there is.

Arguments:
  [<to>]
    Who gets it. (default Ann)

Flags:
  -h, --help      Show this help.
      --version   Print the version.
`, helpOf(t, Program{Name: "lend", Description: "Lends what there is.", Do: new(lendCommand)}, "-h"))
}

func TestHelpFillsItsLines(t *testing.T) {
	a, b := strings.Repeat("a", helpWidth/2), strings.Repeat("b", helpWidth/2-1)
	assert.Equal(t, a+" "+b+"\n", wrapped(a+" "+b, ""))
	assert.Equal(t, a+"\nb"+b+"\n", wrapped(a+" b"+b, ""))
}

func TestNamesOfFiles(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	t.Setenv("HOME", dir)
	t.Chdir(dir)
	for _, c := range []struct{ kind, path, want, err string }{
		{kind: "path", path: "", want: ""},
		{kind: "path", path: "-", want: "-"},
		{kind: "path", path: "new", want: filepath.Join(dir, "new")},
		{kind: "path", path: "~/new", want: filepath.Join(dir, "new")},
		{kind: "existingfile", path: "file", want: file},
		{kind: "existingfile", path: ".", err: strconv.Quote(dir) + " is a directory"},
		{kind: "existingdir", path: "~/", want: dir},
		{kind: "existingdir", path: "file", err: strconv.Quote(file) + " is not a directory"},
	} {
		got, err := located(c.kind, c.path)
		if c.err != "" {
			assert.EqualError(t, err, c.err)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, c.want, got, "%+v", c)
	}
}
