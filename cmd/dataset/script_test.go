package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"zerogcn/internal/cli/clitest"
	"zerogcn/internal/sharedtest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"dataset": main})
}

// TestScripts runs the scripts that need nothing but the command. The one that
// trains builds train and evaluate too.
func TestScripts(t *testing.T) {
	bin := t.TempDir()
	for _, name := range []string{"train", "evaluate"} {
		build := exec.Command("go", "build", "-o", filepath.Join(bin, name), "zerogcn/cmd/"+name)
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("building %s: %v\n%s", name, err, out)
		}
	}
	run(t, "testdata/script", map[string]string{"PATH": bin + string(os.PathListSeparator) + os.Getenv("PATH")})
}

// TestSharedScripts runs the scripts on real data.
func TestSharedScripts(t *testing.T) {
	run(t, "testdata/shared", map[string]string{"DATA": sharedtest.Path(t, "data")})
}

func run(t *testing.T, dir string, env map[string]string) {
	testscript.Run(t, testscript.Params{
		Dir: dir,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			for k, v := range env {
				e.Setenv(k, v)
			}
			return nil
		},
		Cmds:                clitest.Commands(),
		RequireExplicitExec: true,
	})
}
