// Package usage marks errors that the user can mend: bad flags and bad input.
// Commands end with exit code 2 for those, with 1 for all others.
package usage

import (
	"errors"
	"fmt"
)

// Error is an error of usage or input. Its text is one line: what is wrong,
// where, and what to do.
type Error struct{ err error }

func (e *Error) Error() string { return e.err.Error() }
func (e *Error) Unwrap() error { return e.err }

// Errorf is fmt.Errorf for an error that the user can mend.
func Errorf(format string, args ...any) error { return &Error{fmt.Errorf(format, args...)} }

// Wrap marks err, unless it is nil or marked already.
func Wrap(err error) error {
	if err == nil || Is(err) {
		return err
	}
	return &Error{err}
}

// Is reports whether err, or an error it wraps, is the user's to mend.
func Is(err error) bool {
	var u *Error
	return errors.As(err, &u)
}
