package cuda_test

import (
	"flag"
	"os"
	"testing"

	"zerogcn/cuda"
)

// On the emulator, a thousand times as slow as a GPU, a part of the random cases
// has to do.
func TestMain(m *testing.M) {
	flag.Parse()
	if _, err := cuda.Load(); cuda.Absent(err) {
		chosen := false
		flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "rapid.checks" })
		if !chosen {
			if err := flag.Set("rapid.checks", "30"); err != nil {
				panic(err)
			}
		}
	}
	os.Exit(m.Run())
}
