/*
 * UDP, and everything about addresses and names of hosts and interfaces.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef BLACKLIGHT_UV_NETWORK_H
#define BLACKLIGHT_UV_NETWORK_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * UDP.
 */
struct uv_udp_s {
  UV_HANDLE_FIELDS
  size_t send_queue_size;  /* Bytes that wait to be sent. */
  size_t send_queue_count; /* Requests they belong to. */
  /* Private to the library; kept for layout. */
  uv_alloc_cb alloc_cb;
  uv_udp_recv_cb recv_cb;
  uv__io_t io_watcher;
  struct uv__queue write_queue;
  struct uv__queue write_completed_queue;
};

struct uv_udp_send_s {
  UV_REQ_FIELDS
  uv_udp_t* handle;
  uv_udp_send_cb cb;
  /* Private to the library; kept for layout. */
  struct uv__queue queue;
  union {
    struct sockaddr addr;
    struct sockaddr_storage storage;
  } u;
  unsigned int nbufs;
  uv_buf_t* bufs;
  ssize_t status;
  uv_udp_send_cb send_cb;
  uv_buf_t bufsml[4];
};

enum uv_udp_flags {
  /* For uv_udp_bind(). With REUSEADDR the last socket to bind takes the port
   * from the others; with REUSEPORT they share what arrives. RECVERR has the
   * kernel report ICMP errors in full. */
  UV_UDP_IPV6ONLY      = 1,
  UV_UDP_REUSEADDR     = 4,
  UV_UDP_LINUX_RECVERR = 32,
  UV_UDP_REUSEPORT     = 64,
  /* For uv_udp_init_ex(): receive many datagrams with one system call, into a
   * buffer that should hold several times 64 KiB. */
  UV_UDP_RECVMMSG      = 256,
  /* To the receive callback: the datagram did not fit and its rest is lost. */
  UV_UDP_PARTIAL       = 2,
  /* To the receive callback of such a handle: this is a part of the buffer,
   * which must not be freed yet; or, no data, and it now may be. */
  UV_UDP_MMSG_CHUNK    = 8,
  UV_UDP_MMSG_FREE     = 16
};

typedef enum {
  UV_LEAVE_GROUP,
  UV_JOIN_GROUP
} uv_membership;

UV_EXTERN int uv_udp_init(uv_loop_t* loop, uv_udp_t* handle);
/* The low byte of the flags is an address family: the socket exists at once. */
UV_EXTERN int uv_udp_init_ex(uv_loop_t* loop,
                             uv_udp_t* handle,
                             unsigned int flags);
UV_EXTERN int uv_udp_open(uv_udp_t* handle, uv_os_sock_t sock);
UV_EXTERN int uv_udp_open_ex(uv_udp_t* handle,
                             uv_os_sock_t sock,
                             unsigned int flags);
UV_EXTERN int uv_udp_bind(uv_udp_t* handle,
                          const struct sockaddr* addr,
                          unsigned int flags);
/* A NULL address undoes the connection. */
UV_EXTERN int uv_udp_connect(uv_udp_t* handle, const struct sockaddr* addr);
UV_EXTERN int uv_udp_getpeername(const uv_udp_t* handle,
                                 struct sockaddr* name,
                                 int* namelen);
UV_EXTERN int uv_udp_getsockname(const uv_udp_t* handle,
                                 struct sockaddr* name,
                                 int* namelen);

/* The address is NULL if and only if the handle is connected. */
UV_EXTERN int uv_udp_send(uv_udp_send_t* req,
                          uv_udp_t* handle,
                          const uv_buf_t bufs[],
                          unsigned int nbufs,
                          const struct sockaddr* addr,
                          uv_udp_send_cb send_cb);
UV_EXTERN int uv_udp_try_send(uv_udp_t* handle,
                              const uv_buf_t bufs[],
                              unsigned int nbufs,
                              const struct sockaddr* addr);
/* `count` datagrams at once, each with its own buffers and its own address;
 * returns how many of them were sent. */
UV_EXTERN int uv_udp_try_send2(uv_udp_t* handle,
                               unsigned int count,
                               uv_buf_t* bufs[],
                               unsigned int nbufs[],
                               struct sockaddr* addrs[],
                               unsigned int flags);
UV_EXTERN int uv_udp_recv_start(uv_udp_t* handle,
                                uv_alloc_cb alloc_cb,
                                uv_udp_recv_cb recv_cb);
