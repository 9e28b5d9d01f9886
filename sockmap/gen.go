package sockmap

// Struct and map names come from the C source; "make generate" runs this.
//go:generate go tool bpf2go -target bpfel -cc clang -strip llvm-strip -type weir_worker -type weir_address -type policy -type reason -type state accept ../bpf/accept.bpf.c -- -O2 -g -Wall -Werror -I/usr/include/x86_64-linux-gnu
