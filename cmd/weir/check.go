package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/weirproxy/weir/agent"
)

func checkCommand() *cli.Command {
	bpf, format := "auto", "text"
	return &cli.Command{
		Name:      "check",
		Usage:     "tell whether this node is fit: kernel, rights, file systems, sysctls and limits",
		ArgsUsage: " ",
		Description: "Each line says what was found and what it means: ok; less, Weir runs without something; no, it\n" +
			"does not run. Run it as the agent runs, with the same rights. It tries to load a BPF program, and leaves\n" +
			"nothing behind.\n" +
			"Exit codes: 0 no line says no, 3 one does, 2 wrong usage.",
		Flags: []cli.Flag{bpfFlag(&bpf), outputFlag(&format)},
		Action: func(x *cli.Context) error {
			if err := noArguments(x); err != nil {
				return err
			}
			return printCheck(x.App.Writer, format, agent.ThisNode().Check(bpf))
		},
	}
}

func bpfFlag(to *string) cli.Flag {
	return value(groupWorkers, "bpf", choice{to: to, words: []string{"auto", "off", "require"}},
		"use BPF programs: auto, where the kernel and the rights allow it; off; or require, and do not start otherwise")
}

func printCheck(w io.Writer, format string, r agent.CheckReport) error {
	err := show(w, format, r, func(w io.Writer) {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, i := range r.Items {
			fmt.Fprintf(t, "%s\t%s\t%s: %s\n", i.Grade, i.Name, i.Found, i.Means)
		}
		t.Flush()
	})
	if err == nil && !r.Fit {
		return errNo
	}
	return err
}
