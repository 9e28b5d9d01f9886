package plane

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/weirproxy/weir/tests/child"
)

// Plane is a running control plane. Its methods are for one goroutine at a time.
type Plane struct {
	// Dir holds data, keys and logs. The caller of Start owns it.
	Dir string
	// Kubeconfig is the path of the administrator's.
	Kubeconfig string

	binaries          binaries
	config            *rest.Config
	port              int // of the API server, also after a restart
	etcdPort          int
	etcd, api, manage *child.Process
}

// controllers of the controller manager that run: those that Deployments, Services
// and namespaces need. There are no nodes to look after.
const controllers = "deployment-controller,replicaset-controller,statefulset-controller,daemonset-controller," +
	"endpointslice-controller,endpointslice-mirroring-controller,namespace-controller,serviceaccount-controller," +
	"garbage-collector-controller,pod-garbage-collector-controller"

// Start runs a control plane with its files in dir and returns when it is ready,
// within ten seconds on an idle machine. progress gets what is built, if anything.
func Start(dir string, progress io.Writer) (p *Plane, err error) {
	p = &Plane{Dir: dir, Kubeconfig: filepath.Join(dir, "kubeconfig")}
	defer func() {
		if err != nil {
			p.Stop()
		}
	}()
	if p.binaries, err = find(progress); err != nil {
		return p, err
	}
	ca, err := writeCertificate(dir)
	if err != nil {
		return p, err
	}
	if err := writeTokenKey(dir); err != nil {
		return p, err
	}
	ports, err := freePorts(3)
	if err != nil {
		return p, err
	}
	p.port = ports[0]
	token := rand.Text()
	line := token + ",admin,admin,system:masters\n"
	if err := os.WriteFile(filepath.Join(dir, "tokens.csv"), []byte(line), 0o600); err != nil {
		return p, err
	}
	p.config = &rest.Config{
		Host: "https://127.0.0.1:" + strconv.Itoa(p.port), BearerToken: token,
		TLSClientConfig: rest.TLSClientConfig{CAData: ca},
		QPS:             1000, Burst: 2000, // tests make thousands of objects
	}
	if err := p.WriteKubeconfig(p.Kubeconfig, token); err != nil {
		return p, err
	}
	if err := p.startEtcd(ports[1], ports[2]); err != nil {
		return p, err
	}
	if err := p.StartAPI(); err != nil {
		return p, err
	}
	return p, p.startControllers()
}

// Config returns a copy of the administrator's client configuration.
func (p *Plane) Config() *rest.Config { return rest.CopyConfig(p.config) }

// Client returns a client of the administrator.
func (p *Plane) Client() *kubernetes.Clientset { return kubernetes.NewForConfigOrDie(p.Config()) }

// As returns the configuration of somebody else, such as
// "system:serviceaccount:weir:weir".
func (p *Plane) As(user string, groups ...string) *rest.Config {
	c := p.Config()
	c.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return c
}

// WriteKubeconfig writes one for the bearer of token to path.
func (p *Plane) WriteKubeconfig(path, token string) error {
	c := clientcmdapi.NewConfig()
	c.Clusters["weir"] = &clientcmdapi.Cluster{Server: p.config.Host, CertificateAuthorityData: p.config.CAData}
	c.AuthInfos["user"] = &clientcmdapi.AuthInfo{Token: token}
	c.Contexts["weir"] = &clientcmdapi.Context{Cluster: "weir", AuthInfo: "user"}
	c.CurrentContext = "weir"
	return clientcmd.WriteToFile(*c, path)
}

// Stop ends everything; the files stay.
func (p *Plane) Stop() {
	for _, x := range []**child.Process{&p.manage, &p.api, &p.etcd} {
		if *x != nil {
			(*x).Stop(stopTime)
			*x = nil
		}
	}
}

// Logs returns the end of each process' log.
func (p *Plane) Logs() string {
	text := ""
	for _, x := range []*child.Process{p.etcd, p.api, p.manage} {
		if x != nil {
			text += "== " + x.Name + "\n" + x.Tail() + "\n"
		}
	}
	return text
}

