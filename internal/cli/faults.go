package cli

import (
	"errors"
	"strings"

	"zerogcn/internal/usage"
)

// Faults is everything wrong with a command line and its configuration file,
// in the order in which it was found. Each element is one line of text that
// names its place: a flag, or a file and line.
type Faults []error

// Error joins the faults, one per line.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, err := range f {
		lines[i] = oneLine(err.Error())
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.Is and errors.As look into every fault.
func (f Faults) Unwrap() []error { return f }

// add appends err, or all of its elements if it is a list of faults itself.
func (f *Faults) add(err error) {
	if list, ok := errors.AsType[Faults](err); ok {
		*f = append(*f, list...)
		return
	}
	*f = append(*f, usage.Wrap(err))
}

// err returns nil for an empty list.
func (f Faults) err() error {
	if len(f) == 0 {
		return nil
	}
	return f
}

// oneLine makes a message fit for a log that is read line by line.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
