/* SPDX-License-Identifier: Apache-2.0
 *
 * tent: move bytes between registered memory of processes, on one host or on several.
 *
 *   tent_open()            attach to the tent-dataplane of this host
 *   tent_memory_alloc()    memory that tent can reach (or tent_memory_register() for your own memfd, or tent_memory_import()
 *                          for memory that you have already: slower, and for this process's own requests only)
 *   tent_segment_publish() give a name to some of it, so that others may read or write it
 *   tent_segment_open()    find a segment that another process published: "name" here, "peer/name" elsewhere
 *   tent_qp_create()       one queue pair per thread
 *   tent_submit()          hand over READ and WRITE requests
 *   tent_poll()/tent_wait() take completions: exactly one terminal completion per accepted request
 *
 * Threads. A queue pair belongs to one thread at a time. All other calls may come from any thread.
 * Fork. Handles are dead in the child: calls return TENT_FORKED.
 * Restart. If the data plane restarts, the library attaches again by itself, hands its memory over again, publishes
 * and opens again, and completes or resubmits what was outstanding (see tent_request.flags). Handles stay valid.
 * Errors. Functions return a tent_status: 0 done, positive "not now", negative failed. tent_last_error() gives the
 * text of this thread's last failure: where, why, what to do. Outputs are untouched on failure.
 * Growth. Programs that are built keep working with newer libraries, and with older ones as far as they ask nothing new:
 * - Structs with a leading `size` grow at the end; set them with the initializer macros. Input: what a newer program says
 *   beyond the library's size must be zero, or the call is refused with INVALID. Output: `size` comes back as the bytes
 *   that the library filled.
 * - Structs that travel in arrays (tent_buffer, tent_request, tent_completion) have a fixed size. Their reserved fields
 *   are zero: in input anything else is INVALID, in output the library writes zeros. Later versions give them a meaning
 *   of which zero is today's behaviour.
 * - Enumerations get more values, and their types have a fixed width. Treat a value you do not know as "something else".
 */
#ifndef TENT_H
#define TENT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENT_API_VERSION 1
#if defined(__GNUC__)
#define TENT_API __attribute__((visibility("default")))
#else
#define TENT_API
#endif

/* ---- status ------------------------------------------------------------------------------------------------ */
typedef int32_t tent_status;
enum tent_status_value {
	TENT_OK = 0,
	TENT_AGAIN = 1,   /* a queue is full: take completions, then again */
	TENT_PENDING = 2, /* not finished yet */
	/* the request is over, nothing else is touched */
	TENT_INVALID = -1, TENT_RANGE = -2, TENT_PERMISSION = -3, TENT_STALE = -4, TENT_NOT_FOUND = -5,
	TENT_EXISTS = -6, TENT_TOO_BIG = -7, TENT_TIMEOUT = -8, TENT_CANCELED = -9, TENT_UNSUPPORTED = -10, TENT_AMBIGUOUS = -11,
	TENT_LIMIT = -12, TENT_NO_MEMORY = -13, TENT_BUSY = -14, TENT_FAULT = -15,
	/* the path or the peer */
	TENT_PATH_DOWN = -100, TENT_PATH_PROTOCOL = -101, TENT_PATH_TIMEOUT = -102,
	TENT_PEER_UNKNOWN = -200, TENT_PEER_DOWN = -201, TENT_PEER_STALE = -202, TENT_PEER_DENIED = -203, TENT_PEER_ADDRESS = -204,
	/* this attachment */
	TENT_CLIENT_BROKEN = -300, TENT_CLIENT_GONE = -301, TENT_FORKED = -302, TENT_CLOSED = -303,
	/* the daemons */
	TENT_DATAPLANE_DOWN = -400, TENT_CONTROLPLANE_DOWN = -401, TENT_ABI_MISMATCH = -402, TENT_SYSTEM = -403,
	TENT_CONFIG = -404, TENT_INTERNAL = -499
};

/* Static texts, never NULL: "timeout"; "the deadline passed"; "see phase and reason ...". Any thread. */
TENT_API const char *tent_status_name(tent_status s);
TENT_API const char *tent_status_text(tent_status s);
TENT_API const char *tent_status_advice(tent_status s);
/* This thread's last failure, one line, valid until the thread's next failing call; "" if none. */
TENT_API const char *tent_last_error(void);
/* Of the library that runs, which may differ from this header's: "0.1.0", and its TENT_API_VERSION, which grows with each
 * addition to this header. */
TENT_API const char *tent_version(void);
TENT_API uint32_t tent_api_version(void);

/* ---- context ----------------------------------------------------------------------------------------------- */
typedef struct tent_context tent_context;

