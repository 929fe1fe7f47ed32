//go:build !unix

package upstreamclient

const canTryRead = false

func tryRead(uintptr, []byte) (int, error) { return 0, errAgain }

func hasCome(uintptr) bool { return false }
