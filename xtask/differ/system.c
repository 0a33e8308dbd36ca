/* Functions without a loop: the environment, names, addresses, errors, limits. Printed is what a machine
 * says twice, and of the rest whether it makes sense. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "differ.h"

static char text[5000];
static const size_t sizes[] = {sizeof text, 0, 1, 2, 5, 10, 30};

static size_t some_size(void) { return sizes[below(2) ? 0 : below(7)]; }

/* What a function says that fills `text`, whose room it was given. */
static void tell_text(const char* what, int result, size_t size) {
  say("%s: %s %zu '%s'", what, name(result), size, result == 0 ? text : "");
}

static void environment(void) {
  static const char* names[] = {"DIFFER_A", "DIFFER_B", "", "A=B", "HOME"};
  static const char* values[] = {"", "one", "a longer value", "x=y"};
  const char* key = names[below(5)];
  size_t size = some_size();
  uv_env_item_t* items;
  int count, found = 0, result;
  switch (below(5)) {
    case 0: case 1:
      if (strcmp(key, "HOME") == 0) return;
      say("setenv %s: %s", key, name(uv_os_setenv(key, values[below(4)])));
      break;
    case 2:
      if (strcmp(key, "HOME") == 0) return;
      say("unsetenv %s: %s", key, name(uv_os_unsetenv(key)));
      break;
    case 3:
      result = uv_os_getenv(key, text, &size);
      say("getenv %s", key);
      tell_text("  is", result, size);
      break;
    case 4:
      result = uv_os_environ(&items, &count);
      say("environ: %s", name(result));
      if (result != 0) return;
      for (int i = 0; i < count; i++)
        if (strncmp(items[i].name, "DIFFER", 6) == 0) { say("  %s='%s'", items[i].name, items[i].value); found++; }
      say("  found %d, %d", found, count > found);
      uv_os_free_environ(items, count);
      break;
  }
  say("null: %s %s %s", name(uv_os_getenv(NULL, text, &size)), name(uv_os_setenv(key, NULL)), name(uv_os_unsetenv(NULL)));
}

static void places(void) {
  size_t size = some_size();
  static const char* vars[] = {"HOME", "TMPDIR", "TMP", "TEMP", "TEMPDIR"};
  const char* var = vars[below(5)];
  char* before = getenv(var) ? strdup(getenv(var)) : NULL;
  switch (below(4)) {
    case 0: unsetenv(var); break;
    case 1: setenv(var, "", 1); break;
    case 2: setenv(var, below(2) ? "/somewhere/" : "/", 1); break;
  }
  say("with %s '%s'", var, getenv(var) ? getenv(var) : "-");
  switch (below(5)) {
    case 0: tell_text("homedir", uv_os_homedir(text, &size), size); break;
    case 1: tell_text("tmpdir", uv_os_tmpdir(text, &size), size); break;
    case 2: { int result = uv_cwd(text, &size); tell_text("cwd", result, size); break; }
    case 3: { int result = uv_exepath(text, &size); say("exepath: %s %d", name(result), result == 0 && text[size] == 0 && size == strlen(text)); break; }
    case 4: tell_text("hostname", uv_os_gethostname(text, &size), size); break;
  }
  if (before) setenv(var, before, 1);
  else unsetenv(var);
  free(before);
  size = 0;
  say("no room: %s %s %s", name(uv_os_homedir(text, &size)), name(uv_os_tmpdir(NULL, &size)), name(uv_cwd(text, NULL)));
}

static void people(void) {
  uv_passwd_t who;
  uv_group_t group;
  int result;
  switch (below(4)) {
    case 0: result = uv_os_get_passwd(&who); break;
    case 1: result = uv_os_get_passwd2(&who, 0); break;
    case 2: result = uv_os_get_passwd2(&who, 123456); break;
    default:
      result = uv_os_get_group(&group, below(2) ? 0 : 123456);
      say("group: %s", name(result));
      if (result != 0) return;
      say("  %s %lu %s", group.groupname, group.gid, group.members && group.members[0] ? group.members[0] : "-");
      uv_os_free_group(&group);
      return;
  }
  say("passwd: %s", name(result));
  if (result != 0) return;
  say("  %s %ld %ld %s %s", who.username, (long) who.uid, (long) who.gid, who.homedir, who.shell ? who.shell : "-");
  uv_os_free_passwd(&who);
}