typedef struct tent_options {
	size_t size;
	const char *runtime_dir;   /* NULL: $TENT_RUNTIME_DIR, else /run/tent (root), else $XDG_RUNTIME_DIR/tent, else
	                            * /dev/shm/tent-<uid>; the directory that holds attach.sock */
	const char *app_name;      /* shown to operators; NULL: the program's name; <= 31 bytes */
	uint64_t timeout_ns;       /* for control calls (open, register ...); 0 = 5 s */
	uint64_t recover_timeout_ns; /* how long outstanding work waits for a restarted data plane; 0 = 30 s */
} tent_options;
#define TENT_OPTIONS_INIT { sizeof(tent_options), NULL, NULL, 0, 0 }

/* Attach. `opt` may be NULL. Blocks up to timeout_ns. DATAPLANE_DOWN when nobody listens, ABI_MISMATCH, SYSTEM. */
TENT_API tent_status tent_open(const tent_options *opt, tent_context **ctx_out);
/* Detach: cancels outstanding work, withdraws, unmaps what tent_memory_alloc() gave. Destroys the context and all child
 * objects whatever it returns. OK: nothing touches their memory any more; NULL is fine. TIMEOUT, CLIENT_BROKEN, or
 * any other failure but FORKED: the data plane did not confirm that, so a memfd that was registered may still be written
 * until it noticed the hang-up. FORKED: the child let go of its copies of the descriptors, nothing else happened. Blocks
 * up to the context's timeout. No other thread may be inside a call on this context. */
TENT_API tent_status tent_close(tent_context *ctx);

typedef uint32_t tent_state;
enum tent_state_value { TENT_STATE_ATTACHED = 1, TENT_STATE_RECOVERING = 2, TENT_STATE_DEAD = 3 };
typedef struct tent_info {
	size_t size;
	tent_state state;
	uint8_t session[16];        /* the data plane's incarnation */
	uint32_t reattach_count;    /* times the library attached again */
	uint64_t default_deadline_ns, max_deadline_ns, max_request_bytes;
} tent_info;
#define TENT_INFO_INIT { sizeof(tent_info), 0, { 0 }, 0, 0, 0, 0 }
/* Fills the first info_inout->size bytes, or as many as the library knows if that is fewer, and sets size to that.
 * INVALID: a size that no version of tent_info has. Any thread, never blocks. */
TENT_API tent_status tent_query(tent_context *ctx, tent_info *info_inout);

/* ---- memory ------------------------------------------------------------------------------------------------ */
typedef struct tent_memory tent_memory;

#define TENT_RIGHT_LOCAL        0x1u /* this process uses it as source of WRITE and destination of READ */
#define TENT_RIGHT_REMOTE_READ  0x2u /* may be published for remote READ */
#define TENT_RIGHT_REMOTE_WRITE 0x4u /* may be published for remote WRITE */
#define TENT_RIGHT_LOCAL_READ   0x8u /* this process uses it as source of WRITE only */
#define TENT_MEMORY_HUGETLB     0x1u /* flags: hugetlbfs pages of the default size */

/* Allocate `bytes` (> 0, rounded up to the page size) of zeroed shared memory and register it. NO_MEMORY, LIMIT. */
TENT_API tent_status tent_memory_alloc(tent_context *ctx, size_t bytes, uint32_t rights, uint32_t flags,
                                       tent_memory **mem_out);
/* Register [offset, offset + bytes) of your memfd; offset page-aligned. The fd must be a memfd (also hugetlb) that has
 * F_SEAL_SHRINK or still accepts it: the data plane seals it so that it can never shrink under a transfer. Anything else
 * (files, also those of /dev/shm, device memory, sealed-against-sealing memfds) is refused with UNSUPPORTED and the
 * reason. With LOCAL_READ and REMOTE_READ only, nothing ever writes into it, and it may be sealed against writing or open
 * for reading only; other rights are PERMISSION then. The fd is duplicated; overlapping a range already registered by this
 * context is EXISTS. The range is faulted in here, unless the fd is open for reading only. */
TENT_API tent_status tent_memory_register(tent_context *ctx, int memfd, uint64_t offset, size_t bytes, uint32_t rights,
                                          tent_memory **mem_out);
