/* SPDX-License-Identifier: Apache-2.0
 * The only definition of bytes that two processes share: queue-pair regions (application <-> data plane), the
 * telemetry region (data plane -> control plane, tentctl) and the attach messages on the unix socket.
 * Fixed widths, offsets instead of pointers, explicit padding, reserved bytes zero. Layout is checked by asserts at
 * the end; a change of size or order is a change of SHR_ABI_MAJOR. What is appended in reserved space, and each new
 * message, is a change of SHR_ABI_MINOR, and goes only to a side that agreed on that minor in HELLO. */
#ifndef SHR_ABI_H
#define SHR_ABI_H

#include "common/atomic.h"
#include "common/compiler.h"
#include "common/ids.h"

#define SHR_ABI_MAJOR 1
#define SHR_ABI_MINOR 3
#define SHR_MINOR_SEGMENT_LOST 1 /* the message of that name */
#define SHR_MINOR_POLICY_FIND 2  /* the message of that name: policies have numbers instead of places in a list */
#define SHR_MINOR_IMPORT 3       /* memory that cannot be shared: SHR_RIGHT_STAGING, MEM_IMPORT, COPY, COPIED, stage_* of HELLO */

/* ---------------------------------------------------------------- queue pair region (memfd, sealed by the data plane)
 *
 *   0     struct shr_qp_hdr_shm           written by the data plane before it passes the fd, then constant
 *   64..  five index lines, each written by one side only
 *   sq_off    sq_entries * struct shr_sqe_shm
 *   cq_off    cq_entries * struct shr_cqe_shm
 *   note_off  note_slots * SHR_NOTE_BYTES outgoing notification payloads; a slot belongs to the application until it
 *                                         submits SHR_OP_NOTIFY naming it, and again after that completion
 * cq_entries = 2 * sq_entries: a request may produce a terminal and a release completion, and at most sq_entries
 * requests are outstanding (submitted, terminal+release not yet both consumed). That is the slot reserved at submit. */

#define SHR_QP_MAGIC 0x31505154u /* "TQP1" */
#define SHR_SQ_ENTRIES_MIN 8u
#define SHR_SQ_ENTRIES_MAX 4096u
#define SHR_NOTE_BYTES 4096u
#define SHR_NOTE_SLOTS_MAX 64u

struct shr_qp_hdr_shm {
	tn_a32 magic; /* stored last with release [M1] */
	uint16_t abi_major, abi_minor;
	uint32_t region_bytes;
	uint32_t sq_entries; /* powers of two */
	uint32_t cq_entries;
	uint32_t sqe_bytes, cqe_bytes;
	uint32_t sq_off, cq_off, note_off;
	uint32_t note_slots;
	uint32_t qp_id; /* data plane's own id, for logs */
	uint8_t reserved[16];
};

/* Free-running u32 indices; slot = index & (entries - 1). Each line has one writer. */
struct shr_index_shm {
	tn_a32 value;
	uint8_t pad[TN_CACHE_LINE - 4];
};

struct shr_qp_shm {
	struct shr_qp_hdr_shm hdr;
	struct shr_index_shm sq_tail;  /* application: entries published     [R1 release / R1 acquire] */
	struct shr_index_shm sq_head;  /* data plane: entries copied out      [R2]. Stored before any of them is
	                                * acted on: an entry that it does not cover had no effect (libtent's replay) */
	struct shr_index_shm cq_tail;  /* data plane: completions published   [R3] */
	struct shr_index_shm cq_head;  /* application: completions consumed   [R4] */
	struct shr_index_shm sq_armed; /* data plane: 1 = worker sleeps, ring the doorbell after publishing [D1] */
	struct shr_index_shm cq_armed; /* application: 1 = it sleeps, data plane rings the doorbell         [D2] */
};

/* CANCEL has no completion of its own: the completion of its victim is the answer. */
enum shr_op { SHR_OP_READ = 1, SHR_OP_WRITE = 2, SHR_OP_NOTIFY = 3, SHR_OP_CANCEL = 4 };

