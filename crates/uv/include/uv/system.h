/*
 * The machine, the process and its surroundings.
 *
 * Functions that fill a buffer take its size in *size. If it is too small they
 * return UV_ENOBUFS and leave in *size what is needed, the NUL included; if it
 * suffices they leave the length, the NUL not included.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef BLACKLIGHT_UV_SYSTEM_H
#define BLACKLIGHT_UV_SYSTEM_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The version the library itself has, and the header's may differ from. */
UV_EXTERN unsigned int uv_version(void);
UV_EXTERN const char* uv_version_string(void);

/*
 * Memory of the library. The allocator has to be replaced before anything else
 * is called. uv_library_shutdown() gives back what the library holds globally;
 * nothing may be called after it.
 */
typedef void* (*uv_malloc_func)(size_t size);
typedef void* (*uv_realloc_func)(void* ptr, size_t size);
typedef void* (*uv_calloc_func)(size_t count, size_t size);
typedef void (*uv_free_func)(void* ptr);

UV_EXTERN int uv_replace_allocator(uv_malloc_func malloc_func,
                                   uv_realloc_func realloc_func,
                                   uv_calloc_func calloc_func,
                                   uv_free_func free_func);
UV_EXTERN void uv_library_shutdown(void);

/*
 * Time. uv_hrtime() is in nanoseconds from an arbitrary point in the past and
 * never runs backwards.
 */
typedef enum {
  UV_CLOCK_MONOTONIC,
  UV_CLOCK_REALTIME
} uv_clock_id;

UV_EXTERN int uv_clock_gettime(uv_clock_id clock_id, uv_timespec64_t* ts);
UV_EXTERN int uv_gettimeofday(uv_timeval64_t* tv);
UV_EXTERN uint64_t uv_hrtime(void);
UV_EXTERN void uv_sleep(unsigned int msec);
UV_EXTERN int uv_uptime(double* uptime);

/*
 * Processors and load. Times are in milliseconds.
 */
struct uv_cpu_times_s {
  uint64_t user;
  uint64_t nice;
  uint64_t sys;
  uint64_t idle;
  uint64_t irq;
};

struct uv_cpu_info_s {
  const char* model;
  int speed; /* In MHz. */
  struct uv_cpu_times_s cpu_times;
};

UV_EXTERN int uv_cpu_info(uv_cpu_info_t** cpu_infos, int* count);
UV_EXTERN void uv_free_cpu_info(uv_cpu_info_t* cpu_infos, int count);
UV_EXTERN int uv_cpumask_size(void);
/* How many threads can run at once, with regard to affinity and quotas. */
UV_EXTERN unsigned int uv_available_parallelism(void);
UV_EXTERN void uv_loadavg(double avg[3]);

/* Memory in bytes. A limit set by a control group counts as constrained. */
UV_EXTERN uint64_t uv_get_free_memory(void);
UV_EXTERN uint64_t uv_get_total_memory(void);
UV_EXTERN uint64_t uv_get_constrained_memory(void);
UV_EXTERN uint64_t uv_get_available_memory(void);
UV_EXTERN int uv_resident_set_memory(size_t* rss);

/* The use of resources as in getrusage(2), of which Linux fills a part. */
typedef struct {
  uv_timeval_t ru_utime;
  uv_timeval_t ru_stime;
  uint64_t ru_maxrss;
  uint64_t ru_ixrss;
  uint64_t ru_idrss;
  uint64_t ru_isrss;
  uint64_t ru_minflt;
  uint64_t ru_majflt;
  uint64_t ru_nswap;
  uint64_t ru_inblock;
  uint64_t ru_oublock;
  uint64_t ru_msgsnd;
  uint64_t ru_msgrcv;
  uint64_t ru_nsignals;
  uint64_t ru_nvcsw;
  uint64_t ru_nivcsw;
} uv_rusage_t;

UV_EXTERN int uv_getrusage(uv_rusage_t* rusage);
UV_EXTERN int uv_getrusage_thread(uv_rusage_t* rusage);

/*
 * The process. Its title can be set once uv_setup_args() was shown the
 * arguments of main(); the ones it returns are to be used from then on.
 */
