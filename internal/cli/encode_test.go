package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEncodeIsReadBack(t *testing.T) {
	f := file{
		Name: "5", Wait: 2 * time.Minute, Size: 64 << 20, Share: .2, Seed: 7, Hosts: []string{"127.0.0.1:9", "*", "true"},
		Consul: &consul{"x: y", time.Hour + 90*time.Second}, Runs: []run{{"random"}, {"expected"}}, common: common{3, true},
	}
	text, err := Encode(&f)
	require.NoError(t, err)
	assert.Equal(t, `name: '5'
wait: 2m0s
size: 64MiB
share: 0.2
seed: 7
hosts: ['127.0.0.1:9', '*', 'true']
consul:
  service: 'x: y'
  keep_last: 1h1m30s
runs: [{policy: random}, {policy: expected}]
attempts: 3
'on': true
`, string(text))
	again, _, err := decodeText(string(text))
	require.NoError(t, err)
	assert.Equal(t, f, again)
}

func TestEncodeHidesPasswords(t *testing.T) {
	text, err := Encode(struct {
		URL string `yaml:"url"`
	}{"https://scraper:topsecret@prometheus.internal/rules"})
	require.NoError(t, err)
	assert.Equal(t, "url: https://scraper:xxxxx@prometheus.internal/rules\n", string(text))
}
