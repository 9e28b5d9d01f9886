package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// arrange moves the flags of a command before its other arguments, since the flag
// package reads none behind the first of those: "explain GET URL -o json".
// What follows "--" stays where it is.
func arrange(commands []*cli.Command, args []string) []string {
	if len(args) == 0 {
		return args
	}
	if args[0] == "--version" {
		return append([]string{"version"}, args[1:]...)
	}
	i := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.Name == args[0] })
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
