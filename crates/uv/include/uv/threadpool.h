/*
 * The part of a request that travels through the thread pool. Private to the
 * library; kept for the layout of the requests that contain it.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef UV_THREADPOOL_H_
#define UV_THREADPOOL_H_

#include "linux.h"

struct uv_loop_s;

struct uv__work {
  void (*work)(struct uv__work* self);
  void (*done)(struct uv__work* self, int status);
  struct uv_loop_s* loop;
  struct uv__queue wq;
};

#endif /* UV_THREADPOOL_H_ */
