/*
 * The private parts that the handles and requests of uv.h are made of, with
 * the layout they have on Linux.
 *
 * Nothing here is for programs to use. It is in a header because the size of a
 * handle is part of the binary interface: a program allocates its handles
 * itself. Blacklight keeps other things in these bytes than their names
 * suggest; names and places stay, since programs have been seen to look.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef UV_LINUX_H
#define UV_LINUX_H

#if !defined(__linux__)
# error "Blacklight supports Linux only; on other systems use libuv itself."
#elif !defined(__LP64__) || !(defined(__x86_64__) || defined(__aarch64__) || \
    (defined(__riscv) && __riscv_xlen == 64))
# error "Blacklight supports 64-bit x86-64, aarch64 and riscv64 only."
#endif

#include <stddef.h>
#include <stdint.h>

/* A pair of links: two pointers wide. */
struct uv__queue {
  struct uv__queue* next;
  struct uv__queue* prev;
};

/* A file descriptor being watched. `fd` is kept true: programs read it. */
struct uv__io_s {
  uintptr_t bits;
  struct uv__queue pending_queue;
  struct uv__queue watcher_queue;
  unsigned int pevents;
  unsigned int events;
  int fd;
};
typedef struct uv__io_s uv__io_t;

/* What a write request keeps in the spare word that every request has. */
struct uv__req_write_extra_s {
  size_t nwritten;
};

#endif /* UV_LINUX_H */