/* shr_sqe_shm.flags */
#define SHR_SQE_AT_MOST_ONCE 0x0001u /* never sent again once any byte may have left */
#define SHR_SQE_BATCH        0x0002u /* member of batch `batch`; its outcome gates that batch's NOTIFY */
#define SHR_SQE_REPLAY       0x0004u /* resubmitted by libtent after a data-plane restart (counted, not trusted) */
#define SHR_SQE_FLAGS_ALL    0x0007u

struct shr_sqe_shm { /* 128 bytes; copied out once, only the copy is validated and used */
	uint64_t user_data;
	uint64_t token;      /* libtent's {index, generation}; comes back in the CQE; names the victim of CANCEL */
	uint64_t segment;    /* handle of an opened segment (READ, WRITE, NOTIFY) */
	uint64_t remote_off; /* bytes from the start of the segment */
	uint64_t memory;     /* handle of a registered memory (READ, WRITE) */
	uint64_t local_off;  /* bytes from the start of the memory */
	uint64_t length;     /* bytes, > 0 for READ and WRITE */
	uint64_t deadline_ns; /* absolute CLOCK_MONOTONIC; 0 = the config's default */
	uint64_t trace_hi, trace_lo; /* 0,0 = the data plane draws one */
	uint32_t batch;      /* application-chosen batch number within this queue pair; 0 = none */
	uint32_t note_len;   /* NOTIFY: payload bytes, <= SHR_NOTE_BYTES */
	uint32_t note_slot;  /* NOTIFY: payload slot */
	uint16_t flags;
	uint16_t policy;     /* 0 = the first that matches; else a number that POLICY_FIND told, or SHR_POLICY_GONE */
	uint8_t opcode;      /* enum shr_op */
	uint8_t priority;    /* enum tn_priority */
	uint8_t intent;      /* application intent, carried and logged: 0 unspecified .. 6 */
	uint8_t hint;        /* enum tn_transport; 0 = none. A hint that cannot serve is refused, not replaced */
	uint8_t reserved[4];
	uint64_t begin_ns;   /* NOTIFY of a batch: CLOCK_MONOTONIC when its first member was submitted */
	uint8_t reserved2[16];
};
#define SHR_POLICY_GONE 0xffffu /* named a policy that is not there any more: as if none matched */
#define SHR_INTENT_CNT 7u /* unspecified foreground_get background_prefetch migration checkpoint weight_loading staging */

enum shr_cqe_kind { SHR_CQE_TERMINAL = 1, SHR_CQE_RELEASE = 2 };

/* shr_cqe_shm.flags */
#define SHR_CQE_MEMORY_BUSY 0x01u /* a RELEASE completion with the same token follows; keep the buffer until then */
#define SHR_CQE_REFUSED     0x02u /* validation refused it: never started, counted as a rejection */

struct shr_cqe_shm { /* 64 bytes */
	uint64_t user_data;
	uint64_t token;
	uint64_t bytes;      /* moved; on failure the content of the destination range is undefined */
	uint64_t request_id; /* data plane's monotonic number, the one in its log */
	uint64_t latency_ns; /* ingress to terminal */
	int32_t status;      /* tn_status */
	uint8_t kind;        /* enum shr_cqe_kind */
	uint8_t outcome, phase, reason, transport; /* enums of common/domain.h; phase and reason mean nothing on success */
	uint8_t opcode;
	uint8_t flags;
	uint8_t attempts;
	uint8_t reserved[12];
};

/* ---------------------------------------------------------------- telemetry region (file on tmpfs, generation-named)
 *
 * Written by the data plane, mapped read-only by control plane and tentctl; outlives its writer.
 *   0                     struct shr_tele_hdr_shm
 *   worker_off            worker_cnt * struct shr_worker_shm
 *   cell_off              worker_cnt+1 blocks of cell_cnt u64 cells (block worker_cnt = control thread), each block
 *                         padded to a cache line; cell indices come from common/metrics.def (schema hash must match)
 *   event_off             worker_cnt+1 event rings {overwrite ring of struct shr_event_shm}, then the same number of
 *                         keep rings (errors, retained spans)
 */
