// Command weir is a node-level Kubernetes ingress proxy.
//
// It turns flags and environment variables into an agent.Config, passes signals
// on, prints what package agent returns, and chooses the exit code: 0 done, 1 it
// broke, 2 wrong usage, 3 the answer is "no" (explain, lint).
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"
)

// version and commit are stamped by the linker: -ldflags "-X main.version=v1.2.3".
var version, commit string

const (
	exitBroken = 1
	exitUsage  = 2
	exitNo     = 3
)

// errNo is the answer "no": it was printed already.
var errNo = errors.New("no")

// usageError is a command line or an environment that can't be carried out.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run carries out a command line, without the program's name, and returns the
// exit code.
func run(args []string, stdout, stderr io.Writer) int {
	app := newApp(stdout, stderr)
	err := app.Run(append([]string{"weir"}, arrange(app.Commands, args)...))
	if err == nil {
		return 0
	}
	if errors.Is(err, errNo) {
		return exitNo
	}
	command := "weir"
	if len(args) > 0 && app.Command(args[0]) != nil {
		command += " " + args[0]
	}
	fmt.Fprintf(stderr, "%s: %s\n", command, err)
	if _, ok := errors.AsType[usageError](err); ok {
		fmt.Fprintf(stderr, "See: %s --help\n", command)
		return exitUsage
	}
	if hint := advice(err); hint != "" {
		fmt.Fprintln(stderr, hint)
	}
	return exitBroken
}

func newApp(stdout, stderr io.Writer) *cli.App {
	app := &cli.App{
		Name:  "weir",
		Usage: "a node-level Kubernetes ingress proxy",
		Description: "Every flag can be given as an environment variable too; the command line wins.\n" +
			"Exit codes: 0 done, 1 it broke, 2 wrong usage, 3 explain and lint: the answer is no.",
		HideHelpCommand: true,
		Writer:          stdout,
		ErrWriter:       stderr,
		Commands:        []*cli.Command{agentCommand(), demoCommand(), explainCommand(), lintCommand(), versionCommand()},
		ExitErrHandler:  func(*cli.Context, error) {}, // run chooses the exit code
	}
	app.OnUsageError = wrongUsage
	app.Action = func(c *cli.Context) error {
		if !c.Args().Present() {
			return cli.ShowAppHelp(c)
		}
		var names []string
		for _, command := range app.Commands {
			names = append(names, command.Name)
		}
		return usagef("unknown command %q; want %s", c.Args().First(), either(names))
	}
	for _, command := range app.Commands {
		command.HideHelpCommand = true
		command.OnUsageError = wrongUsage
	}
	return app
}

// wrongUsage words what the flag package found.
func wrongUsage(_ *cli.Context, err error, _ bool) error {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: -"); ok {
		text = "unknown flag --" + strings.TrimLeft(name, "-")
	}
	if strings.HasPrefix(text, "invalid boolean value") {
		text = strings.TrimSuffix(text, "parse error") + "want true or false"
	}
	return usageError{errors.New(text)}
}

// advice returns what to do about err, "" if that is plain.
func advice(err error) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "Another process has this address: choose one with --http-address or --admin-address."
	case errors.Is(err, syscall.EACCES):
		return "Ports under 1024 need CAP_NET_BIND_SERVICE or sysctl net.ipv4.ip_unprivileged_port_start; files need their permissions."
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "No interface of this machine has the address: choose another with --http-address or --admin-address."
	}
	return ""
}

// noArguments refuses arguments that are not flags.
func noArguments(c *cli.Context) error {
	if c.Args().Present() {
		return usagef("unexpected argument %q: the command takes flags only", c.Args().First())
	}
	return nil
}
