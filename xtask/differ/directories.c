/* Directories: opened, read in portions, closed; and calls without a request, which are refused. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "differ.h"

enum { MOST = 6 };
static const char* names[] = {"dirs/full", "dirs/empty", "dirs/missing", "dirs/full/file1", "dirs/full/link", ""};

static void make(void) {
  char path[64];
  if (mkdir("dirs", 0755) != 0) return;
  mkdir("dirs/full", 0755);
  mkdir("dirs/empty", 0755);
  mkdir("dirs/full/dir", 0755);
  mkfifo("dirs/full/fifo", 0644);
  (void) !symlink("nowhere", "dirs/full/dangling");
  (void) !symlink("dir", "dirs/full/link");
  for (int i = 0; i < 9; i++) {
    snprintf(path, sizeof path, "dirs/full/file%d", i);
    close(open(path, O_CREAT | O_WRONLY, 0644));
  }
}

/* A directory that is read to its end, whose names are told when it is closed. */
struct reading {
  uv_fs_t req;
  uv_dir_t* dir;
  uv_dirent_t entries[MOST];
  char found[20][40];
  int number, count, portions, portion, stops;
};
static void on_reading(uv_fs_t* req);
static int by_text(const void* a, const void* b) { return strcmp(a, b); }

static void go_on(struct reading* reading, int asynchronous) {
  uv_fs_cb cb = asynchronous ? on_reading : NULL;
  uv_fs_req_cleanup(&reading->req);
  if (reading->portions >= 0 && reading->portions != reading->stops) {
    reading->dir->dirents = reading->entries;
    reading->dir->nentries = (size_t) reading->portion;
    uv_fs_readdir(&loop, &reading->req, reading->dir, cb);
  } else {
    uv_fs_closedir(&loop, &reading->req, reading->dir, cb);
  }
}

/* Takes a result in; returns 0 when the reading is over. */
static int take(struct reading* reading) {
  uv_fs_t* req = &reading->req;
  int result = (int) req->result;
  switch (req->fs_type) {
    case UV_FS_OPENDIR:
      say("reading %d open: %s", reading->number, name(result));
      if (result < 0) { uv_fs_req_cleanup(req); return 0; }
      reading->dir = req->ptr;
      return 1;
    case UV_FS_READDIR:
      if (result <= 0) say("reading %d end: %s", reading->number, name(result));
      for (int i = 0; i < result; i++)
        snprintf(reading->found[reading->count++], sizeof reading->found[0], "%s %d", reading->entries[i].name, reading->entries[i].type);
      reading->portions = result <= 0 ? -1 : reading->portions + 1;
      return 1;
    default: /* Of a part that was read it is not certain which it is. */
      say("reading %d close: %s, %d", reading->number, name(result), reading->count);
      qsort(reading->found, (size_t) reading->count, sizeof reading->found[0], by_text);
      if (reading->stops < 0) for (int i = 0; i < reading->count; i++) say("reading %d found %s", reading->number, reading->found[i]);
      uv_fs_req_cleanup(req);
      return 0;
  }
}
static void on_reading(uv_fs_t* req) {
  struct reading* reading = (struct reading*) req;
  if (take(reading)) {
    go_on(reading, 1);
  } else {
    awaited--;
    free(reading);
  }
}

static int read_through(void) {
  static int readings;
  struct reading* reading = calloc(1, sizeof *reading);
  int asynchronous = below(2), result;
  const char* path = names[below(6)];
  reading->number = ++readings;
  reading->portion = below(10) ? 1 + (int) below(MOST) : 0; /* Without room for any it is an error. */
  reading->stops = below(4) ? -1 : (int) below(3);
  result = uv_fs_opendir(&loop, &reading->req, path, asynchronous ? on_reading : NULL);
  say("opendir %d '%s' %d by %d: %s", reading->number, path, asynchronous, reading->portion, name(result));
  if (asynchronous && result == 0) {
    awaited++;
    return 1;
  }
  while (take(reading)) go_on(reading, 0);
  free(reading);
  return 0;
}

