/*
 * The numbers behind the UV_E* codes.
 *
 * A function that fails returns a negative number. Where Linux has an errno of
 * the same name the code is that errno, negated; the codes of getaddrinfo(3)
 * start at -3000, and the few that Linux has no name for lie just above
 * -4096, below everything the kernel may ever return.
 *
 * Programs use the enumerators UV_E* of uv.h. The UV__E* here exist so that
 * the numbers can be had without the rest of the interface.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef UV_ERRNO_H_
#define UV_ERRNO_H_

#include <errno.h>

/* From errno to error code. uv.h takes this helper away again at its end. */
#define UV__ERR(x)           (-(x))

/* The two codes that stand for no errno at all. */
#define UV__EOF              (-4095)
#define UV__UNKNOWN          (-4094)

/* Name resolution, in numbers that do not depend on the C library. */
#define UV__EAI_ADDRFAMILY   (-3000)
#define UV__EAI_AGAIN        (-3001)
#define UV__EAI_BADFLAGS     (-3002)
#define UV__EAI_CANCELED     (-3003)
#define UV__EAI_FAIL         (-3004)
#define UV__EAI_FAMILY       (-3005)
#define UV__EAI_MEMORY       (-3006)
#define UV__EAI_NODATA       (-3007)
#define UV__EAI_NONAME       (-3008)
#define UV__EAI_OVERFLOW     (-3009)
#define UV__EAI_SERVICE      (-3010)
#define UV__EAI_SOCKTYPE     (-3011)
#define UV__EAI_BADHINTS     (-3013)
#define UV__EAI_PROTOCOL     (-3014)

/* What other systems report and Linux has no errno for. */
#define UV__ECHARSET         (-4080)
#define UV__EFTYPE           (-4028)

/* The errnos of Linux. */
#define UV__E2BIG            (-E2BIG)
#define UV__EACCES           (-EACCES)
#define UV__EADDRINUSE       (-EADDRINUSE)
#define UV__EADDRNOTAVAIL    (-EADDRNOTAVAIL)
#define UV__EAFNOSUPPORT     (-EAFNOSUPPORT)
#define UV__EAGAIN           (-EAGAIN)
#define UV__EALREADY         (-EALREADY)
#define UV__EBADF            (-EBADF)
#define UV__EBUSY            (-EBUSY)
#define UV__ECANCELED        (-ECANCELED)
#define UV__ECONNABORTED     (-ECONNABORTED)
#define UV__ECONNREFUSED     (-ECONNREFUSED)
#define UV__ECONNRESET       (-ECONNRESET)
#define UV__EDESTADDRREQ     (-EDESTADDRREQ)
#define UV__EEXIST           (-EEXIST)
#define UV__EFAULT           (-EFAULT)
#define UV__EFBIG            (-EFBIG)
#define UV__EHOSTDOWN        (-EHOSTDOWN)
#define UV__EHOSTUNREACH     (-EHOSTUNREACH)
#define UV__EILSEQ           (-EILSEQ)
#define UV__EINTR            (-EINTR)
#define UV__EINVAL           (-EINVAL)
#define UV__EIO              (-EIO)
#define UV__EISCONN          (-EISCONN)
#define UV__EISDIR           (-EISDIR)
#define UV__ELOOP            (-ELOOP)
#define UV__EMFILE           (-EMFILE)
#define UV__EMLINK           (-EMLINK)
#define UV__EMSGSIZE         (-EMSGSIZE)
#define UV__ENAMETOOLONG     (-ENAMETOOLONG)
#define UV__ENETDOWN         (-ENETDOWN)
#define UV__ENETUNREACH      (-ENETUNREACH)
#define UV__ENFILE           (-ENFILE)
#define UV__ENOBUFS          (-ENOBUFS)
#define UV__ENODATA          (-ENODATA)
#define UV__ENODEV           (-ENODEV)
#define UV__ENOENT           (-ENOENT)
#define UV__ENOEXEC          (-ENOEXEC)
#define UV__ENOMEM           (-ENOMEM)
#define UV__ENONET           (-ENONET)
#define UV__ENOPROTOOPT      (-ENOPROTOOPT)
#define UV__ENOSPC           (-ENOSPC)
#define UV__ENOSYS           (-ENOSYS)
#define UV__ENOTCONN         (-ENOTCONN)
#define UV__ENOTDIR          (-ENOTDIR)
#define UV__ENOTEMPTY        (-ENOTEMPTY)
#define UV__ENOTSOCK         (-ENOTSOCK)
#define UV__ENOTSUP          (-ENOTSUP)
#define UV__ENOTTY           (-ENOTTY)
#define UV__ENXIO            (-ENXIO)
#define UV__EOVERFLOW        (-EOVERFLOW)
#define UV__EPERM            (-EPERM)
#define UV__EPIPE            (-EPIPE)
#define UV__EPROTO           (-EPROTO)
#define UV__EPROTONOSUPPORT  (-EPROTONOSUPPORT)
#define UV__EPROTOTYPE       (-EPROTOTYPE)
#define UV__ERANGE           (-ERANGE)
#define UV__EREMOTEIO        (-EREMOTEIO)
#define UV__EROFS            (-EROFS)
#define UV__ESHUTDOWN        (-ESHUTDOWN)
#define UV__ESOCKTNOSUPPORT  (-ESOCKTNOSUPPORT)
#define UV__ESPIPE           (-ESPIPE)
#define UV__ESRCH            (-ESRCH)
#define UV__ETIMEDOUT        (-ETIMEDOUT)
#define UV__ETXTBSY          (-ETXTBSY)
#define UV__EUNATCH          (-EUNATCH)
#define UV__EXDEV            (-EXDEV)

#endif /* UV_ERRNO_H_ */
