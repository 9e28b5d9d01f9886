package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/weirproxy/weir/agent"
)

func versionCommand() *cli.Command {
	return &cli.Command{
		Name:      "version",
		Usage:     "print what this binary was made from",
		ArgsUsage: " ",
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usagef("unexpected argument %q: the command takes none", c.Args().First())
			}
			b := agent.Version(version, commit)
			fmt.Fprintf(c.App.Writer, "weir %s\ncommit %s\n%s %s\n", b.Version, b.Commit, b.Go, b.Platform)
			return nil
		},
	}
}
