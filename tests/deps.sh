#!/bin/sh
# Installs the programs that the tests use as peers, a C compiler for the race
# detector and another for BPF, on Debian and as root. Otherwise it names what is missing; the
# tests that need it then skip.
set -eu

missing=
need() { # command package
	PATH="$PATH:/usr/sbin:/sbin" command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}
need nginx nginx-light
need haproxy haproxy
need curl curl
need wrk wrk
need ip iproute2
need strace strace
need gcc "gcc libc6-dev"
need clang "clang llvm libbpf-dev"
need clang-format clang-format
need etcd etcd-server

[ -n "$missing" ] || exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
	echo "not installed:$missing (needs root on Debian); the tests that use them will skip"
	exit 0
fi
echo "installing$missing"

# Packages ask this program, with systemd and without, whether they may start
# their services; 101 means no (invoke-rc.d(8)). One that is there already decides.
policy=${POLICY_RC_D:-/usr/sbin/policy-rc.d} # a test gives another
if [ ! -e "$policy" ]; then
	trap 'rm -f "$policy"' EXIT
	trap 'exit 1' HUP INT TERM
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod 755 "$policy"
	echo "services of nginx, haproxy and etcd are not started now; at the next boot they are, unless disabled"
else
	echo "services of nginx, haproxy and etcd are started if $policy allows it"
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086 # a list of words
apt-get install -y -qq --no-install-recommends $missing >/dev/null
