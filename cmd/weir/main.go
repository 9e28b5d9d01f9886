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
	"regexp"
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
		Description: "Every flag can be given as the environment variable that its help names; the command line wins.\n" +
			"Exit codes: 0 done, 1 it broke, 2 wrong usage, 3 explain, lint, check, maps: the answer is no.",
		Writer:    stdout,
		ErrWriter: stderr,
		Flags: []cli.Flag{ // arrange acts on the second
			cli.HelpFlag,
			&cli.BoolFlag{Name: "version", Aliases: []string{"v"}, Usage: "do what the command version does", DisableDefaultText: true},
		},
		Commands: []*cli.Command{
			agentCommand(), demoCommand(), explainCommand(), lintCommand(), checkCommand(), mapsCommand(), versionCommand(), helpCommand(),
		},
		ExitErrHandler: func(*cli.Context, error) {}, // run chooses the exit code
	}
	app.OnUsageError = wrongUsage
	app.Action = func(c *cli.Context) error {
		if !c.Args().Present() {
			return cli.ShowAppHelp(c)
		}
		return unknownCommand(c)
	}
	for _, command := range app.Commands {
		command.HideHelpCommand = true
		command.OnUsageError = wrongUsage
	}
	return app
}

func helpCommand() *cli.Command {
	return &cli.Command{
		Name:      "help",
		Usage:     "print this, or the help of a command",
		ArgsUsage: "[COMMAND]",
		Action: func(c *cli.Context) error { // arrange took out those that are right
			switch c.NArg() {
			case 0:
				return cli.ShowAppHelp(c)
			case 1:
				return unknownCommand(c)
			}
			return usagef("unexpected argument %q: the command takes one", c.Args().Get(1))
		},
	}
}

// unknownCommand is about the first argument.
func unknownCommand(c *cli.Context) error {
	var names []string
	for _, command := range c.App.Commands {
		names = append(names, command.Name)
	}
	return usagef("unknown command %q; want %s", c.Args().First(), either(names))
}

// misused is how the flag packages begin to tell what is wrong with the value of a
// flag, with one dash or none before its name.
var misused = regexp.MustCompile(`^((?:invalid|could not parse)(?:[^":]|"(?:[^"\\]|\\.)*")* for (?:flag )?)-?([A-Za-z-]+): `)

// dashed returns a flag's name as the command line has it.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// wrongUsage words what the flag package found.
func wrongUsage(_ *cli.Context, err error, _ bool) error {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: -"); ok {
		text = "unknown flag " + dashed(strings.TrimLeft(name, "-"))
	}
	if name, ok := strings.CutPrefix(text, "flag needs an argument: -"); ok {
		text = fmt.Sprintf("flag %s needs a value", dashed(name))
	}
	if m := misused.FindStringSubmatch(text); m != nil {
		why := text[len(m[0]):]
		if why == "parse error" || strings.HasPrefix(why, "strconv.ParseBool") {
			why = "want true or false"
		}
		text = m[1] + dashed(m[2]) + ": " + why
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
