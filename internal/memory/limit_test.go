package memory

import (
	"math"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
)

func TestTheLimitOfTheSystem(t *testing.T) {
	const (
		meminfo = "MemTotal:        2097152 kB\nMemFree:          100 kB\n"
		none    = "9223372036854771712\n"
	)
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"no files":   {nil, math.MaxInt64},
		"no cgroup":  {map[string]string{"proc/meminfo": meminfo}, 2 << 30},
		"no numbers": {map[string]string{"proc/meminfo": "?", "proc/self/cgroup": "?\n0\n", "sys/fs/cgroup/memory.max": "?"}, math.MaxInt64},
		"v2, a container": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "134217728\n", "sys/fs/cgroup/memory.high": "max\n",
		}, 128 << 20},
		"v2, a slice": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/system.slice/pilotfish.service\n",
			"sys/fs/cgroup/system.slice/pilotfish.service/memory.max":  "max\n",
			"sys/fs/cgroup/system.slice/pilotfish.service/memory.high": "629145600\n",
			"sys/fs/cgroup/system.slice/memory.max":                    "536870912\n",
			"sys/fs/cgroup/system.slice/memory.high":                   "max\n",
		}, 512 << 20},
		"v2, more than the machine has": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "4294967296\n",
		}, 2 << 30},
		"v1": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "5:cpu,cpuacct:/a\n4:memory:/a/b\n0::/a\n",
			"sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": none,
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes":   "268435456\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":     none,
		}, 256 << 20},
		"v1, a container that sees the host's names": {map[string]string{
			"proc/self/cgroup":                           "4:memory:/docker/0123\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "268435456\n",
		}, 256 << 20},
		"a name outside of the container": {map[string]string{
			"proc/self/cgroup": "0::/../../other\n", "sys/fs/cgroup/memory.max": "268435456\n",
		}, 256 << 20},
	} {
		root := fstest.MapFS{}
		for path, text := range c.files {
			root[path] = &fstest.MapFile{Data: []byte(text)}
		}
		assert.Equal(t, c.want, systemLimit(root), name)
	}
}
