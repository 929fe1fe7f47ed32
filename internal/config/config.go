// Package config is what an operator can set. Every key has a default, an
// unknown key is an error, and every error names file, line and column.
package config

import (
	"time"

	"example.org/pilotfish/internal/breaker"
	"example.org/pilotfish/internal/report"
	"example.org/pilotfish/internal/settings"
)

// Config is the whole configuration. Its zero value is not usable; start from Default.
type Config struct {
	// Listen is where submitters post jobs; Admin is where operators look.
	Listen string `yaml:"listen"`
	Admin  string `yaml:"admin"`
	// ReusePort lets another process of the same user share both ports, to
	// take over from this one. Off, so that one started by mistake is told so.
	ReusePort bool `yaml:"reuse_port"`
	// Hosts are names that may stand in the Host header besides this machine's own.
	Hosts []string `yaml:"hosts"`

	Discovery Discovery        `yaml:"discovery"`
	Reports   report.Settings  `yaml:"reports"`
	Job       Job              `yaml:"job"`
	Selection Selection        `yaml:"selection"`
	Overload  Overload         `yaml:"overload"`
	Breaker   breaker.Settings `yaml:"breaker"`
	Retry     Retry            `yaml:"retry"`
	Queue     Queue            `yaml:"queue"`
	Prewarm   Prewarm          `yaml:"prewarm"`
	Stream    Stream           `yaml:"stream"`
	Shutdown  Shutdown         `yaml:"shutdown"`
	Log       Log              `yaml:"log"`
	Debug     Debug            `yaml:"debug"`
}

// Discovery says where the upstreams come from: exactly one of Static, File,
// DNS and Consul.
type Discovery struct {
	// Static is a fixed list of host:port.
	Static []string `yaml:"static"`
	File   *File    `yaml:"file"`
	DNS    *DNS     `yaml:"dns"`
	Consul *Consul  `yaml:"consul"`
}

// File lists the upstreams, one to a line or as JSON.
type File struct {
	Path     string        `yaml:"path"`
	Interval time.Duration `yaml:"interval"`
}

// DNS is a name that has the upstreams as its records.
type DNS struct {
	Name     string        `yaml:"name"`
	Record   string        `yaml:"record"`
	Port     int           `yaml:"port"`
	Interval time.Duration `yaml:"interval"`
}

// Consul is a service whose passing instances are the upstreams.
type Consul struct {
	Address    string        `yaml:"address"`
	Service    string        `yaml:"service"`
	Tag        string        `yaml:"tag"`
	Datacenter string        `yaml:"datacenter"`
	Namespace  string        `yaml:"namespace"`
	TokenFile  string        `yaml:"token_file"`
	TLS        TLS           `yaml:"tls"`
	Stale      bool          `yaml:"stale"`
	Wait       time.Duration `yaml:"wait"`
	// KeepLast is how long an empty answer must be repeated before it is
	// believed; one that lacks more than half, a third of it. Default 30 s.
	KeepLast time.Duration `yaml:"keep_last"`
	// Snapshot is a file that keeps the last set over a restart; "" keeps none.
	Snapshot string `yaml:"snapshot"`
}

// TLS is how to reach a Consul agent by https.
type TLS struct {
	CAFile     string `yaml:"ca_file"`
	CertFile   string `yaml:"cert_file"`
	KeyFile    string `yaml:"key_file"`
	ServerName string `yaml:"server_name"`
}

// Job says where a job's members are, as JSON Pointers, and how large it may be.
type Job struct {
	Project  string `yaml:"project"`
	Priority string `yaml:"priority"`
	Queue    string `yaml:"queue"`
	Evaluate string `yaml:"evaluate"`
	Stream   string `yaml:"stream"`
	Session  string `yaml:"session"`
	// MaxBody bounds one body; Budget bounds all bodies kept for retries.
	MaxBody settings.Size `yaml:"max_body"`
	Budget  settings.Size `yaml:"budget"`
}

// Selection names the host selection policy.
type Selection struct {
	Policy string `yaml:"policy"`
}

// Overload names the overload detection policy and its limit.
type Overload struct {
	Policy  string  `yaml:"policy"`
	Stalled float64 `yaml:"stalled"`
}

// Retry bounds the attempts of a job.
type Retry struct {
	Attempts       int           `yaml:"attempts"`
	ConnectTimeout time.Duration `yaml:"connect_timeout"`
	// FirstByte bounds one attempt up to the first byte of its answer when
	// the job does not say.
	FirstByte time.Duration `yaml:"first_byte"`
	// Budget is the share of jobs that may be retried.
	Budget float64 `yaml:"budget"`
}

// Queue bounds the jobs that wait for an eligible upstream.
type Queue struct {
	Jobs  int           `yaml:"jobs"`
	Bytes settings.Size `yaml:"bytes"`
	Wait  time.Duration `yaml:"wait"`
}

// Prewarm says what is fetched elsewhere when an upstream gives notice that it will go.
type Prewarm struct {
	// Projects bounds those that are fetched for one notice; 0 fetches nothing.
	Projects int `yaml:"projects"`
	// Path is where upstreams take prefetches.
	Path string `yaml:"path"`
}

// Stream bounds the answers.
type Stream struct {
	// Idle is how long an upstream may keep silent amid an answer.
	Idle time.Duration `yaml:"idle"`
	// ExplainHeaders adds headers about the decision.
	ExplainHeaders bool `yaml:"explain_headers"`
}

// Shutdown bounds the end.
type Shutdown struct {
	// Grace is how long accepted jobs may take to finish.
	Grace time.Duration `yaml:"grace"`
}

// Log sets what is logged.
type Log struct {
	Level string `yaml:"level"`
}

// Debug opens what is closed by default.
type Debug struct {
	// Pprof serves /debug/pprof on the admin port.
	Pprof bool `yaml:"pprof"`
}

// Default is the configuration of an empty file.
func Default() Config {
	return Config{
		Listen:  "127.0.0.1:8080",
		Admin:   "127.0.0.1:9180",
		Reports: report.Default(),
		Job: Job{
			Project:  "/project_id",
			Priority: "/priority",
			Queue:    "/timeouts/queue_seconds",
			Evaluate: "/timeouts/evaluate_seconds",
			Stream:   "/timeouts/stream_seconds",
			Session:  "/session_id",
			MaxBody:  64 << 20,
			Budget:   1 << 30,
		},
		Selection: Selection{Policy: "expected"},
		Overload:  Overload{Policy: "none", Stalled: 100},
		Breaker:   breaker.Default(),
		Retry: Retry{
			Attempts:       3,
			ConnectTimeout: time.Second,
			FirstByte:      5 * time.Minute,
			Budget:         0.2,
		},
		Queue:    Queue{Jobs: 1000, Bytes: 256 << 20, Wait: 10 * time.Second},
		Prewarm:  Prewarm{Projects: 10, Path: "/v1/prefetch"},
		Stream:   Stream{Idle: 3 * time.Hour},
		Shutdown: Shutdown{Grace: 2 * time.Minute},
		Log:      Log{Level: "info"},
	}
}
