//go:build !unix

package lazyconn

const canTryRead = false

func tryRead(uintptr, []byte) (int, error) { return 0, errAgain }

func tryWrite(uintptr, []byte) (int, error) { return 0, errAgain }

func peek(uintptr) (int, error) { return 0, errAgain }
