/* Files: all of uv_fs_*, synchronous and asynchronous, in a directory of its own. Printed are results
 * and what is certain about a file; not its descriptor, inode, blocks or a time that is now. */
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "differ.h"

enum { FDS = 4 };
static int fds[FDS] = {-1, -1, -1, -1};
static int append[FDS];

static const char* names[] = {"files/a", "files/b", "files/d", "files/d/x", "files/l", "files/missing/x",
                              "files/a/x", "", "files", "files/loop", "files/d/../a", "files/e"};
static const char* some(void) { return names[below(sizeof names / sizeof names[0])]; }
static const char* fresh(void) { return below(2) ? "files/new" : "files/missing/new"; }
static char data[4096], place[4][64];

static void tell_stat(uv_stat_t* at) {
  long seconds = at->st_mtim.tv_sec;
  int now = seconds > 1500000000 && seconds < 4000000000;
  say("  mode %llo links %d size %lld owner %d %d time %ld %ld", (unsigned long long) at->st_mode, (int) at->st_nlink,
      S_ISDIR(at->st_mode) ? 0LL : (long long) at->st_size, (int) at->st_uid, (int) at->st_gid, now ? 0L : seconds,
      now ? 0L : (long) at->st_mtim.tv_nsec);
}

static void tell(uv_fs_t* req) {
  uv_dirent_t entry;
  int result = (int) req->result, fails;
  say("  fs %d: %s %d %s", (int) uv_fs_get_type(req), name(result),
      result < 0 || req->fs_type == UV_FS_OPEN || req->fs_type == UV_FS_MKSTEMP ? 0 : result, req->ptr ? "ptr" : "-");
  if (result < 0) return;
  switch (req->fs_type) {
    case UV_FS_STAT: case UV_FS_LSTAT: case UV_FS_FSTAT: tell_stat(uv_fs_get_statbuf(req)); break;
    case UV_FS_READLINK: say("  link %s", (char*) req->ptr); break;
    case UV_FS_REALPATH: say("  real %s", strrchr(req->ptr, '/')); break;
    case UV_FS_SCANDIR:
      while ((fails = uv_fs_scandir_next(req, &entry)) == 0) say("  entry %s %d", entry.name, entry.type);
      say("  next %s", name(fails));
      break;
    case UV_FS_MKDTEMP: say("  made %.7s %zu", req->path, strlen(req->path)); rmdir(req->path); break;
    case UV_FS_MKSTEMP: say("  made %.7s %zu", req->path, strlen(req->path)); unlink(req->path); close(result); break;
    case UV_FS_STATFS: say("  type %llx %llu", (unsigned long long) ((uv_statfs_t*) req->ptr)->f_type,
                           (unsigned long long) ((uv_statfs_t*) req->ptr)->f_bsize); break;
    case UV_FS_READ: for (int i = 0; i < 4; i++) say("  bytes %.8s", place[i]); break;
    default: break;
  }
}

static void on_fs(uv_fs_t* req) {
  long slot = (long) req->data - 1;
  awaited--;
  tell(req);
  if (req->fs_type == UV_FS_OPEN && req->result >= 0) fds[slot] = (int) req->result;
  uv_fs_req_cleanup(req);
  free(req);
}

static double moment(void) {
  static const double odd[] = {0, 1, -1, 0.5, -1.5, 1e9, 400497753.123456, 1e-9, 4e9};
  return odd[below(sizeof odd / sizeof odd[0])];
}

/* Calls with a descriptor. */
static int with_fd(uv_fs_t* req, int op, long* slot, uv_fs_cb cb) {
  unsigned at = below(FDS), count = below(8) ? 1 + below(4) : 0, size = below(4) ? 1 + below(60) : 0;
  int fd = below(12) ? fds[at] : 9999, flags;
  long offset = below(2) ? -1 : (long) below(200);
  uv_buf_t bufs[4];
  memset(place, 0, sizeof place);
  for (int i = 0; i < 4; i++) bufs[i] = uv_buf_init(op == 2 ? data : place[i], size);
  *slot = at + 1;
  req->data = (void*) *slot;
  switch (op) {
    case 0: case 1:
      if (fds[at] >= 0) { close(fds[at]); fds[at] = -1; }
      flags = (int[]){O_RDONLY, O_WRONLY, O_RDWR, O_RDWR | O_CREAT, O_WRONLY | O_CREAT | O_EXCL, O_RDWR | O_TRUNC,
                      O_RDWR | O_APPEND | O_CREAT, O_RDONLY | O_DIRECTORY, O_RDONLY | O_NOFOLLOW}[below(9)];
      append[at] = flags & O_APPEND;
      return uv_fs_open(&loop, req, some(), flags, below(2) ? 0600 : 0444, cb);
    case 2: return uv_fs_write(&loop, req, fd, bufs, count, offset, cb);
    case 3: return uv_fs_read(&loop, req, fd, bufs, count, offset, cb);
    case 4: if (fd == fds[at]) fds[at] = -1; return uv_fs_close(&loop, req, fd, cb);
    case 5: return uv_fs_fstat(&loop, req, fd, cb);
    case 6: return uv_fs_fsync(&loop, req, fd, cb);
    case 7: return uv_fs_fdatasync(&loop, req, fd, cb);
    case 8: return uv_fs_ftruncate(&loop, req, fd, (int) below(300) - 20, cb);
    case 9: { double a = moment(); return uv_fs_futime(&loop, req, fd, a, moment(), cb); }
    case 10: return uv_fs_fchmod(&loop, req, fd, below(2) ? 0600 : 0644, cb);
    case 11: return uv_fs_fchown(&loop, req, fd, -1, -1, cb);
    default: {
      unsigned to = below(FDS);
      /* Not compared: sending to a file opened for appending. */
      return uv_fs_sendfile(&loop, req, append[to] ? -1 : fds[to], fd, (long) below(50), below(100), cb);
    }
  }
}

