/*
 * The version of the interface these headers describe.
 *
 * Blacklight takes the place of libuv 1.53.0, so it states that version: a
 * program that asks at compile time "is this libuv new enough for me?" must
 * get the answer that is true of what it can call.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef UV_VERSION_H
#define UV_VERSION_H

#define UV_VERSION_MAJOR      1
#define UV_VERSION_MINOR      53
#define UV_VERSION_PATCH      0

/* A release carries no suffix; a pre-release would say, for example, "dev". */
#define UV_VERSION_IS_RELEASE 1
#define UV_VERSION_SUFFIX     ""

/* One number to compare with: 0x00MMmmpp. It is what uv_version() returns. */
#define UV_VERSION_HEX \
  (UV_VERSION_MAJOR << 16 | UV_VERSION_MINOR << 8 | UV_VERSION_PATCH)

#endif /* UV_VERSION_H */
