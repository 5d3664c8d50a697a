package pickle

import "fmt"

// Value is nil, bool, int64, float64, Bytes, string (unicode), *List, *Dict,
// Tuple, Global, *Object or Persistent.
type Value any

// Bytes is a byte string: str of Python 2, bytes of Python 3. It aliases the
// input.
type Bytes []byte

// List is a Python list.
type List struct{ Items []Value }

// Dict is a Python dict; entries are in the order in which they were set, and a
// key may come twice (then the later one counts in Python).
type Dict struct{ Keys, Vals []Value }

// Get returns the last value set for a string key.
func (d *Dict) Get(key string) (Value, bool) {
	for i := len(d.Keys) - 1; i >= 0; i-- {
		if s, ok := Text(d.Keys[i]); ok && s == key {
			return d.Vals[i], true
		}
	}
	return nil, false
}

// Tuple is a Python tuple.
type Tuple []Value

// Global is the name of a class or function.
type Global struct{ Module, Name string }

func (g Global) String() string { return g.Module + "." + g.Name }

// Object is what Python would make by calling Callable with Args. State is the
// argument of BUILD, nil if there was none. Items that were appended or set on
// the object are in List and Dict.
type Object struct {
	Callable Global
	Args     Tuple
	State    Value
	List     List
	Dict     Dict
}

// Persistent is a reference to something outside of the pickle, by an id whose
// meaning is the caller's to know: PyTorch refers to storages so.
type Persistent struct{ ID Value }

// Text returns a string of either kind.
func Text(v Value) (string, bool) {
	switch s := v.(type) {
	case string:
		return s, true
	case Bytes:
		return string(s), true
	}
	return "", false
}

// describe names the kind of a value for messages.
func describe(v Value) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		return "a bool"
	case int64:
		return "an int"
	case float64:
		return "a float"
	case Bytes, string:
		return "a string"
	case *List:
		return "a list"
	case *Dict:
		return "a dict"
	case Tuple:
		return "a tuple"
	case Global:
		return "the name " + v.String()
	case *Object:
		return "an object of " + v.Callable.String()
	case Persistent:
		return "a reference"
	case mark:
		return "a mark"
	}
	return fmt.Sprintf("%T", v)
}
