package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/weirproxy/weir/agent"
)

// othersMax is how many rules of other hosts the text names.
const othersMax = 10

func explainCommand() *cli.Command {
	var c agent.Config
	var header []string
	format := "text"
	send := newList(cli.GenericFlag{Name: "H", Usage: "send the header `FIELD`, as 'Name: value'"}, fields(&header))
	flags := append(objectFlags(&c), send, outputFlag(&format))
	return &cli.Command{
		Name:      "explain",
		Usage:     "tell which rule and endpoints a request would get, and why not others",
		ArgsUsage: "METHOD URL",
		Description: "Nothing is sent: the manifests are read as the agent would read them, with its default limits.\n" +
			"Exit codes: 0 an endpoint would get the request, 3 Weir would answer itself (400, 404, 413, 503 and\n" +
			"the like), 1 the manifests can't be read, 2 wrong usage.",
		Flags: flags,
		Action: func(x *cli.Context) error {
			if x.NArg() != 2 {
				return usagef("%d arguments %q; want METHOD URL", x.NArg(), x.Args().Slice())
			}
			if err := needManifests(c); err != nil {
				return err
			}
			q := agent.Question{Manifests: c.Manifests, Objects: c.Objects, Method: x.Args().Get(0), URL: x.Args().Get(1), Header: header}
			if err := q.Check(); err != nil {
				return usageError{err}
			}
			a, err := agent.Explain(q)
			if err != nil {
				return err
			}
			if err := show(x.App.Writer, format, a, func(w io.Writer) { printAnswer(w, &a) }); err != nil {
				return err
			}
			if a.Status != 0 {
				return errNo
			}
			return nil
		},
	}
}

func outputFlag(to *string) cli.Flag {
	f := value("", "o", choice{to: to, words: []string{"text", "json"}}, "print text or json").(*cli.GenericFlag)
	f.EnvVars = []string{"WEIR_OUTPUT"}
	return f
}

func needManifests(c agent.Config) error {
	if c.Manifests == "" {
		return usagef("no source of objects: give --manifests DIR")
	}
	return nil
}

// show prints v as JSON, or as text does.
func show(w io.Writer, format string, v any, text func(io.Writer)) error {
	if format == "json" {
		b, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			return fmt.Errorf("encode the output: %w", err)
		}
		_, err = fmt.Fprintf(w, "%s\n", b)
		return err
	}
	var b strings.Builder
	text(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func printAnswer(w io.Writer, a *agent.Answer) {
	fmt.Fprintf(w, "request    %s %s\n", a.Request.Method, a.Request.Target)
	if a.Request.Path != "" {
		fmt.Fprintf(w, "matched    host %s, path %s\n", orAny(a.Request.Host, "(none)"), a.Request.Path)
	}
	if r := a.Route; r != nil {
		fmt.Fprintf(w, "rule       %s\n", ruleText(a.RouteHost, r.Kind, r.Path))
		fmt.Fprintf(w, "object     Ingress %s\n", r.Source)
		fmt.Fprintf(w, "cluster    %s\n", r.Cluster)
		printPolicy(w, &r.Policy)
		printEndpoints(w, "active", a.Endpoints.Active)
		printEndpoints(w, "draining", a.Endpoints.Draining)
		if a.Status == 0 && a.Request.Forwarded != a.Request.Target {
			fmt.Fprintf(w, "sent as    %s\n", a.Request.Forwarded)
		}
	}
	if a.Status != 0 {
		fmt.Fprintf(w, "answer     %d from Weir: %s\n", a.Status, a.Reason)
	} else {
		fmt.Fprintf(w, "answer     from one of %d endpoints\n", len(a.Endpoints.Active))
	}
	printOthers(w, a)
	if len(a.Notices) > 0 {
		fmt.Fprintf(w, "\nnotices\n")
		for _, n := range a.Notices {
			printNotice(w, n)
		}
	}
}

func orAny(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func ruleText(host, kind, path string) string {
	host = orAny(host, "any host")
	if path == "" {
		return host + ", default backend"
	}
	return fmt.Sprintf("%s, %s %s", host, kind, path)
}

func printPolicy(w io.Writer, p *agent.PolicyView) {
	limit := "no limit"
	if p.BodyBytesMax > 0 {
		limit = fmt.Sprintf("%d bytes", p.BodyBytesMax)
	}
	balance := p.Balance
	if p.HashBy != "" {
		balance += " by " + p.HashBy
	}
	tries := "no limit of tries"
	if p.Tries > 0 {
		tries = fmt.Sprintf("%d tries", p.Tries)
	}
	if p.TriesTimeout != "" {
		tries += " within " + p.TriesTimeout
	}
	fmt.Fprintf(w, "policy     balance %s; timeouts: connect %s, send %s, read %s\n", balance, p.ConnectTimeout, p.SendTimeout, p.ReadTimeout)
	fmt.Fprintf(w, "           body %s; %s, on %s\n", limit, tries, orAny(strings.Join(p.RetryOn, " "), "nothing"))
}

func printEndpoints(w io.Writer, title string, list []agent.EndpointView) {
	if len(list) == 0 {
		fmt.Fprintf(w, "%-10s none\n", title)
		return
	}
	for _, e := range list {
		fmt.Fprintf(w, "%-10s %s", title, e.Address)
		if e.Node != "" {
			fmt.Fprintf(w, "  node %s", e.Node)
		}
		if e.Zone != "" {
			fmt.Fprintf(w, "  zone %s", e.Zone)
		}
		if e.Tier > 0 {
			fmt.Fprintf(w, "  tier %d", e.Tier)
		}
		fmt.Fprintln(w)
		title = ""
	}
}

// printOthers tells why the other rules were not chosen; of those of other hosts
// it names the first few.
func printOthers(w io.Writer, a *agent.Answer) {
	title, left := "\nother rules\n", 0
	shown := 0
	for _, c := range a.Candidates {
		if c.Chosen {
			continue
		}
		if c.OtherHost {
			if shown++; shown > othersMax {
				left++
				continue
			}
		}
		fmt.Fprintf(w, "%s  %-40s Ingress %s -> %s: %s\n", title, ruleText(c.Host, c.Kind, c.Path), c.Source, c.Cluster, c.Reason)
		title = ""
	}
	if left > 0 {
		fmt.Fprintf(w, "  and %d of other hosts\n", left)
	}
}

func printNotice(w io.Writer, n agent.NoticeView) {
	where := ""
	if n.Kind != "" {
		where = fmt.Sprintf(" %s %s", n.Kind, strings.TrimPrefix(n.Namespace+"/"+n.Name, "/"))
	}
	if n.File != "" {
		where += " " + n.File
		if n.Line > 0 {
			where += fmt.Sprintf(":%d", n.Line)
		}
	}
	if n.Field != "" {
		where += " " + n.Field
	}
	fmt.Fprintf(w, "  %s%s: %s (%s)\n", n.Severity, where, n.Message, n.Reason)
	if n.Remedy != "" {
		fmt.Fprintf(w, "    %s\n", n.Remedy)
	}
}
