package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/weirproxy/weir/agent"
)

func lintCommand() *cli.Command {
	var c agent.Config
	format := "text"
	return &cli.Command{
		Name:      "lint",
		Usage:     "tell what Weir makes of manifests: each annotation as honoured, different, refused or unknown",
		ArgsUsage: " ",
		Description: "Exit codes: 0 clean: all that the manifests ask for is served, in Weir's own way at least;\n" +
			"3 something is refused, unknown, left out or broken; 1 the manifests can't be read; 2 wrong usage.",
		Flags: append(objectFlags(&c), outputFlag(&format)),
		Action: func(x *cli.Context) error {
			if err := noArguments(x); err != nil {
				return err
			}
			if err := needManifests(c); err != nil {
				return err
			}
			r, err := agent.Lint(c.Manifests, c.Objects)
			if err != nil {
				return err
			}
			if err := show(x.App.Writer, format, r, func(w io.Writer) { printReport(w, &r) }); err != nil {
				return err
			}
			if !r.Clean() {
				return errNo
			}
			return nil
		},
	}
}

func printReport(w io.Writer, r *agent.Report) {
	for _, o := range r.Objects {
		title := strings.TrimSpace(o.Kind + " " + strings.TrimPrefix(o.Namespace+"/"+o.Name, "/"))
		if o.File != "" {
			title = strings.TrimSpace(title + " (" + o.File + ")")
		}
		fmt.Fprintln(w, title)
		for _, f := range o.Findings {
			fmt.Fprintf(w, "  %-9s %s: %s\n", f.Verdict, f.Key, quoteLong(f.Value))
			if f.Message != "" && f.Verdict != "honoured" {
				fmt.Fprintf(w, "            %s\n", f.Message)
			}
			if f.Remedy != "" {
				fmt.Fprintf(w, "            %s\n", f.Remedy)
			}
		}
		for _, n := range o.Notices {
			line := ""
			if n.Line > 0 {
				line = fmt.Sprintf("line %d: ", n.Line)
			}
			if n.Field != "" {
				line += n.Field + ": "
			}
			fmt.Fprintf(w, "  %-9s %s%s (%s)\n", n.Severity, line, n.Message, n.Reason)
			if n.Remedy != "" {
				fmt.Fprintf(w, "            %s\n", n.Remedy)
			}
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "%d Ingresses served, %d hosts, %d routes; annotations and keys: %d honoured, %d different, %d refused, "+
		"%d unknown; notices: %d info, %d warning, %d error\n",
		r.Ingresses, r.Hosts, r.Routes, r.Honoured, r.Different, r.Refused, r.Unknown, r.Infos, r.Warnings, r.Errors)
}

// quoteLong prints a value on one line, cut to what a terminal shows.
func quoteLong(s string) string {
	q := fmt.Sprintf("%q", s)
	if len(q) > 100 {
		q = q[:97] + `..."`
	}
	return q
}
