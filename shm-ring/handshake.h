/* SPDX-License-Identifier: Apache-2.0
 * Attach messages on the unix SOCK_SEQPACKET socket between libtent and the data plane: one datagram in or out with
 * its file descriptors, and the pure check that every received message passes before a field of it is used.
 * The data plane's control thread never blocks here; the application's side may wait up to a deadline. */
#ifndef SHR_HANDSHAKE_H
#define SHR_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/compiler.h"
#include "common/status.h"
#include "shm-ring/abi.h"

/* One message with room for its body and descriptors. The body starts 8-byte aligned. A received message owns its fds:
 * take one by setting the entry to -1, and call shr_msg_close_fds() for the rest. */
struct shr_msg {
	union {
		struct shr_msg_hdr hdr;
		uint8_t bytes[SHR_MSG_MAX];
		uint64_t align;
	};
	uint32_t len; /* bytes in use, header included */
	uint32_t fd_cnt;
	int fds[SHR_MSG_FDS_MAX];
};

TN_INLINE void *shr_msg_body(struct shr_msg *m) { return m->bytes + sizeof(struct shr_msg_hdr); }
TN_INLINE const void *shr_msg_body_ro(const struct shr_msg *m) { return m->bytes + sizeof(struct shr_msg_hdr); }

/* Starts a message: header filled, `body_bytes` (<= SHR_MSG_MAX - header) of zeroed body, no fds. Returns the body. */
void *shr_msg_begin(struct shr_msg *m, uint16_t type, uint32_t correlation, uint32_t body_bytes);
/* Starts the failed answer to a request: bare header with status (not TN_OK) and detail. */
void shr_msg_begin_failure(struct shr_msg *m, uint16_t request_type, uint32_t correlation, tn_status status,
			   uint32_t detail);

/* Sends the whole message; the fds stay the caller's. Never blocks. TN_OK; TN_AGAIN: the peer's queue is full;
 * TN_PATH_DOWN: the peer is gone; TN_TOO_BIG; TN_SYSTEM. */
TN_MUST_USE tn_status shr_msg_send(int sock, const struct shr_msg *m);
/* Receives one message and checks it (shr_msg_check). Never blocks. Descriptors arrive close-on-exec; those of a
 * refused message are closed. TN_AGAIN: nothing there; TN_PATH_DOWN: hang-up; TN_CLIENT_BROKEN: malformed, too long, or
 * with more descriptors than the type carries; TN_LIMIT: we are out of descriptors, and those of this message are lost: its unchecked
 * m->len bytes are there, a whole header at least unless that is 0; TN_SYSTEM. */
enum shr_msg_from { SHR_FROM_APPLICATION, SHR_FROM_DATAPLANE };
TN_MUST_USE tn_status shr_msg_recv(int sock, enum shr_msg_from from, struct shr_msg *m);
/* Closes the descriptors that are still in the message. */
void shr_msg_close_fds(struct shr_msg *m);

/* The same, waiting until CLOCK_MONOTONIC deadline_ns at the latest: TN_TIMEOUT then. Application side only. */
TN_MUST_USE tn_status shr_msg_send_until(int sock, const struct shr_msg *m, uint64_t deadline_ns);
TN_MUST_USE tn_status shr_msg_recv_until(int sock, enum shr_msg_from from, struct shr_msg *m, uint64_t deadline_ns);

/* Pure: judges `len` bytes and the number of descriptors that came along. `from` says which side may have sent it.
 * Checks magic, reserved, exact length of the type (trailing arrays included), number of fds, that every string ends,
 * enum and flag ranges, reserved bytes. TN_OK and *hdr_out, or TN_CLIENT_BROKEN (*hdr_out untouched).
 * Names and rights are not looked up: that is the receiver's table's business. The HELLO version is not judged. */
TN_MUST_USE tn_status shr_msg_check(const void *buf, size_t len, uint32_t fd_cnt, enum shr_msg_from from,
				    struct shr_msg_hdr *hdr_out);

/* Parts of a checked PUBLISH: valid while the message is. */
struct shr_publish_view {
	const struct shr_msg_publish *fixed;
	const struct shr_msg_buffer *buffers;       /* fixed->buffer_cnt */
	const char (*peers)[TN_NAME_MAX];           /* fixed->peer_cnt, each NUL-terminated */
};
void shr_msg_publish_view(const struct shr_msg *m, struct shr_publish_view *out);
/* Body bytes of a PUBLISH or NOTE with these counts; 0 when a count is over its bound. */
uint32_t shr_msg_publish_bytes(uint32_t buffer_cnt, uint32_t peer_cnt);
uint32_t shr_msg_note_bytes(uint32_t payload_len);

/* Connects to the data plane's attach socket; non-blocking, close-on-exec, owned by the caller. The connection itself
 * may wait for room in the listener's queue until the deadline. TN_DATAPLANE_DOWN: no socket, or nobody listens;
 * TN_PERMISSION; TN_TOO_BIG: path over 107 bytes; TN_TIMEOUT; TN_LIMIT; TN_SYSTEM. */
TN_MUST_USE tn_status shr_attach_connect(const char *path, uint64_t deadline_ns, int *sock_out);

/* Who is at the other end, as the kernel noted at connect. TN_SYSTEM. */
struct shr_peer_cred {
	pid_t pid; /* for people; may be reused by another process later */
	uid_t uid;
	gid_t gid;
};
TN_MUST_USE tn_status shr_peer_cred(int sock, struct shr_peer_cred *out);

/* A pidfd of that process, readable once it is dead, also while a child of it keeps the socket open. Owned by the
 * caller. -1 with TN_OK: this kernel or pid namespace does not tell, the socket alone must do. TN_CLIENT_GONE: it is
 * dead already; TN_LIMIT: out of descriptors; TN_NO_MEMORY. */
TN_MUST_USE tn_status shr_peer_pidfd(int sock, pid_t pid, int *fd_out);

#endif