/* Memory of this process that cannot be handed over: malloc(), the stack, a mapped file. Any address and length; the
 * mapping may come and go, only while a request uses it must it be there. rights: LOCAL or LOCAL_READ; memory that
 * others are to reach is UNSUPPORTED here. Requests name it like any other memory. Their bytes pass through staging
 * buffers of this context (staging/chunk_bytes times staging/chunks in the data plane's configuration, allocated with
 * the first import) in pieces: a thread of this library copies between them and this memory when the data plane asks for
 * it. So it costs a copy and some 100 us more than other memory, and this process's CPU time. While the process is
 * stopped, so are these requests, and theirs alone. Memory that is not there, or not for reading or writing as the
 * request needs it, fails the request with FAULT; a segment that is published anew over other memory, in the middle of
 * one, with STALE. Overlapping memory that this context imported already is EXISTS. UNSUPPORTED: the data plane is older
 * than this call, or a seccomp filter forbids process_vm_readv(2) to this process. NO_MEMORY, LIMIT. */
TENT_API tent_status tent_memory_import(tent_context *ctx, void *addr, size_t bytes, uint32_t rights, tent_memory **mem_out);
/* The mapping in this process of allocated memory, the address of imported memory; NULL for registered memory. */
TENT_API void *tent_memory_addr(const tent_memory *mem);
TENT_API size_t tent_memory_bytes(const tent_memory *mem);
/* Give it back: waits until no transfer touches it. BUSY while a published segment uses it; TIMEOUT. */
TENT_API tent_status tent_memory_free(tent_memory *mem);

/* ---- segments ---------------------------------------------------------------------------------------------- */
typedef struct tent_published tent_published;
typedef struct tent_segment tent_segment;

typedef struct tent_buffer {
	tent_memory *memory;
	uint64_t offset, bytes; /* bytes 0 = to the end of the memory */
	uint32_t rights;        /* subset of the memory's REMOTE_* rights; 0 = all of them */
	uint32_t reserved[3];   /* zero */
} tent_buffer;

#define TENT_ACCESS_SAME_UID  0x1u /* processes of this user on this host */
#define TENT_ACCESS_LOCAL_ALL 0x2u /* every process that can attach on this host */
#define TENT_ACCESS_PEERS     0x4u /* the peers listed, or every allow-listed peer when none is listed */
typedef struct tent_access {
	size_t size;
	uint32_t who;             /* TENT_ACCESS_* bits; 0 = SAME_UID | PEERS */
	const char *const *peers; /* peer names */
	size_t peer_count;        /* <= 32 */
} tent_access;
#define TENT_ACCESS_INIT { sizeof(tent_access), 0, NULL, 0 }

/* Publish `count` (1..64) buffers, laid end to end, as segment `name` (1..63 of [A-Za-z0-9._-]). access NULL = default.
 * EXISTS when the name is taken on this host. */
TENT_API tent_status tent_segment_publish(tent_context *ctx, const char *name, const tent_buffer *buffers, size_t count,
                                          const tent_access *access, tent_published **pub_out);
/* Is it still published? OK; PENDING: the data plane restarted, and it is being published again. Else it is lost for good,
 * and a notice of kind SEGMENT_LOST came: CANCELED: an operator withdrew it; another status: the restarted data plane
 * refused it (EXISTS: somebody took the name). Give the handle back, then publish anew if you want. STALE: given back
 * already. Status of a dead context. Any thread, never blocks. */
TENT_API tent_status tent_segment_published(const tent_published *pub);
/* Withdraw: new requests of peers are refused as STALE, running ones are waited for. */
TENT_API tent_status tent_segment_withdraw(tent_published *pub);

/* Open "name" (this host) or "peer/name". Blocks up to the context's timeout. NOT_FOUND, PERMISSION, PEER_UNKNOWN,
 * PEER_DOWN and CONTROLPLANE_DOWN (retry later). */
TENT_API tent_status tent_segment_open(tent_context *ctx, const char *ref, tent_segment **seg_out);
TENT_API uint64_t tent_segment_bytes(const tent_segment *seg);
TENT_API tent_status tent_segment_close(tent_segment *seg);

/* ---- queue pair -------------------------------------------------------------------------------------------- */
typedef struct tent_qp tent_qp;

typedef struct tent_qp_options {
	size_t size;
	uint32_t depth;    /* outstanding requests, power of two 8..4096; 0 = 128 */
	uint32_t reserved; /* zero */
} tent_qp_options;
#define TENT_QP_OPTIONS_INIT { sizeof(tent_qp_options), 0, 0 }

TENT_API tent_status tent_qp_create(tent_context *ctx, const tent_qp_options *opt, tent_qp **qp_out);
/* Cancels what is outstanding and waits, up to the context's recover_timeout_ns, until no buffer of it can be touched
 * any more. OK: destroyed; NULL is fine. INVALID, FORKED: nothing happened. TIMEOUT, or any other failure: the data
 * plane did not say so; buffers may still be touched, and the queue pair is good for nothing but calling this again
 * (tent_close() destroys it too). */
