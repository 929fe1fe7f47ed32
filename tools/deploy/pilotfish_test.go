package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

// pilotfish is the program, which TestMain builds.
var pilotfish string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "pilotfish-deploy-")
	if err != nil {
		panic(err)
	}
	pilotfish = filepath.Join(dir, "pilotfish")
	build := exec.Command("go", "build", "-o", pilotfish, "./cmd/pilotfish")
	build.Dir, build.Stderr = root, os.Stderr
	if err := build.Run(); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// settings are what of a configuration its surroundings must agree with.
type settings struct {
	Listen, Admin string
	Discovery     struct {
		DNS struct {
			Name string
			Port int32
		}
		Kubernetes struct {
			Service, Namespace string
		}
		Consul struct {
			Address, Service, Snapshot string
		}
	}
	Job      struct{ Budget string }
	Queue    struct{ Bytes string }
	Shutdown struct{ Grace string }
}

// configuration has pilotfish check a configuration, and reads it.
func configuration(t *testing.T, text []byte) settings {
	t.Helper()
	must(t, pilotfish, "check", "--config", write(t, "pilotfish.yaml", text))
	var s settings
	require.NoError(t, yaml.Unmarshal(text, &s))
	return s
}

func (s settings) grace(t *testing.T) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(s.Shutdown.Grace)
	require.NoError(t, err)
	return d
}

// bodies is the most that bodies can take, in bytes.
func (s settings) bodies(t *testing.T) int64 {
	t.Helper()
	sum := resource.Quantity{}
	for _, size := range []string{s.Job.Budget, s.Queue.Bytes} {
		q, err := resource.ParseQuantity(size[:len(size)-1]) // MiB is Mi there
		require.NoError(t, err)
		sum.Add(q)
	}
	return sum.Value()
}

func TestPilotfishRefusesAConfigurationThatIsWrong(t *testing.T) {
	out, err := run(pilotfish, "check", "--config", write(t, "pilotfish.yaml", []byte("shutdown: {grase: 2m}\n")))
	require.Error(t, err)
	assert.Contains(t, out, "grase")
}