static void on_scandir(uv_fs_t* req) {
  uv_dirent_t entry;
  int result;
  say("scandir: %s %d", name((int) req->result), (int) req->result < 0 ? 0 : (int) req->result);
  while ((result = uv_fs_scandir_next(req, &entry)) == 0) say("scandir found %s %d", entry.name, entry.type);
  say("scandir next: %s", name(result));
  if (req->data != NULL) awaited--;
  uv_fs_req_cleanup(req);
  free(req);
}

/* Every function of the files, without a request. */
static int without_request(unsigned which) {
  uv_buf_t buf = uv_buf_init(bytes, 1);
  switch (which) {
    case 0: return uv_fs_open(&loop, NULL, "plain", 0, 0, NULL);
    case 1: return uv_fs_close(&loop, NULL, -1, NULL);
    case 2: return uv_fs_read(&loop, NULL, -1, &buf, 1, 0, NULL);
    case 3: return uv_fs_write(&loop, NULL, -1, &buf, 1, 0, NULL);
    case 4: return uv_fs_unlink(&loop, NULL, "missing", NULL);
    case 5: return uv_fs_mkdir(&loop, NULL, "missing/x", 0, NULL);
    case 6: return uv_fs_rmdir(&loop, NULL, "missing", NULL);
    case 7: return uv_fs_stat(&loop, NULL, ".", NULL);
    case 8: return uv_fs_fstat(&loop, NULL, -1, NULL);
    case 9: return uv_fs_lstat(&loop, NULL, ".", NULL);
    case 10: return uv_fs_rename(&loop, NULL, "missing", "missing", NULL);
    case 11: return uv_fs_fsync(&loop, NULL, -1, NULL);
    case 12: return uv_fs_fdatasync(&loop, NULL, -1, NULL);
    case 13: return uv_fs_ftruncate(&loop, NULL, -1, 0, NULL);
    case 14: return uv_fs_sendfile(&loop, NULL, -1, -1, 0, 1, NULL);
    case 15: return uv_fs_access(&loop, NULL, ".", 0, NULL);
    case 16: return uv_fs_chmod(&loop, NULL, "missing", 0, NULL);
    case 17: return uv_fs_fchmod(&loop, NULL, -1, 0, NULL);
    case 18: return uv_fs_utime(&loop, NULL, "missing", 0, 0, NULL);
    case 19: return uv_fs_futime(&loop, NULL, -1, 0, 0, NULL);
    case 20: return uv_fs_lutime(&loop, NULL, "missing", 0, 0, NULL);
    case 21: return uv_fs_link(&loop, NULL, "missing", "missing", NULL);
    case 22: return uv_fs_symlink(&loop, NULL, "x", "missing/x", 0, NULL);
    case 23: return uv_fs_readlink(&loop, NULL, "missing", NULL);
    case 24: return uv_fs_realpath(&loop, NULL, ".", NULL);
    case 25: return uv_fs_chown(&loop, NULL, "missing", 0, 0, NULL);
    case 26: return uv_fs_fchown(&loop, NULL, -1, 0, 0, NULL);
    case 27: return uv_fs_lchown(&loop, NULL, "missing", 0, 0, NULL);
    case 28: return uv_fs_statfs(&loop, NULL, ".", NULL);
    case 29: return uv_fs_mkdtemp(&loop, NULL, "missing/XXXXXX", NULL);
    case 30: return uv_fs_mkstemp(&loop, NULL, "missing/XXXXXX", NULL);
    case 31: return uv_fs_copyfile(&loop, NULL, "missing", "missing", 0, NULL);
    case 32: return uv_fs_scandir(&loop, NULL, ".", 0, NULL);
    default: return uv_fs_opendir(&loop, NULL, ".", NULL);
  }
}

int directory_op(void) {
  uv_fs_t* req;
  unsigned which;
  int asynchronous, result;
  make();
  switch (below(4)) {
    case 0:
      for (which = 0; which < 34; which++) say("without request %u: %s", which, name(without_request(which)));
      return 0;
    case 1:
      req = calloc(1, sizeof *req);
      asynchronous = below(2);
      req->data = asynchronous ? req : NULL;
      result = uv_fs_scandir(&loop, req, names[below(6)], 0, asynchronous ? on_scandir : NULL);
      say("scandir %d: %s", asynchronous, name(result));
      if (asynchronous) awaited++;
      else on_scandir(req);
      return asynchronous;
    default: return read_through();
  }
}
