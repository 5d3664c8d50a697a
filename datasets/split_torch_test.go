package datasets

import (
	"archive/zip"
	"bytes"
	"fmt"
	"slices"
	"testing"

	"zerogcn/internal/sharedtest"
)

// torchArchive is a .pt file of what value pickles; it makes tensors of one
// dimension, each with a storage of its own.
func torchArchive(t testing.TB, value func(tensor func(kind string, data []byte, n int) string) string) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	add := func(name string, data []byte) {
		w, err := z.CreateHeader(&zip.FileHeader{Name: "archive/" + name, Method: zip.Store})
		if err == nil {
			_, err = w.Write(data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	storages := 0
	p := value(func(kind string, data []byte, n int) string {
		key, size := fmt.Sprint(storages), "K"+string([]byte{byte(n)})
		storages++
		add("data/"+key, data)
		return "ctorch._utils\n_rebuild_tensor_v2\n((" + pickled("storage") + "ctorch\n" + kind + "\n" + pickled(key) + pickled("cpu") + size + "tQ" +
			"K\x00" + size + "\x85K\x01\x85\x89ccollections\nOrderedDict\n)RtR"
	})
	add("data.pkl", []byte("\x80\x02"+p+"."))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// pickled is a text of less than 256 bytes.
func pickled(s string) string { return "X" + string([]byte{byte(len(s)), 0, 0, 0}) + s }

// torchSplit is a .pt file of a dict of three tensors.
func torchSplit(t testing.TB, keys [3]string, parts [3][]byte, kind string) string {
	return torchArchive(t, func(tensor func(kind string, data []byte, n int) string) string {
		p := "}("
		for i, data := range parts {
			n := len(data)
			if kind == "LongStorage" {
				n /= 8
			}
			p += pickled(keys[i]) + tensor(kind, data, n)
		}
		return p + "u"
	})
}

func int64s(v ...int64) (b []byte) {
	for _, x := range v {
		for k := range 8 {
			b = append(b, byte(x>>(8*k)))
		}
	}
	return b
}

var maskKeys = [3]string{"train_mask", "val_mask", "test_mask"}

func TestTorchSplits(t *testing.T) {
	base := map[string]string{"edges.csv": "0,1\n1,2\n", "labels.csv": "0\n1\n0\n"}
	base["split_10.pt"] = torchSplit(t, maskKeys, [3][]byte{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, "BoolStorage")
	base["split_2.pt"] = torchSplit(t, [3]string{"train", "valid", "test"}, [3][]byte{int64s(2, 1), int64s(0), nil}, "LongStorage")
	d, err := Open(t.Context(), textFolder(t, base), Options{})
	if err != nil {
		t.Fatal(err)
	}
	a, err1 := d.Split(0)
	b, err2 := d.Split(1)
	if got := fmt.Sprint(a, b, err1, err2); got != "{[1 2] [0] []} {[0] [1] [2]} <nil> <nil>" {
		t.Error(got)
	}
	for what, c := range map[string]struct{ file, says string }{
		"node beyond":   {torchSplit(t, maskKeys, [3][]byte{int64s(3), nil, nil}, "LongStorage"), "train_mask: node 3"},
		"node negative": {torchSplit(t, maskKeys, [3][]byte{int64s(0), int64s(-1), nil}, "LongStorage"), "val_mask: node -1"},
		"overlap":       {torchSplit(t, maskKeys, [3][]byte{int64s(0), int64s(0), nil}, "LongStorage"), "node 0 is in train and in valid"},
		"mask short":    {torchSplit(t, maskKeys, [3][]byte{{1, 0}, {0, 1}, {0, 0}}, "BoolStorage"), "(2,)"},
		"part missing":  {torchSplit(t, [3]string{"train_mask", "x", "test_mask"}, [3][]byte{int64s(0), nil, nil}, "LongStorage"), "no tensor val_mask"},
		"no training":   {torchSplit(t, maskKeys, [3][]byte{nil, int64s(0), nil}, "LongStorage"), "empty"},
		"no archive":    {"hello", "zip"},
	} {
		base["split_10.pt"] = c.file
		_, err := Open(t.Context(), textFolder(t, base), Options{})
		wantFault(t, what, err, "split_10.pt", c.says)
	}
}

// TestPCGSplits reads the three splits, whose tensors hold nodes under the names
// of masks.
func TestPCGSplits(t *testing.T) {
	d, err := Open(t.Context(), sharedtest.Path(t, "data/mlgnc-pcg"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if d.NumGivenSplits() != 3 {
		t.Fatalf("%d splits", d.NumGivenSplits())
	}
	var train [3][]int32
	for i := range 3 {
		s, err := d.Split(i)
		if err != nil || len(s.Train) != 1939 || len(s.Valid) != 647 || len(s.Test) != 647 {
			t.Errorf("split %d: %d, %d and %d nodes, %v", i, len(s.Train), len(s.Valid), len(s.Test), err)
		}
		train[i] = s.Train
	}
	if slices.Equal(train[0], train[1]) || slices.Equal(train[1], train[2]) {
		t.Error("splits are equal")
	}
}
