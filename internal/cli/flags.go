package cli

import (
	"errors"
	"flag"
	"io"
	"os"
	"slices"

	"zerogcn/internal/usage"
)

// Flags is the set of flags of one command. Make one with NewFlags.
type Flags struct {
	// Output is where help is printed; NewFlags sets it to os.Stdout.
	Output io.Writer

	set     *flag.FlagSet // names, values and defaults
	summary string
	group   string
	order   []*definition // in order of definition
	byName  map[string]*definition

	configFlag string // name of the flag that names a configuration file, or ""
	configFile string // its value
	configFrom func(given func(name string) (string, bool)) (string, error)
	checks     []check
}

// definition is what Flags knows of a flag beyond flag.Flag.
type definition struct {
	*flag.Flag
	group      string
	invocation bool   // never written to a configuration file
	origin     Origin // who set it last
	faulty     bool   // a value of it was refused
	before     string // value before the command line was applied
}

type check struct {
	names []string
	f     func() error
}

// Origin tells where the value of a flag comes from.
type Origin int

const (
	Default     Origin = iota // neither a file nor the command line set it
	FromConfig                // the configuration file set it
	FromCommand               // the command line set it
)

// NewFlags returns an empty set for a command (as the user types it, with its
// verb if any: "dataset convert") that does what summary says in one sentence.
func NewFlags(command, summary string) *Flags {
	set := flag.NewFlagSet(command, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.Usage = func() {}
	return &Flags{Output: os.Stdout, set: set, summary: summary, byName: map[string]*definition{}}
}

// Group puts the flags that are defined from here on under a heading of the
// help and of configuration files.
func (fs *Flags) Group(heading string) { fs.group = heading }

// Var defines a flag. The value that v holds now is the default. A name in
// back quotes in help stands for the value, as in package flag. Defining a
// name twice is a mistake of the program and panics, as in package flag.
func (fs *Flags) Var(v flag.Value, name, help string) {
	fs.set.Var(v, name, help)
	d := &definition{Flag: fs.set.Lookup(name), group: fs.group}
	fs.order = append(fs.order, d)
	fs.byName[name] = d
}

// Invocation marks flags that belong to one call of the command and not to the
// experiment (-run, -json, -cpuprofile): WriteConfig and Values leave them out.
func (fs *Flags) Invocation(names ...string) {
	for _, name := range names {
		fs.mustLookup(name).invocation = true
	}
}

// Config defines the flag that names a configuration file.
func (fs *Flags) Config(name string) {
	fs.configFlag = name
	fs.Var(String(&fs.configFile), name, "YAML `FILE` whose keys are flags' names; flags on the command line win")
	fs.Invocation(name)
}

// ConfigFrom has Parse ask f for a configuration file when the command line
// names none: -resume DIR, say, takes the one that DIR holds. f can look up
// what the command line gives for a flag, as text; it returns "" for no file.
func (fs *Flags) ConfigFrom(f func(given func(name string) (string, bool)) (string, error)) {
	fs.configFrom = f
}

// Check has Parse call f once all values are set, unless one of the named
// flags was refused already, and counts its error as a fault of the first of
// them. Checks run in the order in which they were added, all of them: so a
// data set that does not exist is reported together with a misspelt flag.
func (fs *Flags) Check(f func() error, names ...string) {
	for _, name := range names {
		fs.mustLookup(name)
	}
	fs.checks = append(fs.checks, check{names, f})
}

// Origin returns where the value of a flag comes from; call it after Parse.
func (fs *Flags) Origin(name string) Origin { return fs.mustLookup(name).origin }

// Override is a flag of the command line that changes what the configuration
// file (or, where that is silent, the default) says.
type Override struct {
	Name         string
	Config, Flag string // values, as text
}

// Overrides lists, in order of definition, the flags on the command line whose
// values differ from those that would hold without them. Flags marked as
// Invocation are left out.
func (fs *Flags) Overrides() []Override {
	var list []Override
	for _, d := range fs.order {
		if now := d.Value.String(); d.origin == FromCommand && !d.invocation && now != d.before {
			list = append(list, Override{d.Name, d.before, now})
		}
	}
	return list
}

// Value is the name of a flag and its value as text.
type Value struct{ Name, Text string }

// Values lists all flags but those marked as Invocation, in order of definition.
func (fs *Flags) Values() []Value {
	var list []Value
	for _, d := range fs.order {
		if !d.invocation {
			list = append(list, Value{d.Name, d.Value.String()})
		}
	}
	return list
}

// names returns the names of all flags, for suggestions.
func (fs *Flags) names() []string {
	names := make([]string, len(fs.order))
	for i, d := range fs.order {
		names[i] = d.Name
	}
	return names
}

// mustLookup panics on names that were never defined: those come from the
// program, not from its user.
func (fs *Flags) mustLookup(name string) *definition {
	d := fs.byName[name]
	if d == nil {
		panic("cli: flag -" + name + " is not defined")
	}
	return d
}

// runChecks calls the checks whose flags all hold usable values.
func (fs *Flags) runChecks(faults *Faults) {
	for _, c := range fs.checks {
		if slices.ContainsFunc(c.names, func(name string) bool { return fs.byName[name].faulty }) {
			continue
		}
		err := c.f()
		switch _, list := errors.AsType[Faults](err); {
		case err == nil:
		case list || len(c.names) == 0:
			faults.add(err)
		default:
			faults.add(usage.Errorf("-%s: %w", c.names[0], err))
		}
	}
}