#define SHR_TELE_MAGIC 0x314c5454u /* "TTL1" */
#define SHR_WORKERS_MAX 64u
#define SHR_EVENT_SLOTS_MAX 65536u

/* X(STATE, name), in the order of their values. PAUSED: alive and serving peers, but what applications ask for waits. */
#define SHR_TELE_STATES(X) \
	X(STARTING, starting) X(RUNNING, running) X(DRAINING, draining) X(STOPPED, stopped) X(PAUSED, paused)
#define X(n, s) SHR_TELE_##n,
enum shr_tele_state { SHR_TELE_STATES(X) SHR_TELE_STATE_CNT };
#undef X

struct shr_tele_hdr_shm {
	tn_a32 magic; /* stored last with release [M2] */
	uint16_t abi_major, abi_minor;
	uint64_t schema_hash;       /* of metrics.def; differs: serve only the telemetry families */
	uint64_t region_bytes;
	uint64_t generation;        /* number in the file name: 1, 2, ... per runtime directory */
	struct tn_id128 session;
	uint64_t start_mono_ns, start_real_ns;
	uint32_t pid;
	uint32_t worker_cnt;
	uint32_t cell_cnt;          /* cells per block */
	uint32_t cell_block_bytes;  /* distance between blocks */
	uint32_t event_slots;       /* per overwrite ring, power of two */
	uint32_t keep_slots;        /* per keep ring, power of two */
	uint64_t worker_off, cell_off, event_off, keep_off;
	uint32_t loaded_transports; /* bit (1 << enum tn_transport) */
	uint32_t metrics_compiled;  /* 0 or 1 */
	tn_a32 state;               /* enum shr_tele_state */
	tn_a32 recording;           /* 1 = recording on (run-time switch) */
	tn_a64 heartbeat_ns;        /* control thread, CLOCK_MONOTONIC, each loop; only reports hangs */
	tn_a64 config_generation;
	char build[64];             /* "version commit build_type", NUL-terminated */
	uint8_t reserved[40];
};

struct shr_worker_shm { /* functional state: kept also when recording is compiled out; one writer, relaxed */
	tn_a64 last_progress_ns; /* CLOCK_MONOTONIC of the last time work moved */
	tn_a64 oldest_work_ns;   /* ingress time of the oldest outstanding request; 0 = none */
	tn_a64 loop_ns;          /* last loop iteration (a sleeping worker keeps its last) */
	tn_a64 busy_ns, idle_ns; /* time in iterations that did / did not move work */
	tn_a32 alive;            /* 1 while the thread runs */
	tn_a32 cpu;              /* pinned CPU, UINT32_MAX = none */
	tn_a32 inflight, queued; /* requests, owners waiting in admission */
	tn_a64 outstanding_bytes;
	tn_a32 batches, lanes;   /* lanes that carry payload to peers now: no control lane */
	tn_a32 transports_up;    /* bit (1 << enum tn_transport): usable right now on this worker */
	uint8_t pad[52];
};

enum shr_event_kind { /* rendered by the control plane; names in contract.md section 6 and 7 */
	SHR_EVENT_NONE = 0,
	SHR_EVENT_REQUEST_FAILED, SHR_EVENT_REQUEST_SLOW, SHR_EVENT_REQUEST_STUCK,
	SHR_EVENT_ATTEMPT_FAILED, SHR_EVENT_FAILOVER, SHR_EVENT_SELECTION_FAILED,
	SHR_EVENT_SPAN_TRANSFER, SHR_EVENT_SPAN_ATTEMPT,
	SHR_EVENT_CLIENT_DROPPED, SHR_EVENT_PEER_SESSION, SHR_EVENT_LANE_DOWN, SHR_EVENT_STATE, SHR_EVENT_KIND_CNT
};

