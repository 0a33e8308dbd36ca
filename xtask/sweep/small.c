/* Scenarios without traffic: accessors, names, conversions, titles, loops that the library allocates, a watched
 * tree, a recorded loop. */
#include "sweep.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Accessors of loops, handles and requests. */
static void stop_it(uv_idle_t* idle) { uv_stop(idle->loop); }
void accessors(void) {
  static uv_idle_t idle;
  static uv_write_t write;
  uv_fs_t file;
  uv_loop_set_data(loop, &idle);
  int right = uv_loop_get_data(loop) == &idle && uv_loop_size() == sizeof *loop;
  if (TRY(uv_idle_init(loop, &idle)) < 0 || TRY(uv_idle_start(&idle, stop_it)) < 0) return;
  uv_handle_t* handle = (uv_handle_t*) &idle;
  uv_handle_set_data(handle, loop);
  right &= uv_handle_get_data(handle) == loop && uv_handle_get_loop(handle) == loop;
  right &= uv_handle_get_type(handle) == UV_IDLE && uv_handle_size(UV_IDLE) == sizeof idle;
  right &= strcmp(uv_handle_type_name(UV_IDLE), "idle") == 0;
  uv_run(loop, UV_RUN_DEFAULT);
  uv_req_t* request = (uv_req_t*) &write;
  request->type = UV_WRITE;
  uv_req_set_data(request, loop);
  right &= uv_req_get_data(request) == loop && uv_req_get_type(request) == UV_WRITE;
  right &= uv_req_size(UV_WRITE) == sizeof write && strcmp(uv_req_type_name(UV_WRITE), "write") == 0;
  int result = TRY(uv_fs_stat(NULL, &file, "/", NULL));
  if (result == 0) right &= S_ISDIR(uv_fs_get_statbuf(&file)->st_mode) && uv_fs_get_ptr(&file) != NULL;
  right &= uv_fs_get_result(&file) == result && (uv_fs_get_system_error(&file) == 0) == (result == 0);
  if (result != UV_ENOMEM) right &= uv_fs_get_type(&file) == UV_FS_STAT && strcmp(uv_fs_get_path(&file), "/") == 0;
  uv_fs_req_cleanup(&file);
  right &= uv_open_osfhandle(uv_get_osfhandle(2)) == 2;
  right &= uv_version() == UV_VERSION_HEX && uv_version_string()[0] != '\0';
  if (right) aim_reached();
}

/* Names of errors, addresses as text, and text in other encodings. */
void conversions(void) {
  char text[128];
  struct sockaddr_in v4;
  struct sockaddr_in6 v6;
  int right = uv_translate_sys_error(EIO) == UV_EIO;
  /* Of numbers that are not known the first two return memory that is never freed, as documented. */
  right &= strcmp(uv_err_name(UV_EIO), "EIO") == 0 && strcmp(uv_strerror(UV_EIO), "i/o error") == 0;
  right &= strcmp(uv_err_name_r(-12345, text, sizeof text), "Unknown system error -12345") == 0;
  right &= strcmp(uv_strerror_r(UV_EIO, text, sizeof text), "i/o error") == 0;
  TRY(uv_ip4_addr("127.0.0.1", 1, &v4));
  TRY(uv_ip6_addr("::1", 1, &v6));
  if (TRY(uv_ip4_name(&v4, text, sizeof text)) == 0) right &= strcmp(text, "127.0.0.1") == 0;
  if (TRY(uv_ip6_name(&v6, text, sizeof text)) == 0) right &= strcmp(text, "::1") == 0;
  if (TRY(uv_ip_name((struct sockaddr*) &v6, text, sizeof text)) == 0) right &= strcmp(text, "::1") == 0;
  TRY(uv_inet_pton(AF_INET, "127.0.0.2", &v4.sin_addr));
  if (TRY(uv_inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text)) == 0) right &= strcmp(text, "127.0.0.2") == 0;
  uint16_t wide[8];
  char* narrow = NULL;
  size_t size = 0;
  ssize_t length = uv_wtf8_length_as_utf16("light");
  right &= length == 6;
  uv_wtf8_to_utf16("light", wide, (size_t) length);
  right &= uv_utf16_length_as_wtf8(wide, 5) == 5;
  if (TRY(uv_utf16_to_wtf8(wide, 5, &narrow, &size)) == 0) {
    right &= size == 5 && strcmp(narrow, "light") == 0;
    uv_side_free(narrow);
  }
  if (right) aim_reached();
}

/* A loop in the library's memory. It says that there is none, not why. */
void loops_made(void) {
  uv_loop_t* another = uv_loop_new();
  if (note(another == NULL ? UV_ENOMEM : 0, "uv_loop_new") < 0) return;
  uv_run(another, UV_RUN_DEFAULT);
  uv_loop_delete(another);
  aim_reached();
}

