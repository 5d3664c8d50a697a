package cuda

import (
	"bytes"
	"fmt"
)

// isPTX tells PTX text from a cubin or fatbin, which are binary.
func isPTX(image []byte) bool {
	return bytes.Contains(image[:min(len(image), 4096)], []byte(".version"))
}

// ptxParameters returns the number of parameters of every kernel of a PTX
// text (".visible .entry name(.param .u64 a, .param .u32 b)"). The driver takes
// the kernel's word for how many arguments it reads, so a launch with too few
// would read garbage: Launch compares with this.
func ptxParameters(ptx []byte) map[string]int {
	kernels := make(map[string]int)
	for rest := ptx; ; {
		_, after, found := bytes.Cut(rest, []byte(".entry"))
		if !found {
			return kernels
		}
		rest = after
		after = bytes.TrimLeft(after, " \t\r\n")
		end := bytes.IndexAny(after, " \t\r\n({;")
		if end <= 0 {
			continue
		}
		name := string(after[:end])
		body := bytes.TrimLeft(after[end:], " \t\r\n")
		kernels[name] = 0
		if len(body) == 0 || body[0] != '(' {
			continue
		}
		list, _, closed := bytes.Cut(body, []byte(")"))
		if closed {
			kernels[name] = bytes.Count(list, []byte(".param"))
		}
	}
}

// checkImage refuses what the driver would crash on rather than report.
func checkImage(image []byte) error {
	if len(image) == 0 {
		return fmt.Errorf("cuda: load module: no bytes")
	}
	if isPTX(image) && bytes.IndexByte(image, 0) >= 0 {
		return fmt.Errorf("cuda: load module: PTX text with a zero at byte %d", bytes.IndexByte(image, 0))
	}
	return nil
}
