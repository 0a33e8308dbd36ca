/*
 * Blacklight's C interface: that of libuv 1.53.0, on Linux.
 *
 * A program written for libuv includes this file in place of libuv's own, or
 * was compiled with libuv's own and never notices; both describe the same
 * functions, types and numbers, and the same places of members in types. Each
 * subject has a file of its own:
 *
 *   uv/base.h     errors, the names of all types, callbacks, what all handles
 *                 and all requests share
 *   uv/loop.h     the loop
 *   uv/handles.h  timers; idle, prepare and check; async; poll; signals;
 *                 child processes
 *   uv/streams.h  TCP, pipes, terminals
 *   uv/network.h  UDP, names and addresses, network interfaces
 *   uv/files.h    files, directories and watching them
 *   uv/threads.h  threads, locks, the thread pool, random bytes, dlopen
 *   uv/system.h   version, allocator, time, machine, process, users
 *
 * Not here is uv/tree.h, which libuv installs beside its headers for use in its
 * own sources: nothing in the interface refers to it.
 *
 * The rules that hold throughout: a function returns 0 or more if it went
 * well, else a negative UV_E* code, and in that case its callback is not
 * called. Members under "private to the library" are not for programs.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef UV_H
#define UV_H

#include "uv/base.h"
#include "uv/files.h"
#include "uv/handles.h"
#include "uv/loop.h"
#include "uv/network.h"
#include "uv/streams.h"
#include "uv/system.h"
#include "uv/threads.h"

/* Of use to uv/errno.h alone, and a name that programs may want themselves. */
#undef UV__ERR

#endif /* UV_H */