UV_EXTERN char** uv_setup_args(int argc, char** argv);
UV_EXTERN int uv_get_process_title(char* buffer, size_t size);
UV_EXTERN int uv_set_process_title(const char* title);

UV_EXTERN uv_pid_t uv_os_getpid(void);
UV_EXTERN uv_pid_t uv_os_getppid(void);
UV_EXTERN int uv_exepath(char* buffer, size_t* size);
UV_EXTERN int uv_cwd(char* buffer, size_t* size);
UV_EXTERN int uv_chdir(const char* dir);

/* Niceness, from least to most favoured. */
#define UV_PRIORITY_LOW          19
#define UV_PRIORITY_BELOW_NORMAL 10
#define UV_PRIORITY_NORMAL       0
#define UV_PRIORITY_ABOVE_NORMAL (-7)
#define UV_PRIORITY_HIGH         (-14)
#define UV_PRIORITY_HIGHEST      (-20)

UV_EXTERN int uv_os_getpriority(uv_pid_t pid, int* priority);
UV_EXTERN int uv_os_setpriority(uv_pid_t pid, int priority);

/* A descriptor is a descriptor here; on Windows these two translate. */
UV_EXTERN uv_os_fd_t uv_get_osfhandle(int fd);
UV_EXTERN int uv_open_osfhandle(uv_os_fd_t os_fd);

/* The environment. The C library does not guard it against other threads. */
struct uv_env_item_s {
  char* name;
  char* value;
};

UV_EXTERN int uv_os_environ(uv_env_item_t** envitems, int* count);
UV_EXTERN void uv_os_free_environ(uv_env_item_t* envitems, int count);
UV_EXTERN int uv_os_getenv(const char* name, char* buffer, size_t* size);
UV_EXTERN int uv_os_setenv(const char* name, const char* value);
UV_EXTERN int uv_os_unsetenv(const char* name);

/*
 * Users and groups. What get fills, free empties.
 */
struct uv_passwd_s {
  char* username;
  unsigned long uid;
  unsigned long gid;
  char* shell;
  char* homedir;
};

struct uv_group_s {
  char* groupname;
  unsigned long gid;
  char** members; /* NULL-terminated. */
};

UV_EXTERN int uv_os_get_passwd(uv_passwd_t* pwd);
UV_EXTERN int uv_os_get_passwd2(uv_passwd_t* pwd, uv_uid_t uid);
UV_EXTERN void uv_os_free_passwd(uv_passwd_t* pwd);
UV_EXTERN int uv_os_get_group(uv_group_t* grp, uv_uid_t gid);
UV_EXTERN void uv_os_free_group(uv_group_t* grp);
UV_EXTERN int uv_os_homedir(char* buffer, size_t* size);
UV_EXTERN int uv_os_tmpdir(char* buffer, size_t* size);

/*
 * The machine's names.
 */
#ifdef MAXHOSTNAMELEN
# define UV_MAXHOSTNAMESIZE (MAXHOSTNAMELEN + 1)
#else
# define UV_MAXHOSTNAMESIZE 256
#endif

struct uv_utsname_s {
  char sysname[256];
  char release[256];
  char version[256];
  char machine[256];
};

UV_EXTERN int uv_os_gethostname(char* buffer, size_t* size);
UV_EXTERN int uv_os_uname(uv_utsname_t* buffer);

/*
 * UTF-16 to WTF-8 and back. WTF-8 is UTF-8 that can also carry the lone
 * surrogates found in file names on Windows. A negative length in means that
 * the text ends with a NUL.
 */
UV_EXTERN size_t uv_utf16_length_as_wtf8(const uint16_t* utf16,
                                         ssize_t utf16_len);
UV_EXTERN int uv_utf16_to_wtf8(const uint16_t* utf16,
                               ssize_t utf16_len,
                               char** wtf8_ptr,
                               size_t* wtf8_len_ptr);
UV_EXTERN ssize_t uv_wtf8_length_as_utf16(const char* wtf8);
UV_EXTERN void uv_wtf8_to_utf16(const char* wtf8,
                                uint16_t* utf16,
                                size_t utf16_len);

#ifdef __cplusplus
}
#endif

#endif /* BLACKLIGHT_UV_SYSTEM_H */