TENT_API tent_status tent_qp_destroy(tent_qp *qp);

typedef uint8_t tent_opcode;
enum tent_opcode_value { TENT_READ = 1, TENT_WRITE = 2 };
typedef uint8_t tent_priority;
enum tent_priority_value { TENT_PRIORITY_HIGH = 0, TENT_PRIORITY_MEDIUM = 1, TENT_PRIORITY_LOW = 2 };
typedef uint8_t tent_intent;
enum tent_intent_value {
	TENT_INTENT_UNSPECIFIED = 0, TENT_INTENT_FOREGROUND_GET = 1, TENT_INTENT_BACKGROUND_PREFETCH = 2,
	TENT_INTENT_MIGRATION = 3, TENT_INTENT_CHECKPOINT = 4, TENT_INTENT_WEIGHT_LOADING = 5, TENT_INTENT_STAGING = 6
};
typedef uint8_t tent_transport;
enum tent_transport_value {
	TENT_TRANSPORT_ANY = 0, TENT_TRANSPORT_RDMA = 1, TENT_TRANSPORT_HP_TCP = 2, TENT_TRANSPORT_TCP = 3,
	TENT_TRANSPORT_SHM = 4
};
typedef uint8_t tent_outcome;
enum tent_outcome_value {
	TENT_OUTCOME_COMPLETED = 0, TENT_OUTCOME_FAILED = 1, TENT_OUTCOME_TIMEOUT = 2, TENT_OUTCOME_CANCELED = 3
};

/* A WRITE may be sent again after a path or data-plane failure, but only when none of the old bytes can still land.
 * With AT_MOST_ONCE it is never sent again once a byte may have left: it fails with TENT_AMBIGUOUS. */
#define TENT_REQUEST_AT_MOST_ONCE 0x1u

/* 128 bytes: what every request needs, then what few do. */
typedef struct tent_request {
	tent_opcode opcode;
	tent_priority priority;
	tent_intent intent;
	tent_transport hint;      /* ANY, or only this one: a hint that cannot serve fails the request */
	uint32_t flags;           /* TENT_REQUEST_* */
	tent_memory *memory;      /* READ: destination; WRITE: source */
	uint64_t memory_offset;
	tent_segment *segment;
	uint64_t segment_offset;
	uint64_t bytes;           /* > 0 */
	uint64_t user_data;       /* comes back in the completion */
	uint64_t deadline_ns;     /* absolute CLOCK_MONOTONIC; 0 = the config's default (never infinite) */
	uint32_t batch;           /* your batch number within this queue pair; 0 = none. See tent_notify() */
	uint16_t policy;          /* 0 = first match; else from tent_policy_find() of this context */
	uint16_t reserved0;       /* zero */
	uint8_t trace_id[16];     /* W3C trace id; zero = drawn by tent */
	uint64_t reserved[5];     /* zero */
} tent_request;

/* The number of the policy of that name (1..63 of [A-Za-z0-9._-]) for tent_request.policy. It stays good for the life of
 * the context, whatever becomes of the configuration or the data plane; while the configuration has no such policy,
 * requests that name it are served as if none matched. So they are after a restart of the data plane that found none,
 * also when a reload brings one, until the context asks for the name again. NOT_FOUND: it has none now; UNSUPPORTED: an
 * older data plane; LIMIT: 256 names. Blocks up to the context's timeout; any thread. */
TENT_API tent_status tent_policy_find(tent_context *ctx, const char *name, uint16_t *policy_out);

/* Hand over requests[0..count). Accepts a prefix: *accepted_out says how many. OK when all, AGAIN when the queue took
 * fewer (poll, then submit the rest), negative when requests[*accepted_out] is malformed. Never blocks. A buffer
 * belongs to tent from here until its completion (or, if that says memory_busy, its release). */
TENT_API tent_status tent_submit(tent_qp *qp, const tent_request *requests, size_t count, size_t *accepted_out);
/* Ask to end an outstanding request early; its completion tells how it ended. user_data names it (all with that
 * value). NOT_FOUND when nothing outstanding matches. Best effort, never blocks. */
TENT_API tent_status tent_cancel(tent_qp *qp, uint64_t user_data);

typedef uint8_t tent_completion_kind;
enum tent_completion_kind_value {
	TENT_COMPLETION_REQUEST = 1, /* terminal outcome of a READ or WRITE */
	TENT_COMPLETION_NOTIFY = 2,  /* terminal outcome of a tent_notify() */
	TENT_COMPLETION_RELEASE = 3  /* the buffer of an earlier memory_busy completion is yours again */
};

