package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/weirproxy/weir/agent"
)

func mapsCommand() *cli.Command {
	format := "text"
	return &cli.Command{
		Name:      "maps",
		Usage:     "print the BPF maps of the agent on this node, decoded",
		ArgsUsage: " ",
		Description: "Needs the rights to read BPF maps (root). There are none unless the agent runs with --accept-policy\n" +
			"hash, cpu or least-loaded and could load its program.\n" +
			"Exit codes: 0 printed, 3 there are no maps, 1 they can't be read, 2 wrong usage.",
		Flags: []cli.Flag{outputFlag(&format)},
		Action: func(x *cli.Context) error {
			if err := noArguments(x); err != nil {
				return err
			}
			v, err := agent.Maps(agent.Pins)
			if errors.Is(err, os.ErrNotExist) {
				fmt.Fprintf(x.App.ErrWriter, "weir maps: no agent has pinned maps in %s\n", agent.Pins)
				return errNo
			}
			if err != nil {
				return err
			}
			return show(x.App.Writer, format, v, func(w io.Writer) { printMaps(w, v) })
		},
	}
}

func printMaps(w io.Writer, v agent.MapsView) {
	fmt.Fprintf(w, "accept policy: %s\n\n", v.Policy)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "WORKER\tCPUS\tSTATE\tLAST TURN\tCONNECTIONS\tEXCHANGES\tRESERVED\tACCEPTED")
	for _, x := range v.Workers {
		var cpus []string
		for cpu, worker := range v.CPUs {
			if worker == x.Worker {
				cpus = append(cpus, fmt.Sprint(cpu))
			}
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%.1f ms ago\t%d\t%d\t%d\t%d\n", x.Worker, orNone(cpus), x.State,
			x.Turn.Seconds()*1000, x.Connections, x.Active, x.Reserved, x.Accepted)
	}
	fmt.Fprintln(t, "\nLISTENER\tWORKERS")
	for _, l := range v.Listeners {
		var workers []string
		for _, worker := range l.Workers {
			workers = append(workers, fmt.Sprint(worker))
		}
		fmt.Fprintf(t, "%s\t%s\n", l.Address, orNone(workers))
	}
	fmt.Fprintln(t, "\nDECISION\tCONNECTIONS")
	for _, d := range v.Decisions {
		fmt.Fprintf(t, "%s\t%d\n", d.Reason, d.Count)
	}
	t.Flush()
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ",")
}
