package dynlib

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func touch(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("no ELF"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestCandidates(t *testing.T) {
	root := t.TempDir()
	for _, p := range []string{
		"opt/cuda/lib64/liby.so.12",
		"usr/local/cuda-12.4/lib64/liby.so.12",
		"usr/local/cuda-13.0/targets/x86_64-linux/lib/liby.so.13",
		"venv/bin/python3",
		"venv/lib/python3.12/site-packages/nvidia/cu13/lib/liby.so.13",
		"usr/bin/python3",
		"usr/lib/python3/dist-packages/nvidia/y/lib/liby.so.12",
		"home/.local/lib/python3.11/site-packages/nvidia/y/lib/liby.so.11",
		"home/.local/lib/python3.11/site-packages/other/lib/liby.so.13",
	} {
		touch(t, filepath.Join(root, p))
	}
	env := map[string]string{"CUDA_HOME": root + "/opt/cuda", "HOME": root + "/home", "PATH": "/nowhere:" + root + "/venv/bin:" + root + "/usr/bin"}
	s := Search{Names: []string{"liby.so.13", "liby.so.12", "liby.so.11"}, Environment: func(k string) string { return env[k] }, Root: root}
	var got []string
	for _, c := range s.Candidates() {
		got = append(got, strings.TrimPrefix(c, root+"/"))
	}
	want := []string{
		"liby.so.13", "liby.so.12", "liby.so.11",
		"usr/local/cuda-13.0/targets/x86_64-linux/lib/liby.so.13",
		"opt/cuda/lib64/liby.so.12",
		"usr/local/cuda-12.4/lib64/liby.so.12",
		"venv/lib/python3.12/site-packages/nvidia/cu13/lib/liby.so.13",
		"usr/lib/python3/dist-packages/nvidia/y/lib/liby.so.12",
		"home/.local/lib/python3.11/site-packages/nvidia/y/lib/liby.so.11",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	s.Path = root + "/opt/cuda/lib64"
	if got := s.Candidates(); !slices.Equal(got, []string{root + "/opt/cuda/lib64/liby.so.12"}) {
		t.Errorf("a folder: %v", got)
	}
	s.Path = root + "/mine.so"
	if got := s.Candidates(); !slices.Equal(got, []string{root + "/mine.so"}) {
		t.Errorf("a file: %v", got)
	}
}

func TestOpen(t *testing.T) {
	l, err := Search{Names: []string{"libabsent.so.9", "libc.so.6"}}.Open()
	if err != nil {
		t.Skip(err)
	}
	if l.Path != "libc.so.6" {
		t.Errorf("opened %s", l.Path)
	}
	f, err := l.Symbol("no_such_function_", "abs")
	if err != nil {
		t.Fatal(err)
	}
	if minus := -7; Call(f, uintptr(minus)) != 7 {
		t.Error("abs(-7) is not 7")
	}
	if _, err := l.Symbol("no_such_function_"); err == nil || !strings.Contains(err.Error(), "libc.so.6 has no no_such_function_") {
		t.Errorf("%v", err)
	}
	dir := t.TempDir()
	touch(t, dir+"/broken.so")
	for path, text := range map[string]string{dir + "/broken.so": "broken.so", dir: "no libx.so in", dir + "/absent.so": "absent.so"} {
		_, err := Search{Names: []string{"libx.so"}, Path: path}.Open()
		if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
