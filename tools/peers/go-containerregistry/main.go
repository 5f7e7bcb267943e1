// Command check-image reads an OCI image layout and says whether all of it fits together: digests, sizes, layers and
// configurations of every platform.
package main

import (
	"fmt"
	"os"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: check-image FOLDER")
		os.Exit(2)
	}
	index, err := layout.ImageIndexFromPath(os.Args[1])
	if err == nil {
		err = validate.Index(index)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "check-image: %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}