struct shr_event_shm { /* 128 bytes. seq is odd while the slot is being written, 2*(n+1) when record n is whole [E1] */
	tn_a64 seq;
	uint64_t mono_ns;
	uint64_t request_id, batch_id, task_id, attempt_id;
	uint64_t trace_hi, trace_lo;
	uint64_t span_id, parent_span_id;
	uint64_t duration_ns;
	int32_t status;
	uint8_t kind;       /* enum shr_event_kind */
	uint8_t transport, from, to;
	uint8_t operation, phase, reason, retention;
	uint16_t failover_cnt;
	uint16_t suppressed; /* same-kind events dropped by the rate limit since the last one */
	uint32_t config_generation;
	uint32_t reserved0;
	uint64_t arg;       /* kind-specific number (client id, old/new state, reasons by transport); never an address, offset or name */
	uint8_t reserved[8];
};

struct shr_event_ring_shm { /* followed by slots */
	tn_a64 tail;        /* records ever written [E2] */
	uint8_t pad[TN_CACHE_LINE - 8];
};

/* ---------------------------------------------------------------- attach messages (unix SOCK_SEQPACKET)
 *
 * One datagram = header + body of the type's fixed struct (+ trailing array where it says so). Requests carry a
 * correlation the reply echoes; replies have type | SHR_MSG_REPLY and a status, and may come in any order. A reply
 * whose status is not 0 is a bare header without body or fds, whatever its type. Messages
 * with SHR_MSG_EVENT flow from the data plane unasked, correlation 0. Sizes are exact: anything else is CLIENT_BROKEN.
 * Hang-up: the data plane closes a client's socket last, after nothing of it touches the client's memory any more, also
 * when it drops the client. A hang-up from a process that is not dead therefore means quiesced. */
#define SHR_MSG_MAGIC 0x314d4154u /* "TAM1" */
#define SHR_MSG_MAX 16384u
#define SHR_MSG_REPLY 0x8000u
#define SHR_MSG_EVENT 0x4000u
#define SHR_MSG_FDS_MAX 2u
#define SHR_SEGMENT_BUFFERS_MAX 64u
#define SHR_SEGMENT_PEERS_MAX 32u
#define SHR_SEGMENT_REF_MAX 130u /* "peer/name" with NUL, rounded up */

enum shr_msg_type {
	SHR_MSG_HELLO = 1,      /* -> hello            <- hello_reply */
	SHR_MSG_QP_CREATE = 2,  /* -> qp_create (no fd)
	                           <- qp_create_reply + fd[0] = region memfd, fd[1] = this queue pair's doorbell (doorbell.h):
	                           the application's end of a socket pair. It sends to wake the worker and polls it for
	                           completions. Not an eventfd: the holder of a shared eventfd can clear O_NONBLOCK and so
	                           make the other side's read or write block, and can drain a wake-up meant for it. */
	SHR_MSG_QP_DESTROY = 3, /* -> id               <- (none) once quiesced */
	SHR_MSG_MEM_REGISTER = 4,   /* -> mem_register + fd[0]  <- id */
	SHR_MSG_MEM_UNREGISTER = 5, /* -> id               <- (none) once quiesced; BUSY while a segment uses it */
	SHR_MSG_PUBLISH = 6,    /* -> publish + buffers[] + peers[]  <- id */
	SHR_MSG_WITHDRAW = 7,   /* -> id               <- (none) once quiesced */
	SHR_MSG_OPEN = 8,       /* -> open             <- open_reply (may take until its deadline) */
	SHR_MSG_CLOSE = 9,      /* -> id               <- (none) once quiesced */
	SHR_MSG_NOTE_ACK = 10,  /* -> note_ack, no reply: the application consumed `count` notifications */
	SHR_MSG_BYE = 11,       /* -> (none)           <- (none), then both close */
	SHR_MSG_POLICY_FIND = 12, /* -> policy_find    <- id: of this incarnation, for shr_sqe_shm.policy; NOT_FOUND */
	SHR_MSG_MEM_IMPORT = 13, /* -> mem_import      <- id; given back with MEM_UNREGISTER */
	SHR_MSG_COPIED = 14,    /* -> copied, no reply: the answer to a COPY */
	SHR_MSG_NOTE = SHR_MSG_EVENT | 1,     /* <- note + payload */
	SHR_MSG_SHUTDOWN = SHR_MSG_EVENT | 2, /* <- (none): the data plane drains; expect hang-up */
	SHR_MSG_SEGMENT_LOST = SHR_MSG_EVENT | 3, /* <- segment_lost: withdrawn, but not by its publisher, who still gives the
	                                             id back with WITHDRAW, which waits for what still runs */
	SHR_MSG_COPY = SHR_MSG_EVENT | 4,     /* <- copy: to be answered with COPIED when it is over, also when it failed */
};

