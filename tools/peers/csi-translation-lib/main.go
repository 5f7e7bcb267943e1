// Asks Kubernetes' own library about every case that comes in, one JSON object a line, and prints the case with its answer.
// An answer that a case already has is not looked at, so a record read in is a record made anew, and a new case is a line
// with an operation and what goes in.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	core "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	translation "k8s.io/csi-translation-lib"
	"k8s.io/klog/v2"
)

// A case: what is asked, and either what comes out or that it is refused. The words of a refusal are the library's own and
// not part of the record.
type recorded struct {
	Operation string          `json:"op"`
	Namespace string          `json:"ns,omitempty"`
	In        json.RawMessage `json:"in"`
	Out       any             `json:"out,omitempty"`
	Refused   bool            `json:"err,omitempty"`
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	for number := 1; lines.Scan(); number++ {
		answered, err := answer(lines.Bytes())
		if err != nil {
			fmt.Fprintf(os.Stderr, "record-translations: line %d is no case: %v\n", number, err)
			os.Exit(1)
		}
		out.Write(append(answered, '\n'))
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintf(os.Stderr, "record-translations: cannot read the cases: %v\n", err)
		os.Exit(1)
	}
	if err := out.Flush(); err != nil {
		fmt.Fprintf(os.Stderr, "record-translations: cannot write the record: %v\n", err)
		os.Exit(1)
	}
}

func answer(line []byte) ([]byte, error) {
	var one recorded
	if err := json.Unmarshal(line, &one); err != nil {
		return nil, err
	}
	out, refused, err := ask(one)
	if err != nil {
		return nil, err
	}
	one.Out, one.Refused = nil, refused != nil
	if refused == nil {
		one.Out = out
	}
	return json.Marshal(one)
}

// The library's answer, its refusal, or why it could not be asked.
func ask(one recorded) (out any, refused error, wrong error) {
	library, log := translation.New(), klog.Background()
	switch one.Operation {
	case "pv_to_csi":
		return with(one.In, func(volume *core.PersistentVolume) (any, error) {
			return withoutStatus(library.TranslateInTreePVToCSI(log, volume))
		})
	case "pv_to_in_tree":
		return with(one.In, func(volume *core.PersistentVolume) (any, error) {
			return withoutStatus(library.TranslateCSIPVToInTree(volume))
		})
	case "inline":
		return with(one.In, func(volume *core.Volume) (any, error) {
			return withoutStatus(library.TranslateInTreeInlineVolumeToCSI(log, volume, one.Namespace))
		})
	case "class":
		return with(one.In, func(class *storage.StorageClass) (any, error) {
			return library.TranslateInTreeStorageClassToCSI(log, class.Provisioner, class)
		})
	case "repair":
		return with(one.In, func(of *struct{ Driver, Handle, Node string }) (any, error) {
			return library.RepairVolumeHandle(of.Driver, of.Handle, of.Node)
		})
	default:
		return nil, nil, fmt.Errorf("%q is no operation", one.Operation)
	}
}

func with[In any](raw json.RawMessage, ask func(*In) (any, error)) (out any, refused error, wrong error) {
	in := new(In)
	if err := json.Unmarshal(raw, in); err != nil {
		return nil, nil, err
	}
	out, refused = ask(in)
	return out, refused, nil
}

// A translated volume as it is recorded: translation says nothing of a status, and Go would print an empty one.
func withoutStatus(volume *core.PersistentVolume, refused error) (any, error) {
	if refused != nil {
		return nil, refused
	}
	return struct {
		Metadata any `json:"metadata"`
		Spec     any `json:"spec"`
	}{volume.ObjectMeta, volume.Spec}, nil
}
