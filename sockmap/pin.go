package sockmap

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// OnBPFFS reports why dir can't hold pins, nil if it can. A directory that does not
// exist is judged by the one it would be made in.
func OnBPFFS(dir string) error {
	var st unix.Statfs_t
	err := unix.Statfs(dir, &st)
	if errors.Is(err, unix.ENOENT) {
		dir = filepath.Dir(dir)
		err = unix.Statfs(dir, &st)
	}
	if err != nil {
		return fmt.Errorf("look at %s: %w", dir, err)
	}
	if uint32(st.Type) != unix.BPF_FS_MAGIC {
		return fmt.Errorf("%s is not on a BPF file system; mount one: mount -t bpf bpf /sys/fs/bpf", dir)
	}
	return nil
}

// pinAll puts maps under their names into dir, in place of what is there.
func pinAll(dir string, maps map[string]*ebpf.Map) (err error) {
	if err := OnBPFFS(dir); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, unpinAll(dir, maps))
		}
	}()
	for name, m := range maps {
		if err := pin(filepath.Join(dir, name), m); err != nil {
			return fmt.Errorf("pin %s: %w", name, err)
		}
	}
	return nil
}

// pin replaces what is at path in one step.
func pin(path string, m *ebpf.Map) error {
	// bpffs allows no dot in a name.
	fresh := fmt.Sprintf("%s_%d", path, os.Getpid())
	if err := os.Remove(fresh); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := m.Pin(fresh); err != nil {
		return err
	}
	if err := os.Rename(fresh, path); err != nil {
		return errors.Join(err, os.Remove(fresh))
	}
	return nil
}

// unpinAll removes the pins in dir that are those of maps, and dir if it is empty
// then.
func unpinAll(dir string, maps map[string]*ebpf.Map) error {
	var errs []error
	for name, m := range maps {
		path := filepath.Join(dir, name)
		if own, err := isPinOf(path, m); err != nil {
			errs = append(errs, fmt.Errorf("look at the pin %s: %w", path, err))
		} else if own {
			errs = append(errs, os.Remove(path))
		}
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, os.ErrNotExist) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func isPinOf(path string, m *ebpf.Map) (bool, error) {
	pinned, err := ebpf.LoadPinnedMap(path, nil)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer pinned.Close()
	a, err := mapID(pinned)
	if err != nil {
		return false, err
	}
	b, err := mapID(m)
	return a == b, err
}

func mapID(m *ebpf.Map) (ebpf.MapID, error) {
	info, err := m.Info()
	if err != nil {
		return 0, err
	}
	id, ok := info.ID()
	if !ok {
		return 0, errors.New("the kernel gives maps no numbers")
	}
	return id, nil
}
