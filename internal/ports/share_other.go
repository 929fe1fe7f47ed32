//go:build !linux

package ports

import "errors"

func share(int) error { return errors.New("ports can be shared on Linux only") }

func steerAway(int) error { return nil }

func unsteer(int) error { return nil }

func ignoreRequests(int) error { return nil }

func queued(int) (int, error) { return 0, nil }