static int with_path(uv_fs_t* req, int op, uv_fs_cb cb) {
  const char* path = some();
  const char* other = some();
  struct stat at;
  int value;
  say("  on '%s' '%s'", path, other);
  switch (op) {
    case 0: return uv_fs_unlink(&loop, req, path, cb);
    case 1: return uv_fs_mkdir(&loop, req, path, 0755, cb);
    case 2: return uv_fs_rmdir(&loop, req, path, cb);
    case 3: return uv_fs_scandir(&loop, req, path, 0, cb);
    case 4: return uv_fs_stat(&loop, req, path, cb);
    case 5: return uv_fs_lstat(&loop, req, path, cb);
    case 6: return uv_fs_rename(&loop, req, path, other, cb);
    case 7: return uv_fs_access(&loop, req, path, below(9), cb);
    case 8: return uv_fs_chmod(&loop, req, path, below(2) ? 0700 : 0755, cb);
    case 9: { double a = moment(); return uv_fs_utime(&loop, req, path, a, moment(), cb); }
    case 10: { double a = moment(); return uv_fs_lutime(&loop, req, path, a, moment(), cb); }
    case 11: return uv_fs_link(&loop, req, path, other, cb);
    case 12: return uv_fs_symlink(&loop, req, below(2) ? "a" : "loop", other, below(2), cb);
    case 13: return uv_fs_readlink(&loop, req, path, cb);
    case 14: return uv_fs_realpath(&loop, req, path, cb);
    case 15: return uv_fs_chown(&loop, req, path, -1, -1, cb);
    case 16: return uv_fs_lchown(&loop, req, path, -1, -1, cb);
    case 17: return uv_fs_statfs(&loop, req, path, cb);
    case 18: return uv_fs_mkdtemp(&loop, req, (const char*[]){"files/tXXXXXX", "files/t", "missing/XXXXXX"}[below(3)], cb);
    case 19: return uv_fs_mkstemp(&loop, req, (const char*[]){"files/tXXXXXX", "files/t", "missing/XXXXXX"}[below(3)], cb);
    default:
      /* A copy that fails keeps its destination here and not there: it goes where there is none. Of a
       * directory ours knows that it cannot be copied before it looks at the destination, or makes it. */
      value = (int[]){0, UV_FS_COPYFILE_EXCL, UV_FS_COPYFILE_FICLONE, UV_FS_COPYFILE_FICLONE_FORCE, 8, -1}[below(6)];
      unlink("files/new");
      return uv_fs_copyfile(&loop, req, path, stat(path, &at) == 0 && S_ISDIR(at.st_mode) ? "copies/copy" : fresh(), value, cb);
  }
}

int file_op(void) {
  static int begun;
  uv_fs_t* req = calloc(1, sizeof *req);
  uv_fs_cb cb = below(2) ? on_fs : NULL;
  long slot = 0;
  int which = below(5) < 2, op = which ? (int) below(13) : (int) below(22), result;
  if (!begun++) {
    mkdir("files", 0755);
    mkdir("copies", 0755);
    memset(data, 'w', sizeof data);
  }
  result = which ? with_fd(req, op, &slot, cb) : with_path(req, op, cb);
  say("%s %d %s: %s", which ? "file" : "path", op, cb ? "async" : "sync", name(result));
  if (cb != NULL && result == 0) {
    awaited++;
    return 1;
  }
  if (cb == NULL) {
    tell(req);
    if (req->fs_type == UV_FS_OPEN && result >= 0) fds[slot - 1] = result;
    uv_fs_req_cleanup(req);
  }
  free(req);
  return 0;
}

void file_end(void) {
  for (int i = 0; i < FDS; i++) if (fds[i] >= 0) close(fds[i]);
}