/* The title. Without memory uv_setup_args returns the arguments that it was given, and there is no title. */
void titles(void) {
  static int is_set_up;
  char title[64];
  if (!is_set_up) is_set_up = uv_setup_args(argument_count, arguments) != arguments;
  if (note(is_set_up ? 0 : UV_ENOMEM, "uv_setup_args") < 0) return;
  if (TRY(uv_set_process_title("sweep")) < 0 || TRY(uv_get_process_title(title, sizeof title)) < 0) return;
  if (strcmp(title, "sweep") == 0) aim_reached();
}

/* A thread that nobody joins, and a wait for its signal. */
static struct { uv_mutex_t mutex; uv_cond_t condition; int is_told; } waited;
static void tell(void* unused) {
  (void) unused;
  uv_mutex_lock(&waited.mutex);
  waited.is_told = 1;
  uv_cond_signal(&waited.condition);
  uv_mutex_unlock(&waited.mutex);
}
void detached(void) {
  uv_thread_t thread;
  waited.is_told = 0;
  if (TRY(uv_mutex_init(&waited.mutex)) < 0) return;
  if (TRY(uv_cond_init(&waited.condition)) == 0) {
    if (TRY(uv_thread_create(&thread, tell, NULL)) == 0) {
      uv_mutex_lock(&waited.mutex);
      while (!waited.is_told) uv_cond_wait(&waited.condition, &waited.mutex);
      uv_mutex_unlock(&waited.mutex);
      TRY(uv_thread_detach(&thread));
    }
    uv_cond_destroy(&waited.condition);
  }
  uv_mutex_destroy(&waited.mutex);
  aim_reached();
}

/* A datagram socket of the program's own, and a request's count of bytes. */
static uv_udp_t adopted;
void udp_adopted(void) {
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (TRY(uv_udp_init(loop, &adopted)) < 0 || TRY(uv_udp_open_ex(&adopted, fd, UV_UDP_REUSEADDR)) < 0) {
    close(fd);
    return;
  }
  aim_reached();
}

/* A tree of directories, which grows and shrinks while it is watched. */
static uv_fs_event_t tree;
static int saw_file;
static void on_tree(uv_fs_event_t* handle, const char* name, int events, int status) {
  (void) events;
  if (note(status, "fs_event") < 0) return;
  /* Without a name anything may have happened. What is in a directory that may not be looked into is not told. */
  if (name == NULL || strcmp(name, "new/file") == 0 || interpose_denied()) saw_file = 1;
  if (name != NULL && strcmp(name, "last") != 0) return;
  uv_close((uv_handle_t*) handle, NULL);
  if (saw_file) aim_reached();
}
void watching_tree(void) {
  mkdir("tree", 0700);
  mkdir("tree/old", 0700);
  mkdir("tree/old/older", 0700);
  rmdir("tree/new/below");
  unlink("tree/new/file");
  rmdir("tree/new");
  unlink("tree/last");
  saw_file = 0;
  if (TRY(uv_fs_event_init(loop, &tree)) < 0) return;
  if (TRY(uv_fs_event_start(&tree, on_tree, "tree", UV_FS_EVENT_RECURSIVE)) < 0) return;
  mkdir("tree/new", 0700);
  mkdir("tree/new/below", 0700);
  rmdir("tree/old/older");
  close(open("tree/new/file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  close(open("tree/last", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
}

/* A loop that is recorded from its beginning, with a handle and a request to the pool. What the system refuses the
 * record is no error of the loop's. */
static uv_loop_t watched;
static uv_timer_t watched_timer;
static uv_work_t watched_work;
static int watched_events;
static void on_watched_timer(uv_timer_t* timer) {
  watched_events++;
  uv_close((uv_handle_t*) timer, NULL);
}
static void watched_job(uv_work_t* request) { (void) request; }
static void on_watched_job(uv_work_t* request, int status) {
  watched_events++;
  reported(request, status);
}
void recorded(void) {
  watched_events = 0;
  setenv("BLACKLIGHT_RECORD", "origins", 1);
  int result = TRY(uv_loop_init(&watched));
  unsetenv("BLACKLIGHT_RECORD");
  if (result < 0) return;
  if (TRY(uv_timer_init(&watched, &watched_timer)) == 0 && TRY(uv_timer_start(&watched_timer, on_watched_timer, 1, 0)) < 0)
    uv_close((uv_handle_t*) &watched_timer, NULL);
  if (TRY(uv_queue_work(&watched, &watched_work, watched_job, on_watched_job)) == 0) submitted(&watched_work);
  uv_run(&watched, UV_RUN_DEFAULT);
  TRY(uv_loop_close(&watched));
  if (watched_events == 2) aim_reached();
}
