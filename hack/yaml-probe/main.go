// Command yaml-probe says what Go's YAML libraries make of texts and values.
//
// It reads JSON lines from stdin and answers each with one: {"text": base64} is read as configuration, as a map of strings
// and as manifests; {"value": any} is written.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strconv"

	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/yaml"
)

type question struct {
	// Bytes of a text.
	Text []byte `json:"text"`
	// Do not read it as manifests, which would end the process.
	ConfigOnly bool `json:"config_only"`
	// A JSON value.
	Value json.RawMessage `json:"value"`
}

type answer struct {
	// The text as configuration, written again; none when it is refused.
	Config *string `json:"config"`
	// The text as a map of strings.
	Strings map[string]string `json:"strings"`
	// The text's objects, each written again; none when it is refused.
	Manifest []string `json:"manifest"`
	// The value, written.
	YAML string `json:"yaml"`
	// Why the text is refused as configuration.
	Error string `json:"error,omitempty"`
}

// attempt turns a panic of a library into a refusal.
func attempt(work func() error) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("panic: %v", reason)
		}
	}()
	return work()
}

func read(text []byte, configOnly bool) (out answer) {
	err := attempt(func() error {
		var value any
		if err := yaml.UnmarshalStrict(text, &value); err != nil {
			return err
		}
		written, err := yaml.Marshal(value)
		config := string(written)
		out.Config = &config
		return err
	})
	if err != nil {
		out.Config, out.Error = nil, err.Error()
	}
	if attempt(func() error { return yaml.UnmarshalStrict(text, &out.Strings) }) != nil {
		out.Strings = nil
	}
	if configOnly || attempt(func() error { return manifests(text, &out.Manifest) }) != nil {
		out.Manifest = nil
	}
	return out
}

func manifests(text []byte, out *[]string) error {
	nodes, err := kio.FromBytes(text)
	if err != nil {
		return err
	}
	*out = []string{}
	for _, node := range nodes {
		if node.IsNilOrEmpty() {
			continue
		}
		value, err := node.MarshalJSON()
		if err != nil {
			return err
		}
		written, err := yaml.JSONToYAML(value)
		if err != nil {
			return err
		}
		*out = append(*out, string(written))
	}
	return nil
}

// withNumbers makes integers of what fits, as manifests keep them, and floats of the rest.
func withNumbers(value any) any {
	switch value := value.(type) {
	case json.Number:
		if integer, err := strconv.ParseInt(value.String(), 10, 64); err == nil {
			return integer
		}
		if integer, err := strconv.ParseUint(value.String(), 10, 64); err == nil {
			return integer
		}
		float, _ := value.Float64()
		return float
	case []any:
		for index := range value {
			value[index] = withNumbers(value[index])
		}
	case map[string]any:
		for key := range value {
			value[key] = withNumbers(value[key])
		}
	}
	return value
}

func write(value json.RawMessage) (out answer) {
	var decoded any
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.UseNumber()
	if err := decoder.Decode(&decoded); err != nil {
		out.Error = err.Error()
		return out
	}
	written, err := yaml.Marshal(withNumbers(decoded))
	if err != nil {
		out.Error = err.Error()
	}
	out.YAML = string(written)
	return out
}

func main() {
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(nil, 1<<26)
	output := json.NewEncoder(os.Stdout)
	output.SetEscapeHTML(false)
	for input.Scan() {
		var asked question
		if err := json.Unmarshal(input.Bytes(), &asked); err != nil {
			fmt.Fprintln(os.Stderr, "yaml-probe:", err)
			os.Exit(1)
		}
		result := answer{}
		if asked.Value != nil {
			result = write(asked.Value)
		} else {
			result = read(asked.Text, asked.ConfigOnly)
		}
		if err := output.Encode(result); err != nil {
			os.Exit(1)
		}
	}
}
