//go:build race

package datasets

// raceDetector says that the race detector's own memory and time are in every
// figure.
const raceDetector = true