struct shr_msg_hdr {
	uint32_t magic;
	uint16_t type;
	uint16_t reserved;
	uint32_t length;      /* header + body, equals the datagram size */
	uint32_t correlation;
	int32_t status;       /* replies: tn_status; requests: 0 */
	uint32_t detail;      /* replies: errno or the offending number, for the error text */
};

struct shr_msg_hello { uint16_t abi_major, abi_minor; uint32_t features; char app[32]; uint8_t reserved[24]; };
struct shr_msg_hello_reply {
	uint16_t abi_major, abi_minor; /* agreed: the smaller minor */
	uint32_t features;
	struct tn_id128 session;
	uint64_t default_deadline_ns, max_deadline_ns, max_request_bytes;
	uint32_t client_id;
	uint32_t max_qps, max_memories, max_segments, max_opens;
	uint32_t note_inbox;           /* notifications in flight to the application before NOTE_ACK */
	uint32_t policy_cnt;           /* 0. Before SHR_MINOR_POLICY_FIND: how many places shr_sqe_shm.policy could name */
	uint32_t stage_chunk_bytes, stage_chunks; /* size and number of the staging buffers that one application needs */
	uint8_t reserved[12];
};
struct shr_msg_id { uint64_t id; };
struct shr_msg_qp_create { uint32_t sq_entries, note_slots; uint8_t reserved[24]; };
struct shr_msg_qp_create_reply { uint64_t id; uint32_t worker; uint32_t region_bytes; uint8_t reserved[16]; };

#define SHR_RIGHT_LOCAL        0x1u /* source of WRITE, destination of READ */
#define SHR_RIGHT_REMOTE_READ  0x2u
#define SHR_RIGHT_REMOTE_WRITE 0x4u
#define SHR_RIGHT_LOCAL_READ   0x8u /* source of WRITE */
#define SHR_RIGHT_ALL          0xfu
#define SHR_RIGHT_STAGING      0x10u /* alone: staging buffers, for MEM_IMPORT; no request may name it */
#define SHR_RIGHT_WRITING      (SHR_RIGHT_LOCAL | SHR_RIGHT_REMOTE_WRITE | SHR_RIGHT_STAGING) /* without these nobody writes into it */
struct shr_msg_mem_register { uint64_t offset, length; uint32_t rights; uint32_t reserved; };

/* Memory that only the application can reach: its bytes pass through its staging buffers, which it fills and empties when
 * it is asked to. Where it lies is nobody's business but its own. */
struct shr_msg_mem_import {
	uint64_t staging;          /* id of its memory with SHR_RIGHT_STAGING; one for each application */
	uint64_t length;
	uint32_t rights;           /* SHR_RIGHT_LOCAL, SHR_RIGHT_LOCAL_READ */
	uint32_t reserved;
};
struct shr_msg_copy {
	uint64_t memory, offset;   /* id of the imported memory, and where in it */
	uint64_t staging_offset;   /* where in the staging buffers */
	uint64_t length;
	uint64_t tag;              /* comes back with COPIED */
	uint32_t to_memory;        /* 1: from the staging buffer into the memory; 0: the other way */
	uint32_t reserved;
};
struct shr_msg_copied { uint64_t tag; int32_t status /* OK, or FAULT: the memory is not there, or not for that */; uint32_t reserved; };

