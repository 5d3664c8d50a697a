// Package sharedtest finds the data and golden files that lie beside the
// repository, in ../shared, for tests. They are never copied in.
package sharedtest

import (
	"os"
	"path/filepath"
	"testing"
)

// Path returns the path of a file or folder under ../shared. Where it is
// absent the test is skipped, or failed when ZEROGCN_REQUIRE_SHARED=1.
func Path(t testing.TB, rel string) string {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	p := filepath.Join(root, "..", "shared", filepath.FromSlash(rel))
	if _, err := os.Stat(p); err != nil {
		const msg = "%s is not beside the repository: the test needs the shared data folder"
		if os.Getenv("ZEROGCN_REQUIRE_SHARED") == "1" {
			t.Fatalf(msg, filepath.Join("../shared", rel))
		}
		t.Skipf(msg, filepath.Join("../shared", rel))
	}
	return p
}

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", os.ErrNotExist
		}
		dir = up
	}
}