func (p *Plane) startEtcd(client, peer int) (err error) {
	p.etcdPort = client
	url := "http://127.0.0.1:" + strconv.Itoa(client)
	peers := "http://127.0.0.1:" + strconv.Itoa(peer)
	p.etcd, err = p.start(p.binaries.etcd, "--data-dir", filepath.Join(p.Dir, "etcd"), "--unsafe-no-fsync",
		"--listen-client-urls", url, "--advertise-client-urls", url, "--listen-peer-urls", peers,
		"--initial-advertise-peer-urls", peers, "--initial-cluster", "default="+peers, "--log-level", "warn")
	if err != nil {
		return err
	}
	return p.etcd.Await(deadline, func() error {
		r, err := http.Get(url + "/health")
		if err != nil {
			return err
		}
		defer r.Body.Close()
		if r.StatusCode != http.StatusOK {
			return fmt.Errorf("/health: %s", r.Status)
		}
		return nil
	})
}

// StartAPI runs the API server, on the port that it had before, and returns when it
// is ready.
func (p *Plane) StartAPI() (err error) {
	dir := func(name string) string { return filepath.Join(p.Dir, name) }
	p.api, err = p.start(p.binaries.apiServer,
		"--etcd-servers", "http://127.0.0.1:"+strconv.Itoa(p.etcdPort),
		"--bind-address", "127.0.0.1", "--secure-port", strconv.Itoa(p.port),
		"--advertise-address", "127.0.0.1", "--endpoint-reconciler-type", "none",
		"--tls-cert-file", dir("server.crt"), "--tls-private-key-file", dir("server.key"), "--cert-dir", p.Dir,
		"--token-auth-file", dir("tokens.csv"), "--authorization-mode", "RBAC",
		"--service-account-issuer", "https://weir.test", "--service-account-key-file", dir("sa.key"),
		"--service-account-signing-key-file", dir("sa.key"),
		"--service-cluster-ip-range", "10.96.0.0/16",
		// Pods here use no token and no default toleration.
		"--disable-admission-plugins", "ServiceAccount,DefaultTolerationSeconds",
		"--watch-cache=true", "--profiling=false", "--v", "0")
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(p.config)
	if err != nil {
		return err
	}
	return p.api.Await(deadline, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if _, err := client.RESTClient().Get().AbsPath("/readyz").DoRaw(ctx); err != nil {
			return err
		}
		// The bootstrap of RBAC and namespaces goes on for a moment.
		_, err := client.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// StopAPI ends the API server, in order or, with kill, at once.
func (p *Plane) StopAPI(kill bool) {
	if kill {
		p.api.Kill()
	} else {
		p.api.Stop(stopTime)
	}
	p.api = nil
}

func (p *Plane) startControllers() (err error) {
	p.manage, err = p.start(p.binaries.controllerManager,
		"--kubeconfig", p.Kubeconfig, "--leader-elect=false", "--secure-port", "0",
		"--controllers", controllers, "--use-service-account-credentials=false",
		"--concurrent-deployment-syncs", "5", "--kube-api-qps", "500", "--kube-api-burst", "1000",
		"--endpointslice-updates-batch-period", "0s")
	if err != nil {
		return err
	}
	client := p.Client()
	return p.manage.Await(deadline, func() error { // its first visible work
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_, err := client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// stopTime is what a process has to end in order.
const stopTime = 5 * time.Second

// start runs a program of the plane.
func (p *Plane) start(path string, args ...string) (*child.Process, error) {
	cmd := exec.Command(path, args...)
	cmd.Dir = p.Dir
	return child.Start(cmd, filepath.Join(p.Dir, filepath.Base(path)+".log"))
}

// RestartControllers ends the controller manager and runs it anew.
func (p *Plane) RestartControllers() error {
	p.manage.Stop(stopTime)
	return p.startControllers()
}

// freePorts returns n ports of loopback that nobody listens on.
func freePorts(n int) ([]int, error) {
	var held []net.Listener
	defer func() {
		for _, l := range held {
			l.Close()
		}
	}()
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		held = append(held, l)
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return slices.Clip(ports), nil
}