struct shr_msg_buffer { uint64_t memory, offset, length; uint32_t rights; uint32_t reserved; };
enum shr_access { SHR_ACCESS_SAME_UID = 1, SHR_ACCESS_LOCAL_ALL = 2, SHR_ACCESS_PEERS = 4 /* listed, or all when none listed */ };
struct shr_msg_publish {
	char name[TN_NAME_MAX];
	struct tn_id128 publication; /* drawn by the publisher, not zero; the same when it is published again by recovery */
	uint32_t access; /* enum shr_access bits */
	uint32_t buffer_cnt, peer_cnt, reserved;
	/* then struct shr_msg_buffer[buffer_cnt], then char[peer_cnt][TN_NAME_MAX] */
};
struct shr_msg_open { char ref[SHR_SEGMENT_REF_MAX + 6]; uint64_t remaining_ns; };
struct shr_msg_open_reply {
	uint64_t id, length;
	struct tn_id128 publication;
	uint32_t rights;
	uint8_t local;
	uint8_t reserved[11];
};
struct shr_msg_policy_find { char name[TN_NAME_MAX]; };
struct shr_msg_segment_lost { uint64_t id; int32_t status; uint32_t reserved; }; /* status: CANCELED = an operator did it */
struct shr_msg_note_ack { uint32_t count, reserved; };
struct shr_msg_note { /* then payload */
	char from[TN_NAME_MAX];    /* peer name; empty = this host */
	char segment[TN_NAME_MAX]; /* name it was sent to */
	uint64_t seq;              /* given by this data plane: increasing over all senders and restarts, gaps allowed */
	uint32_t payload_len, reserved;
};

TN_STATIC_ASSERT(sizeof(struct shr_qp_hdr_shm) == 64, "qp header is one line");
TN_STATIC_ASSERT(sizeof(struct shr_qp_shm) == 64 * 7, "qp control block");
TN_STATIC_ASSERT(sizeof(struct shr_sqe_shm) == 128, "sqe");
TN_STATIC_ASSERT(offsetof(struct shr_sqe_shm, batch) == 80, "sqe batch");
TN_STATIC_ASSERT(offsetof(struct shr_sqe_shm, opcode) == 96, "sqe opcode");
TN_STATIC_ASSERT(sizeof(struct shr_cqe_shm) == 64, "cqe");
TN_STATIC_ASSERT(sizeof(struct shr_tele_hdr_shm) == 256, "telemetry header");
TN_STATIC_ASSERT(sizeof(struct shr_worker_shm) == 128, "worker block");
TN_STATIC_ASSERT(sizeof(struct shr_event_shm) == 128, "event");
TN_STATIC_ASSERT(offsetof(struct shr_event_shm, arg) == 112, "event arg");
TN_STATIC_ASSERT(offsetof(struct shr_cqe_shm, status) == 40, "cqe status");
TN_STATIC_ASSERT(offsetof(struct shr_tele_hdr_shm, state) == 128, "telemetry state");
TN_STATIC_ASSERT(sizeof(tn_a32) == 4 && sizeof(tn_a64) == 8, "atomics have no lock beside them");
TN_STATIC_ASSERT(sizeof(struct shr_msg_hdr) == 24, "message header");
TN_STATIC_ASSERT(sizeof(struct shr_msg_hello) == 64, "hello");
TN_STATIC_ASSERT(sizeof(struct shr_msg_hello_reply) == 96, "hello reply");
TN_STATIC_ASSERT(sizeof(struct shr_msg_open) == 144, "open");
TN_STATIC_ASSERT(sizeof(struct shr_msg_note) == 144, "note");

#endif