UV_EXTERN int uv_udp_recv_stop(uv_udp_t* handle);
UV_EXTERN int uv_udp_using_recvmmsg(const uv_udp_t* handle);
UV_EXTERN size_t uv_udp_get_send_queue_size(const uv_udp_t* handle);
UV_EXTERN size_t uv_udp_get_send_queue_count(const uv_udp_t* handle);

UV_EXTERN int uv_udp_set_membership(uv_udp_t* handle,
                                    const char* multicast_addr,
                                    const char* interface_addr,
                                    uv_membership membership);
UV_EXTERN int uv_udp_set_source_membership(uv_udp_t* handle,
                                           const char* multicast_addr,
                                           const char* interface_addr,
                                           const char* source_addr,
                                           uv_membership membership);
UV_EXTERN int uv_udp_set_multicast_loop(uv_udp_t* handle, int on);
UV_EXTERN int uv_udp_set_multicast_ttl(uv_udp_t* handle, int ttl);
UV_EXTERN int uv_udp_set_multicast_interface(uv_udp_t* handle,
                                             const char* interface_addr);
UV_EXTERN int uv_udp_set_broadcast(uv_udp_t* handle, int on);
UV_EXTERN int uv_udp_set_ttl(uv_udp_t* handle, int ttl);

/*
 * Names of hosts and services, looked up on the thread pool. Without a callback
 * the calls block. Results stay in the requests, where programs read
 * `addrinfo`, `host` and `service`.
 */
struct uv_getaddrinfo_s {
  UV_REQ_FIELDS
  uv_loop_t* loop;
  /* Private to the library; kept for layout. */
  struct uv__work work_req;
  uv_getaddrinfo_cb cb;
  struct addrinfo* hints;
  char* hostname;
  char* service;
  struct addrinfo* addrinfo;
  int retcode;
};

struct uv_getnameinfo_s {
  UV_REQ_FIELDS
  uv_loop_t* loop;
  /* Private to the library; kept for layout. */
  struct uv__work work_req;
  uv_getnameinfo_cb getnameinfo_cb;
  struct sockaddr_storage storage;
  int flags;
  char host[NI_MAXHOST];
  char service[NI_MAXSERV];
  int retcode;
};

UV_EXTERN int uv_getaddrinfo(uv_loop_t* loop,
                             uv_getaddrinfo_t* req,
                             uv_getaddrinfo_cb getaddrinfo_cb,
                             const char* node,
                             const char* service,
                             const struct addrinfo* hints);
/* The list belongs to whoever received it; NULL is allowed. */
UV_EXTERN void uv_freeaddrinfo(struct addrinfo* ai);
UV_EXTERN int uv_getnameinfo(uv_loop_t* loop,
                             uv_getnameinfo_t* req,
                             uv_getnameinfo_cb getnameinfo_cb,
                             const struct sockaddr* addr,
                             int flags);

/* Addresses to text and back. */
UV_EXTERN int uv_ip4_addr(const char* ip, int port, struct sockaddr_in* addr);
UV_EXTERN int uv_ip6_addr(const char* ip, int port, struct sockaddr_in6* addr);
UV_EXTERN int uv_ip4_name(const struct sockaddr_in* src,
                          char* dst,
                          size_t size);
UV_EXTERN int uv_ip6_name(const struct sockaddr_in6* src,
                          char* dst,
                          size_t size);
UV_EXTERN int uv_ip_name(const struct sockaddr* src, char* dst, size_t size);
UV_EXTERN int uv_inet_ntop(int af, const void* src, char* dst, size_t size);
UV_EXTERN int uv_inet_pton(int af, const char* src, void* dst);

/*
 * Network interfaces. A name fits into UV_IF_NAMESIZE bytes.
 */
#define UV_IF_NAMESIZE (16 + 1)

struct uv_interface_address_s {
  char* name;
  char phys_addr[6];
  int is_internal;
  union {
    struct sockaddr_in address4;
    struct sockaddr_in6 address6;
  } address;
  union {
    struct sockaddr_in netmask4;
    struct sockaddr_in6 netmask6;
  } netmask;
};

UV_EXTERN int uv_interface_addresses(uv_interface_address_t** addresses,
                                     int* count);
UV_EXTERN void uv_free_interface_addresses(uv_interface_address_t* addresses,
                                           int count);
UV_EXTERN int uv_if_indextoname(unsigned int ifindex,
                                char* buffer,
                                size_t* size);
/* The name as it may follow the % of an IPv6 address. */
UV_EXTERN int uv_if_indextoiid(unsigned int ifindex,
                               char* buffer,
                               size_t* size);

#ifdef __cplusplus
}
#endif

#endif /* BLACKLIGHT_UV_NETWORK_H */
