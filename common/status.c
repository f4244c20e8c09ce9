/* SPDX-License-Identifier: Apache-2.0
 * Texts of the statuses, generated from TN_STATUS_LIST, and the one place where errno becomes a status.
 * Static data, no state; any thread. */
#include "common/status.h"

#include <errno.h>
#include <string.h>

const char *tn_status_name(tn_status s)
{
	switch (s) {
#define X(name, value, text, meaning, todo) case TN_##name: return text;
	TN_STATUS_LIST(X)
#undef X
	}
	return "unknown";
}

const char *tn_status_meaning(tn_status s)
{
	switch (s) {
#define X(name, value, text, meaning, todo) case TN_##name: return meaning;
	TN_STATUS_LIST(X)
#undef X
	}
	return "unknown";
}

const char *tn_status_todo(tn_status s)
{
	switch (s) {
#define X(name, value, text, meaning, todo) case TN_##name: return todo;
	TN_STATUS_LIST(X)
#undef X
	}
	return "unknown";
}

bool tn_status_from_name(const char *name, tn_status *status_out)
{
#define X(id, value, text, meaning, todo) \
	if (strcmp(name, text) == 0) { \
		*status_out = TN_##id; \
		return true; \
	}
	TN_STATUS_LIST(X)
#undef X
	return false;
}

tn_status tn_status_from_errno(int err)
{
	switch (err) {
	case 0: return TN_OK;
	case EAGAIN: case EINTR: case EINPROGRESS: return TN_AGAIN;
	case EINVAL: case EFAULT: case EDOM: case EAFNOSUPPORT: case ENAMETOOLONG: return TN_INVALID;
	case ERANGE: case EOVERFLOW: return TN_RANGE;
	case EACCES: case EPERM: return TN_PERMISSION;
	case ENOENT: case ESRCH: return TN_NOT_FOUND;
	case EEXIST: case EADDRINUSE: return TN_EXISTS;
	case E2BIG: case EFBIG: case EMSGSIZE: return TN_TOO_BIG;
	case EOPNOTSUPP: case ENOSYS: case EPROTONOSUPPORT: return TN_UNSUPPORTED;
	case EMFILE: case ENFILE: case EDQUOT: return TN_LIMIT;
	case ENOMEM: case ENOBUFS: return TN_NO_MEMORY;
	case EBUSY: case EALREADY: return TN_BUSY;
	case ECONNREFUSED: case ECONNRESET: case ECONNABORTED: case EPIPE: case ENOTCONN: case EHOSTUNREACH:
	case ENETUNREACH: case ENETDOWN: case EHOSTDOWN: case ESHUTDOWN: return TN_PATH_DOWN;
	case EPROTO: case EBADMSG: return TN_PATH_PROTOCOL;
	case ETIMEDOUT: return TN_PATH_TIMEOUT;
	case ECANCELED: return TN_CANCELED;
	default: return TN_SYSTEM;
	}
}
