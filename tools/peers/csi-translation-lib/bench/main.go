// Measures Kubernetes' own library on the cases of a file, as record-translations reads them: how many translations it does in
// a second of processor time, and what each of them allocates. One JSON object for each operation.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"

	core "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	translation "k8s.io/csi-translation-lib"
	"k8s.io/klog/v2"
)

// What is kept of an answer, so that nothing of its making is left out.
var kept any

type measured struct {
	File      string  `json:"file"`
	Operation string  `json:"op"`
	Cases     int     `json:"cases"`
	PerSecond float64 `json:"perSecond"`
	Allocated float64 `json:"allocations"`
	Bytes     float64 `json:"bytes"`
}

func main() {
	if len(os.Args) < 3 {
		fail("usage: bench-translations SECONDS FILE…")
	}
	seconds, err := strconv.ParseFloat(os.Args[1], 64)
	if err != nil || seconds <= 0 {
		fail("%q is no number of seconds", os.Args[1])
	}
	for _, file := range os.Args[2:] {
		cases, err := read(file)
		if err != nil {
			fail("cannot read the cases in %s: %v", file, err)
		}
		for _, operation := range []string{"pv_to_csi", "pv_to_in_tree", "there_and_back", "class", "copy"} {
			one := measure(operation, cases[operation], time.Duration(seconds*float64(time.Second)))
			one.File = file
			printed, _ := json.Marshal(one)
			fmt.Println(string(printed))
		}
	}
}

func fail(format string, with ...any) {
	fmt.Fprintf(os.Stderr, "bench-translations: "+format+"\n", with...)
	os.Exit(1)
}

// The translations of a file by operation, each ready to be done again and again; those that are refused are left out.
func read(name string) (map[string][]func() error, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	library, log := translation.New(), klog.Background()
	cases := map[string][]func() error{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var one struct {
			Operation string          `json:"op"`
			In        json.RawMessage `json:"in"`
		}
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			return nil, err
		}
		volume, class := new(core.PersistentVolume), new(storage.StorageClass)
		var in any = volume
		if one.Operation == "class" {
			in = class
		}
		if err := json.Unmarshal(one.In, in); err != nil {
			return nil, err
		}
		add := func(operation string, do func() error) {
			if do() == nil {
				cases[operation] = append(cases[operation], do)
			}
		}
		switch one.Operation {
		case "pv_to_csi":
			add("pv_to_csi", func() (err error) { kept, err = library.TranslateInTreePVToCSI(log, volume); return })
			add("there_and_back", func() error {
				there, err := library.TranslateInTreePVToCSI(log, volume)
				if err == nil {
					kept, err = library.TranslateCSIPVToInTree(there)
				}
				return err
			})
			add("copy", func() error { kept = volume.DeepCopy(); return nil })
		case "pv_to_in_tree":
			add("pv_to_in_tree", func() (err error) { kept, err = library.TranslateCSIPVToInTree(volume); return })
		case "class":
			add("class", func() (err error) {
				kept, err = library.TranslateInTreeStorageClassToCSI(log, class.Provisioner, class)
				return
			})
		}
	}
	return cases, lines.Err()
}

func measure(operation string, all []func() error, long time.Duration) measured {
	var before, after runtime.MemStats
	round := func() {
		for _, translate := range all {
			if translate() != nil {
				fail("%s is refused now and was not before", operation)
			}
		}
	}
	round()
	runtime.ReadMemStats(&before)
	round()
	runtime.ReadMemStats(&after)
	runtime.GC()
	began, rounds := used(), 0
	for used()-began < long {
		for range 10 {
			round()
		}
		rounds += 10
	}
	took := (used() - began).Seconds()
	count := float64(len(all))
	return measured{
		Operation: operation,
		Cases:     len(all),
		PerSecond: float64(rounds) * count / took,
		Allocated: float64(after.Mallocs-before.Mallocs) / count,
		Bytes:     float64(after.TotalAlloc-before.TotalAlloc) / count,
	}
}

// The processor time of the process, its collector's included.
func used() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		fail("cannot tell the processor time: %v", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
