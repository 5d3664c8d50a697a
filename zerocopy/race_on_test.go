//go:build race

package zerocopy

// raceDetector slows the plain loops of the references some twentyfold: fewer
// widths are tried then.
const raceDetector = true
