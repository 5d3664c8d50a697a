package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"

	"zerogcn/internal/nearest"
	"zerogcn/internal/usage"
)

// maxConfig bounds the size of a configuration file, in bytes: one that is
// larger is some other file.
const maxConfig = 1 << 20

// applyConfig finds the configuration file in the scanned command line, or
// asks configFrom for it, and sets the flags that it names.
func (fs *Flags) applyConfig(items []item, faults *Faults) {
	given := func(name string) (string, bool) {
		fs.mustLookup(name)
		for i := len(items) - 1; i >= 0; i-- { // the last one wins
			if it := items[i]; it.fault == nil && it.d.Name == name {
				return it.value, true
			}
		}
		return "", false
	}
	var path string
	if fs.configFlag != "" {
		path, _ = given(fs.configFlag)
	}
	if path == "" && fs.configFrom != nil {
		var err error
		if path, err = fs.configFrom(given); err != nil {
			faults.add(err)
			return
		}
	}
	if path == "" {
		return
	}
	text, err := readConfig(path)
	if err != nil {
		faults.add(err)
		return
	}
	fs.setFromYAML(path, text, faults)
}

// readConfig reads a file of at most maxConfig bytes.
func readConfig(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, usage.Errorf("configuration file: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err != nil {
		return nil, usage.Errorf("configuration file: %w", err)
	}
	if len(text) > maxConfig {
		return nil, usage.Errorf("%s: more than %d bytes: not a configuration file", path, maxConfig)
	}
	return text, nil
}

// setFromYAML sets the flags that a configuration file names; path is for messages.
func (fs *Flags) setFromYAML(path string, text []byte, faults *Faults) {
	fault := func(line int, format string, a ...any) {
		faults.add(usage.Errorf("%s:%d: %w", path, line, fmt.Errorf(format, a...)))
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return // empty, or comments only
	case err != nil:
		faults.add(syntaxFault(path, err))
		return
	}
	var more yaml.Node
	if err := dec.Decode(&more); err == nil {
		fault(more.Line, "a second document; a configuration is one mapping of flags' names to values")
		return
	} else if !errors.Is(err, io.EOF) {
		faults.add(syntaxFault(path, err))
		return
	}
	root := &doc
	if root.Kind == yaml.DocumentNode && len(root.Content) == 1 {
		root = root.Content[0]
	}
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return
	}
	if root.Kind != yaml.MappingNode {
		fault(root.Line, "want a mapping of flags' names to values, such as epochs: 20")
		return
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, node := root.Content[i], root.Content[i+1]
		name := key.Value
		d := fs.byName[name]
		switch first := lines[name]; {
		case key.Kind != yaml.ScalarNode:
			fault(key.Line, "a key must be the name of a flag")
			continue
		case first != 0:
			fault(key.Line, "%s: set already in line %d; keep one of the two", name, first)
			continue
		}
		lines[name] = key.Line
		switch {
		case d == nil:
			near := nearest.Name(strings.TrimLeft(name, "-"), fs.names())
			fault(key.Line, "%s: no such flag%s", name, suggest("", near, "; -help lists the flags"))
			continue
		case name == fs.configFlag:
			fault(key.Line, "%s: a configuration file cannot name another", name)
			continue
		}
		value, err := nodeText(d, node)
		if err == nil {
			err = d.Value.Set(value)
		}
		if err != nil {
			d.faulty = true
			fault(node.Line, "%s: %w", name, reason(err))
			continue
		}
		d.origin = FromConfig
	}
}

// syntaxFault names the file in an error of the YAML parser, which begins with
// "yaml: line N: ".
func syntaxFault(path string, err error) error {
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(msg, "line "); ok {
		return usage.Errorf("%s:%s", path, rest)
	}
	return usage.Errorf("%s: %s", path, msg)
}

// nodeText returns a value as the text that the command line would have. The
// scalar's own spelling is used: 5e-4 and 0x10 mean what they mean in a flag.
func nodeText(d *definition, node *yaml.Node) (string, error) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	list, _ := d.Value.(interface{ isList() bool })
	switch {
	case node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null":
		return "", errors.New(`has no value; leave the key out for the default, or write ""`)
	case node.Kind == yaml.ScalarNode:
		return node.Value, nil
	case node.Kind == yaml.SequenceNode && list != nil && list.isList():
		words := make([]string, len(node.Content))
		for i, e := range node.Content {
			if e.Kind != yaml.ScalarNode {
				return "", errors.New("an element of the list is not a single value")
			}
			words[i] = e.Value
		}
		return strings.Join(words, ","), nil
	}
	return "", fmt.Errorf("want one value, written as on the command line: %s", placeholderOr(d, "true or false"))
}

func placeholderOr(d *definition, other string) string {
	if p := placeholder(d.Flag); p != "" {
		return p
	}
	return other
}

// WriteConfig writes all flags but those marked as Invocation, defaults
// included, as a configuration file that Parse reads back to the same values.
// The order is that of definition, under the groups' headings as comments.
func (fs *Flags) WriteConfig(w io.Writer) error {
	root := &yaml.Node{Kind: yaml.MappingNode}
	group := ""
	for _, d := range fs.order {
		if d.invocation {
			continue
		}
		key := &yaml.Node{Kind: yaml.ScalarNode, Value: d.Name}
		if d.group != group {
			group = d.group
			key.HeadComment = "# " + group
		}
		value := &yaml.Node{Kind: yaml.ScalarNode, Value: d.Value.String()}
		if text, ok := d.Value.(interface{ isText() bool }); !ok || text.isText() || value.Value == "" {
			value.Tag = "!!str" // quoted wherever YAML would read something else
		}
		root.Content = append(root.Content, key, value)
	}
	enc := yaml.NewEncoder(w)
	if err := enc.Encode(&yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{root}}); err != nil {
		return err
	}
	return enc.Close()
}
