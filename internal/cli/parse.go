package cli

import (
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"

	"zerogcn/internal/nearest"
	"zerogcn/internal/usage"
)

// Parse reads a command line without the command's name, and the configuration
// file that it names. It returns flag.ErrHelp after printing help for -h or
// -help; else nil, or Faults with everything that is wrong, which counts as an
// error of usage. Values that were good are set even then.
func (fs *Flags) Parse(args []string) error {
	items, help := fs.scan(args)
	if help {
		if err := fs.WriteHelp(fs.Output); err != nil {
			return err
		}
		return flag.ErrHelp
	}
	var faults Faults
	fs.applyConfig(items, &faults)
	for _, d := range fs.order {
		d.before = d.Value.String()
	}
	for _, it := range items {
		if it.fault != nil {
			if it.d != nil {
				it.d.faulty = true
			}
			faults.add(it.fault)
			continue
		}
		if err := it.d.Value.Set(it.value); err != nil {
			it.d.faulty = true
			faults.add(usage.Errorf("-%s: %w", it.d.Name, reason(err)))
			continue
		}
		it.d.origin = FromCommand
	}
	fs.runChecks(&faults)
	return faults.err()
}

// item is a flag of the command line with its value, or a fault.
type item struct {
	d     *definition
	value string
	fault error
}

// scan splits a command line into flags and values without setting any, so
// that the configuration file can be applied first. help reports -h or -help.
func (fs *Flags) scan(args []string) (items []item, help bool) {
	fault := func(d *definition, format string, a ...any) {
		items = append(items, item{d: d, fault: usage.Errorf(format, a...)})
	}
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		if arg == "--" {
			for _, rest := range args {
				fault(nil, "%q: unexpected argument; values are given as -flag value", rest)
			}
			return items, help
		}
		name, value, assigned, ok := splitFlag(arg)
		if !ok {
			fault(nil, "%q: unexpected argument; values are given as -flag value", arg)
			continue
		}
		d := fs.byName[name]
		switch {
		case d == nil && (name == "h" || name == "help"):
			help = true
		case d == nil:
			near := nearest.Name(name, fs.names())
			// What follows is most likely this flag's value: it should not
			// be a second fault.
			if !assigned && len(args) > 0 && !fs.isFlag(args[0]) && !(near != "" && isBool(fs.byName[near].Value)) {
				args = args[1:]
			}
			fault(nil, "-%s: no such flag%s", name, suggest("-", near, "; -help lists the flags"))
		case assigned:
			items = append(items, item{d: d, value: value})
		case isBool(d.Value):
			items = append(items, item{d: d, value: "true"})
		case len(args) == 0 || fs.isFlag(args[0]):
			fault(d, "-%s: needs a value, as in -%s %s", name, name, placeholder(d.Flag))
		default:
			items = append(items, item{d: d, value: args[0]})
			args = args[1:]
		}
	}
	return items, help
}

// splitFlag takes -name, --name and -name=value apart. ok is false for
// arguments that are no flags, negative numbers among them.
func splitFlag(arg string) (name, value string, assigned, ok bool) {
	name, ok = strings.CutPrefix(arg, "-")
	if !ok {
		return "", "", false, false
	}
	name = strings.TrimPrefix(name, "-")
	name, value, assigned = strings.Cut(name, "=")
	if name == "" || name[0] == '-' {
		return "", "", false, false
	}
	if _, err := strconv.ParseFloat(name, 64); err == nil && name[0] <= '9' {
		return "", "", false, false
	}
	return name, value, assigned, true
}

// isFlag reports whether an argument where a value is expected is rather the
// next flag: one that is defined, or help.
func (fs *Flags) isFlag(arg string) bool {
	name, _, _, ok := splitFlag(arg)
	return ok && (fs.byName[name] != nil || name == "h" || name == "help")
}

// isBool tells the flags that need no value, as package flag does.
func isBool(v flag.Value) bool {
	b, ok := v.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// suggest ends a message with the nearest name, or with other if there is none.
func suggest(prefix, near, other string) string {
	if near == "" {
		return other
	}
	return "; did you mean " + prefix + near + "?"
}

// reason strips the name of the function that strconv puts before a message.
func reason(err error) error {
	if num, ok := errors.AsType[*strconv.NumError](err); ok {
		return fmt.Errorf("%q: %w", num.Num, num.Err)
	}
	return err
}
