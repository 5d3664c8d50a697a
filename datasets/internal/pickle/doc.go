// Package pickle reads Python pickles, protocols 0 to 4, as plain data and
// without trust: nothing is imported, called or constructed.
//
// A class or function that a pickle names is a Global, and what a pickle would
// make by calling it is an Object that records the callable, the arguments and
// the state. Which globals may be named at all is the caller's list; any other
// ends the reading. What an Object means is for the caller to say: see Ndarray
// and CSR for NumPy's and SciPy's.
//
// The main types: Value, List, Dict, Tuple, Global and Object, made by Load.
//
// # Memory
//
// Each opcode makes at most a few words of memory, and strings alias the input,
// so Load needs memory in proportion to the input. Values may share parts: a
// short pickle can name one list a million times, so whoever walks a value
// bounds the walk.
package pickle
