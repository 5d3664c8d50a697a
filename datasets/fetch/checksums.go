package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"zerogcn/internal/atomicfile"
	"zerogcn/internal/usage"
)

// recordName is the file under the root that keeps the checksums of files for
// which none is published.
const recordName = ".checksums.json"

// record is what is known of a file since it was first used.
type record struct {
	SHA256 string    `json:"sha256"`
	First  time.Time `json:"first_used"`
}

// maxRecordBytes bounds the file of records.
const maxRecordBytes = 4 << 20

// readRecords reads the records under a root, by address.
func readRecords(root string) (map[string]record, error) {
	path := filepath.Join(root, recordName)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]record{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m := map[string]record{}
	if err := json.NewDecoder(io.LimitReader(f, maxRecordBytes)).Decode(&m); err != nil {
		return nil, usage.Errorf("%s: not the JSON that was written (%w): mend or remove it", path, err)
	}
	return m, nil
}

// checkRecord compares a file with the record of its first use, if there is one.
func checkRecord(root, address, sum string) error {
	records, err := readRecords(root)
	if err != nil {
		return err
	}
	if r, ok := records[address]; ok && r.SHA256 != sum {
		return usage.Errorf("%s: the SHA-256 is %s, and was %s when the file was first used on %s: it changed at its publisher; if you want the new one, remove its entry from %s",
			address, sum, r.SHA256, r.First.Format(time.DateOnly), filepath.Join(root, recordName))
	}
	return nil
}

// writeRecords adds the checksums of files at their first use.
func writeRecords(root string, sums map[string]string) error {
	records, err := readRecords(root)
	if err != nil {
		return err
	}
	fresh := false
	for address, sum := range sums {
		if _, ok := records[address]; !ok {
			records[address] = record{sum, time.Now().UTC().Truncate(time.Second)}
			fresh = true
		}
	}
	if !fresh {
		return nil
	}
	return atomicfile.Write(filepath.Join(root, recordName), 0o666, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(records)
	})
}

// hashFile returns the SHA-256 of a file in hexadecimal.
func hashFile(ctx context.Context, path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.CopyBuffer(h, &contextReader{ctx, f}, make([]byte, 1<<20)); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