static void addresses(void) {
  static const char* strings[] = {"127.0.0.1", "256.1.1.1", "", "::1", "fe80::1%lo", "fe80::1%nonsense", "::ffff:1.2.3.4", "1.2.3",
                                  "01.2.3.4", "::1%", "12345::", "::%lo", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8:9", "1.2.3.4 ", "1:2:3:4:5:6:1.2.3.4"};
  const char* string = strings[below(16)];
  int family = (int[]){AF_INET, AF_INET6, AF_UNIX, 12345}[below(4)], result;
  unsigned char raw[16] = {0};
  struct sockaddr_storage at;
  size_t size = below(2) ? sizeof text : below(20);
  memset(&at, 0, sizeof at);
  text[0] = 0;
  result = uv_inet_pton(family, string, raw);
  say("pton %d %s: %s %d %d", family, string, name(result), raw[0], raw[15]);
  for (int i = 0; i < 16; i++) raw[i] = (unsigned char) (below(2) ? 0 : below(256));
  result = uv_inet_ntop(family, raw, text, size);
  say("ntop %d in %zu: %s %s", family, size, name(result), result == 0 ? text : "");
  result = uv_ip4_addr(string, 70000, (struct sockaddr_in*) &at);
  say("ip4 %s: %s", string, name(result));
  result = uv_ip4_name((struct sockaddr_in*) &at, text, size);
  say("  name: %s %s", name(result), result == 0 ? text : "");
  result = uv_ip6_addr(string, 80, (struct sockaddr_in6*) &at);
  say("ip6 %s: %s scope %u", string, name(result), ((struct sockaddr_in6*) &at)->sin6_scope_id);
  result = uv_ip6_name((struct sockaddr_in6*) &at, text, size);
  say("  name: %s %s", name(result), result == 0 ? text : "");
  at.ss_family = (sa_family_t) family;
  result = uv_ip_name((struct sockaddr*) &at, text, size);
  say("  any: %s %s", name(result), result == 0 ? text : "");
  size = some_size();
  result = below(2) ? uv_if_indextoname(1 + below(3), text, &size) : uv_if_indextoiid(1 + below(3), text, &size);
  tell_text("interface", result, size);
}

static void errors(void) {
  int number = below(3) ? -(int) below(140) : below(2) ? -3000 - (int) below(20) : -4080 - (int) below(20);
  char small[12], wide[200];
  say("error %d: %s, %s", number, uv_err_name_r(number, wide, sizeof wide), uv_err_name_r(number, small, sizeof small));
  say("  %s, %s", uv_strerror_r(number, wide, sizeof wide), uv_strerror_r(number, small, sizeof small));
  say("  translated %d %d", uv_translate_sys_error(number), uv_translate_sys_error(-number));
  if (number != 0 && strncmp(uv_err_name_r(number, wide, sizeof wide), "Unknown", 7) != 0)
    say("  %s %s", uv_err_name(number), uv_strerror(number));
  number = (int) below(25) - 2;
  say("type %d: handle %s %zu, request %s %zu", number, uv_handle_type_name(number) ? uv_handle_type_name(number) : "-",
      uv_handle_size(number), uv_req_type_name(number) ? uv_req_type_name(number) : "-", uv_req_size(number));
}

static void machine(void) {
  uv_utsname_t uts;
  uv_interface_address_t* faces;
  uv_cpu_info_t* cpus;
  uv_rusage_t usage;
  uv_timespec64_t now;
  uv_timeval64_t day;
  double load[3] = {-1, -1, -1}, up = 0;
  size_t memory = 0;
  int count = 0, result;
  switch (below(6)) {
    case 0:
      result = uv_os_uname(&uts);
      say("uname: %s %s %s %s %s", name(result), uts.sysname, uts.release, uts.version, uts.machine);
      break;
    case 1:
      result = uv_interface_addresses(&faces, &count);
      say("interfaces: %s %d", name(result), count);
      for (int i = 0; result == 0 && i < count; i++) {
        uv_ip_name((struct sockaddr*) &faces[i].address, text, sizeof text);
        say("  %s %s internal %d mac %02x", faces[i].name, text, faces[i].is_internal, (unsigned char) faces[i].phys_addr[0]);
        uv_ip_name((struct sockaddr*) &faces[i].netmask, text, sizeof text);
        say("  mask %s", text);
      }
      if (result == 0) uv_free_interface_addresses(faces, count);
      break;
    case 2:
      result = uv_cpu_info(&cpus, &count);
      say("cpus: %s %d %s", name(result), count, result == 0 ? cpus[0].model : "");
      if (result == 0) uv_free_cpu_info(cpus, count);
      say("parallelism %u mask %d", uv_available_parallelism(), uv_cpumask_size());
      break;
    case 3:
      say("rusage: %s %s memory: %s", name(uv_getrusage(&usage)), name(uv_getrusage_thread(&usage)), name(uv_resident_set_memory(&memory)));
      say("  total %llu constrained %llu, %d %d", (unsigned long long) uv_get_total_memory(),
          (unsigned long long) uv_get_constrained_memory(), uv_get_free_memory() > 0, uv_get_available_memory() > 0);
      break;
    case 4:
      uv_loadavg(load);
      say("uptime: %s %d load %d", name(uv_uptime(&up)), up > 0, load[0] >= 0 && load[2] >= 0);
      break;
    case 5:
      result = uv_clock_gettime((uv_clock_id) below(4), &now);
      say("clock: %s", name(result));
      say("day: %s %s", name(uv_gettimeofday(&day)), name(uv_gettimeofday(NULL)));
      say("hrtime %d", uv_hrtime() > 0);
      break;
  }
}

static void process(void) {
  int value = 99, result;
  size_t size = some_size();
  switch (below(5)) {
    case 0:
      result = uv_os_getpriority(below(3) ? 0 : 0x3fffffff, &value);
      say("getpriority: %s %d, %s", name(result), result == 0 ? value : 0, name(uv_os_getpriority(0, NULL)));
      break;
    case 1:
      value = (int[]){-21, 20, 100, 19}[below(4)];
      say("setpriority %d: %s", value, name(uv_os_setpriority(value == 19 ? 0x3fffffff : 0, value)));
      break;
    case 2:
      say("pid %d %d", uv_os_getpid() == getpid(), uv_os_getppid() == getppid());
      break;
    case 3:
      say("title: %s %s %s", name(uv_get_process_title(text, size)), name(uv_get_process_title(NULL, 1)), name(uv_set_process_title("x")));
      break;
    case 4:
      say("chdir: %s %s", name(uv_chdir("missing")), name(uv_chdir(".")));
      break;
  }
}

static void descriptors(void) {
  int fds[2] = {-1, -1}, form = below(6), result, flags = below(3) ? 0 : UV_NONBLOCK_PIPE;
  uv_tty_t tty;
  uv_lib_t lib;
  uv_tty_vtermstate_t terminal;
  switch (form) {
    case 0: result = uv_pipe(fds, flags, 0); break;
    case 1: result = uv_socketpair(SOCK_STREAM, 0, fds, flags, 0); break;
    case 2: result = uv_socketpair(SOCK_DGRAM, 0, fds, 0, flags); break;
    case 3: result = uv_socketpair(12345, 0, fds, 0, 0); break;
    case 4: result = (fds[0] = open("plain", O_RDONLY)) < 0; break;
    default: result = (fds[0] = socket(below(2) ? AF_INET : AF_INET6, below(2) ? SOCK_STREAM : SOCK_DGRAM, 0)) < 0; break;
  }
  say("descriptors %d: %s", form, name(result));
  for (int i = 0; i < 2; i++) {
    if (fds[i] < 0) continue;
    say("  guess %d nonblocking %d cloexec %d", uv_guess_handle(fds[i]), (fcntl(fds[i], F_GETFL) & O_NONBLOCK) != 0,
        (fcntl(fds[i], F_GETFD) & FD_CLOEXEC) != 0);
    say("  same %d %d", uv_open_osfhandle(uv_get_osfhandle(fds[i])) == fds[i], uv_guess_handle(-1));
    if (form == 4) say("  tty: %s", name(uv_tty_init(&loop, &tty, fds[i], 1)));
    close(fds[i]);
  }
  switch (below(3)) {
    case 0: say("reset: %s vterm: %s", name(uv_tty_reset_mode()), name(uv_tty_get_vterm_state(&terminal))); break;
    case 1:
      result = uv_dlopen(below(2) ? "/missing.so" : "plain", &lib);
      say("dlopen: %d %s", result, uv_dlerror(&lib));
      uv_dlclose(&lib);
      break;
    case 2: {
      void* symbol;
      result = uv_dlopen(NULL, &lib);
      say("dlopen: %d dlsym %d %d", result, uv_dlsym(&lib, "malloc", &symbol), uv_dlsym(&lib, "nonsense", &symbol));
      uv_dlclose(&lib);
      break;
    }
  }
}

static void loops(void) {
  uv_loop_t own;
  uv_idle_t idle;
  say("loop: %s", name(uv_loop_init(&own)));
  say("  configure %s %s %s", name(uv_loop_configure(&own, UV_LOOP_BLOCK_SIGNAL, below(2) ? SIGPROF : SIGTERM)),
      name(uv_loop_configure(&own, UV_METRICS_IDLE_TIME)), name(uv_loop_configure(&own, (uv_loop_option) 77)));
  say("  alive %d timeout %d size %d", uv_loop_alive(&own), uv_backend_timeout(&own), uv_loop_size() == sizeof own);
  if (poller[0] == 0) say("  fd %d", uv_backend_fd(&own) >= 0); /* Not every mechanism has one. */
  uv_idle_init(&own, &idle);
  uv_idle_start(&idle, NULL);
  say("  close: %s", name(uv_loop_close(&own)));
  uv_stop(&own);
  say("  run: %d", uv_run(&own, UV_RUN_DEFAULT));
  uv_close((uv_handle_t*) &idle, NULL);
  say("  timeout %d alive %d", uv_backend_timeout(&own), uv_loop_alive(&own));
  say("  run: %d", uv_run(&own, (uv_run_mode) below(3)));
  say("  close: %s idle %d", name(uv_loop_close(&own)), 0);
}

static void strings(void) {
  uint16_t wide[16], back[64];
  ssize_t length = (ssize_t) below(12);
  size_t size = 0;
  char* made = NULL;
  int result;
  for (int i = 0; i < 16; i++) wide[i] = (uint16_t) (below(2) ? 1 + below(0x7f) : below(2) ? 0xd7f0 + below(0x900) : 1 + below(0xfffe));
  wide[length] = 0;
  if (below(2)) length = -1;
  say("utf16 %zd as wtf8 %zu", length, uv_utf16_length_as_wtf8(wide, length));
  result = uv_utf16_to_wtf8(wide, length, &made, &size);
  say("  made: %s %zu", name(result), size);
  if (result != 0) return;
  for (size_t i = 0; i < size; i++) say("  %02x", (unsigned char) made[i]);
  if (below(3) == 0 && size > 1) made[below((unsigned) size)] = (char) (128 + below(128));
  length = uv_wtf8_length_as_utf16(made);
  say("  back %zd", length);
  if (length > 0) {
    uv_wtf8_to_utf16(made, back, (size_t) length);
    for (ssize_t i = 0; i < length; i++) say("  %04x", back[i]);
  }
  free(made);
}

int system_op(void) {
  switch (below(10)) {
    case 0: environment(); break;
    case 1: places(); break;
    case 2: people(); break;
    case 3: case 4: addresses(); break;
    case 5: errors(); break;
    case 6: machine(); break;
    case 7: process(); break;
    case 8: if (below(2)) descriptors(); else loops(); break;
    case 9: strings(); break;
  }
  return 0;
}
