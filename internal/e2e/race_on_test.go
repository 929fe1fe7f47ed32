//go:build race

package e2e

// raceDetector is on in pilotfish when it is on in its tests.
const raceDetector = true
