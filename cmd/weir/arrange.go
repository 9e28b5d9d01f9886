package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// arrange moves the flags of a command before its other arguments, since the flag
// package reads none behind the first of those: "explain GET URL -o json".
// What follows "--" stays where it is. "-v" becomes "version", "help COMMAND" the
// command's own "--help".
func arrange(commands []*cli.Command, args []string) []string {
	if len(args) == 0 {
		return args
	}
	find := func(name string) int {
		return slices.IndexFunc(commands, func(c *cli.Command) bool { return c.Name == name })
	}
	switch {
	case args[0] == "-v" || args[0] == "--version":
		args = append([]string{"version"}, args[1:]...)
	case args[0] == "help" && len(args) == 2 && find(args[1]) >= 0:
		return []string{args[1], "--help"}
	}
	i := find(args[0])
	if i < 0 {
		return args
	}
	var flags, others []string
	for rest := args[1:]; len(rest) > 0; rest = rest[1:] {
		arg := rest[0]
		switch {
		case arg == "--":
			others = append(others, rest[1:]...)
			rest = rest[:1]
		case len(arg) < 2 || arg[0] != '-':
			others = append(others, arg)
		default:
			flags = append(flags, arg)
			if len(rest) > 1 && valueFollows(commands[i].Flags, arg) {
				flags = append(flags, rest[1])
				rest = rest[1:]
			}
		}
	}
	out := append([]string{args[0]}, flags...)
	if len(others) > 0 {
		out = append(append(out, "--"), others...)
	}
	return out
}

// valueFollows reports whether the argument after arg is its value.
func valueFollows(flags []cli.Flag, arg string) bool {
	name := strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-")
	for _, f := range flags {
		if slices.Contains(f.Names(), name) {
			d, ok := f.(cli.DocGenerationFlag)
			return ok && d.TakesValue()
		}
	}
	return false // has its value behind '=', or is unknown
}
