//go:build !race

package zerocopy

const raceDetector = false
