package selection

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNewKnowsEveryName(t *testing.T) {
	for _, name := range Names() {
		policy, err := New(name)
		require.NoError(t, err)
		assert.NotNil(t, policy, name)
	}
}

func TestNewRefusesOtherNames(t *testing.T) {
	for _, name := range []string{"", "Baseline", "expected "} {
		_, err := New(name)
		require.Error(t, err)
		assert.ErrorContains(t, err, `unknown selection policy "`+name+`": want one of baseline, random,`)
	}
}