/* 64 bytes. */
typedef struct tent_completion {
	uint64_t user_data;
	uint64_t bytes;
	uint64_t request_id;     /* the number in the daemon's log */
	uint64_t latency_ns;
	tent_status status;
	tent_completion_kind kind;
	tent_outcome outcome;
	tent_transport transport;
	tent_opcode opcode;      /* of the request; 0 for a notice */
	uint8_t memory_busy;     /* 1: keep the buffer until the RELEASE completion with this user_data */
	uint8_t attempts;
	uint8_t phase, reason;   /* meaningful unless COMPLETED; texts below */
	uint32_t reserved[5];    /* zero */
} tent_completion;

/* Take up to `max` completions without blocking; returns how many (0 = none now), or a negative tent_status. */
TENT_API int tent_poll(tent_qp *qp, tent_completion *out, int max);
/* Same, sleeping up to timeout_ns for the first one (UINT64_MAX = until the data plane answers or recovery ends). */
TENT_API int tent_wait(tent_qp *qp, tent_completion *out, int max, uint64_t timeout_ns);
/* For your own event loop: an epoll-able fd, readable when tent_poll() has something to do (completions, or the data
 * plane died). Call tent_arm() before sleeping on it: OK = sleep, AGAIN = poll again first. Owned by the qp. */
TENT_API int tent_qp_fd(tent_qp *qp);
TENT_API tent_status tent_arm(tent_qp *qp);
/* Accepted, terminal completion not yet taken. */
TENT_API uint32_t tent_qp_outstanding(const tent_qp *qp);

/* One line for people: "WRITE failed after 2 attempts over tcp: phase connect, reason unavailable - the peer ...". */
TENT_API const char *tent_completion_text(const tent_completion *c, char *buf, size_t buf_bytes);
TENT_API const char *tent_phase_name(uint8_t phase);
TENT_API const char *tent_reason_name(uint8_t reason);
TENT_API const char *tent_transport_name(tent_transport t);

/* ---- notifications ----------------------------------------------------------------------------------------- */
#define TENT_NOTE_MAX 4096u

/* Send a notice (<= 4096 bytes, copied) to whoever published `segment`. With batch != 0 it leaves only after every
 * request of that batch submitted before it on this queue pair has completed: data before notice. If one of them
 * fails, the notice is not sent and completes CANCELED. If the segment was published anew since the batch began (by
 * another publisher, or by one that started again: other memory), it is not sent either and is FAILED with STALE: do
 * the batch again. Its completion (kind NOTIFY) says whether the receiver's inbox took it; a full inbox is FAILED with
 * reason queue_full; AMBIGUOUS: it left, and its deadline passed or it was canceled before the answer came, or one of the two data
 * planes ended; with any other failure it never arrives. Closes the batch number for reuse. AGAIN when full. */
TENT_API tent_status tent_notify(tent_qp *qp, tent_segment *segment, uint32_t batch, const void *payload, size_t bytes,
                                 uint64_t user_data, uint64_t deadline_ns);

typedef uint32_t tent_note_kind;
enum tent_note_kind_value {
	TENT_NOTE_DATA = 1,        /* somebody sent it with tent_notify() */
	TENT_NOTE_SEGMENT_LOST = 2 /* from this library: `segment` is not published any more; see tent_segment_published() */
};

typedef struct tent_note {
	size_t size;
	uint64_t seq;     /* DATA: given by this host's data plane, strictly increasing over all senders, also across its
	                   * restarts; gaps are possible, repeats are not. Else 0 */
	size_t bytes;     /* of payload */
	tent_note_kind kind;
	tent_status status; /* SEGMENT_LOST: why, as tent_segment_published() says; DATA: OK */
	char from[64];    /* peer name; "" = this host */
	char segment[64]; /* the name it was sent to */
	uint8_t payload[TENT_NOTE_MAX];
} tent_note;
#define TENT_NOTE_INIT { sizeof(tent_note), 0, 0, 0, 0, "", "", { 0 } }

/* Take the next notice sent to one of this context's segments, or about one. AGAIN when there is none after timeout_ns (0 = now).
 * INVALID: note_inout->size is that of no version. TENT_NOTE_INIT sets it; it needs to be set once. */
TENT_API tent_status tent_note_recv(tent_context *ctx, tent_note *note_inout, uint64_t timeout_ns);
/* Readable while notices wait. Owned by the context. */
TENT_API int tent_note_fd(tent_context *ctx);

#ifdef __cplusplus
}
#endif

#endif
