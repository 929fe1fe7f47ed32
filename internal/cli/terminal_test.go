package cli

import (
	"context"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A signal ends the context, and says that it was an interruption.
func TestContext(t *testing.T) {
	ctx, stop := Context()
	defer stop()
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGINT))
	<-ctx.Done()
	assert.ErrorIs(t, context.Cause(ctx), ErrInterrupted)
}
