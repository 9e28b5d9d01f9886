package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/weirproxy/weir/tests/bench/load"
	"github.com/weirproxy/weir/tests/rig"
)

// child is a process that this program started and that it ends.
type child struct {
	cmd *exec.Cmd
	log bytes.Buffer
}

// place is where and how urgently processes run.
type place struct {
	cpus string // as taskset -c takes them
	nice int
}

// command returns a command that runs at p. The programs in front of it exec,
// so that the process keeps its id.
func (p place) command(name string, args ...string) *exec.Cmd {
	all := []string{"-c", p.cpus, "nice", "-n", strconv.Itoa(p.nice), name}
	return exec.Command("taskset", append(all, args...)...)
}

// start runs a command at p.
func start(p place, name string, args ...string) (*child, error) {
	c := &child{cmd: p.command(name, args...)}
	c.cmd.Stdout, c.cmd.Stderr = &c.log, &c.log
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return c, nil
}

// startSelf runs this program at p.
func startSelf(p place, args ...string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return start(p, self, args...)
}

// stop ends the process and waits for it.
func (c *child) stop() {
	if err := c.cmd.Process.Signal(os.Interrupt); err != nil {
		return // it has ended already
	}
	kill := time.AfterFunc(5*time.Second, func() { c.cmd.Process.Kill() })
	c.cmd.Wait()
	kill.Stop()
}

// await waits until something listens on addr.
func (c *child) await(addr netip.AddrPort) error {
	for end := time.Now().Add(rig.Deadline); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		conn, err := net.DialTimeout("tcp", addr.String(), time.Second)
		if err == nil {
			return conn.Close()
		}
	}
	return fmt.Errorf("%s does not listen on %s: %s", c.cmd.Args[6], addr, &c.log)
}

// runLoad carries out p in a child process: this process, with its own threads,
// stays out of the way.
func runLoad(where place, p load.Plan) (load.Result, error) {
	var r load.Result
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	in, err := json.Marshal(p)
	if err != nil {
		return r, err
	}
	cmd := where.command(self, loadCommand)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	cmd.Stdin = bytes.NewReader(in)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return r, fmt.Errorf("load on %s: %w", p.Addr, err)
	}
	if err := json.Unmarshal(out, &r); err != nil {
		return r, fmt.Errorf("read result of load: %w", err)
	}
	return r, nil
}

// loadMain is the child's side of runLoad.
func loadMain() error {
	var p load.Plan
	if err := json.NewDecoder(os.Stdin).Decode(&p); err != nil {
		return fmt.Errorf("read plan: %w", err)
	}
	r, err := load.Run(p)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}
