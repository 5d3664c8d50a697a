// Package cli is what every command of zerogcn shares: flags that are checked
// all at once, configuration files, and the way a process ends.
//
//   - [Flags] is a flag.FlagSet with groups, YAML configuration files, checks
//     across flags, and help with one line per flag. Its Parse reports every
//     fault of a command line and a configuration file, not the first only.
//   - [Faults] is that list: one error, one line per fault.
//   - [Positive], [Floats], [Choice] and their like bind variables of an options
//     struct to flags, with validation. [Fanouts], [Batch], [Size] and [GPUs]
//     are the types of flags that take a number or a word.
//   - [Main] runs a command under a context that SIGINT and SIGTERM cancel, and
//     turns its error into an exit code and a line on standard error.
//   - [Dispatch] picks the verb of a command that has several.
//
// A command defines its flags on an options struct that already holds the
// defaults:
//
//	o := defaults()
//	fs := cli.NewFlags("train", "Train a graph neural network.")
//	fs.Group("Training")
//	fs.Var(cli.Positive(&o.Epochs), "epochs", "passes over the training nodes")
//	fs.Config("config")
//	if err := fs.Parse(os.Args[1:]); err != nil {
//		return err // for Main to print
//	}
//
// # Ownership
//
// Flags writes the bound variables during Parse and keeps the pointers to them
// for as long as it lives: Values, WriteConfig and Overrides read them again.
// Nothing here is safe for concurrent use.
//
// # Caveats
//
// As in package flag, -name and --name are the same, and a flag that is not
// boolean takes the next argument as its value. Otherwise than there, flags may
// follow other arguments, and an argument that is itself the name of a flag is
// not taken for a value: write -run=-json for a value of that kind.
package cli
