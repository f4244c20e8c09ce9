/* SPDX-License-Identifier: Apache-2.0
 * The two mailboxes between the control thread and one worker, and every message that travels in them. Control ->
 * worker: commands; worker -> control: events. Fixed-size records in SPSC rings (shm-ring mailbox); a pointer in a
 * record is a hand-over as its comment says. A command with an id is answered by exactly one DP_EVT_ACK when its
 * effect is complete: for every *_DEL that means QUIESCED - nothing in this worker can touch the object again. An *_ADD or
 * *_SET that the worker refuses leaves it as it was; nothing else is ever refused, but INSPECT may find nothing. */
#ifndef DP_APPLY_H
#define DP_APPLY_H

#include "common/list.h"
#include "dataplane/segment/table.h"

struct dp_qp;
struct dp_hello;

/* What a worker does with what applications ask for. */
enum dp_mode {
	DP_MODE_RUN,
	DP_MODE_PAUSE, /* it queues; nothing of it goes out, what is out ends, deadlines run */
	DP_MODE_DRAIN  /* new requests are refused, the others go on */
};

enum dp_cmd_kind {
	DP_CMD_QP_ADD = 1,   /* ptr: struct dp_qp, owned by the worker until QP_DEL is acknowledged */
	DP_CMD_QP_DEL,       /* num: qp id. Cancel its requests, wait until quiesced */
	DP_CMD_CLIENT_DEL,   /* num: client id. All its queue pairs, remotes, memories: cancel and quiesce, then ack. Copies that it
	                        was asked for are not waited for: they touch nothing but its own memory */
	DP_CMD_MEM_ADD,      /* ptr: const struct dp_memory, borrowed until MEM_DEL acknowledged */
	DP_CMD_MEM_DEL,      /* num: handle. Requests using it end CANCELED */
	DP_CMD_SEG_ADD,      /* ptr: const struct dp_segment, borrowed until SEG_DEL acknowledged */
	DP_CMD_SEG_DEL,      /* num: handle. New operations are STALE, running ones (lanes, shm copies) finish first */
	DP_CMD_REMOTE_SET,   /* ptr: const struct dp_remote: adds, or replaces the one with this handle; ack = old one unused */
	DP_CMD_REMOTE_DEL,   /* num: handle */
	DP_CMD_PEER_SET,     /* ptr: const struct dp_peer: adds or replaces by index; ack = old one unused */
	DP_CMD_PEER_BACK,    /* num: peer index, known by PEER_SET. It can be reached again: what failed is tried again */
	DP_CMD_LANE_ADOPT,   /* fd + ptr: malloc'ed struct dp_hello (checked, ticket valid); the worker owns both. len: enum
	                        tn_transport whose listener it came to */
	DP_CMD_FENCE,        /* num: peer index + session: close every incoming lane of that peer, whatever its key was, whose
	                        session differs; then ack */
	DP_CMD_NOTE_VERDICT, /* num: token of DP_EVT_NOTE, status: what the receiver's inbox said */
	DP_CMD_COPIED,       /* num: tag of DP_EVT_COPY, num2: handle of the staging buffers, status: the application's answer, len: client
	                        id. One that nobody waits for makes the client broken */
	DP_CMD_DATAGRAM,     /* peer index in num2 + ptr: malloc'ed bytes, len: send on the protected control lane */
	DP_CMD_TUNE,         /* ptr: const struct tn_config, borrowed until the next one is acknowledged; num: its
	                        generation. The worker re-reads the hot values; ack = the one before is unused */
	DP_CMD_MODE,         /* num: enum dp_mode; ack of DRAIN = nothing of applications is left */
	DP_CMD_TRANSPORT,    /* num: enum tn_transport, num2: 1 on, 0 off, len: grace in ms. Off: nothing of this host's requests is
	                        given to it, what runs on it may end within the grace and is then taken away; ack = none runs */
	DP_CMD_INSPECT,      /* num: id of a request, ptr: struct dp_inspect, the worker's until the ack; ack = filled, or NOT_FOUND */
	DP_CMD_STOP          /* drain: refuse new work, cancel the rest, let operations of peers that are under way end (a second
	                        at most), ack, leave the loop */
};

struct dp_cmd { /* 64 bytes */
	uint64_t id;      /* 0 = no ack wanted */
	uint32_t kind;    /* enum dp_cmd_kind */
	int32_t fd;       /* -1 = none */
	void *ptr;
	uint64_t num, num2;
	uint32_t len;
	int32_t status;
	struct tn_id128 session;
};

enum dp_evt_kind {
	DP_EVT_ACK = 1,          /* id; status: TN_OK, or why it was refused */
	DP_EVT_CLIENT_BROKEN,    /* num: client id; its ring broke the rules: the control thread drops the client */
	DP_EVT_REMOTE_REFRESH,   /* num: remote handle, num2: generation that was found stale (single flight per handle) */
	DP_EVT_PEER_REFRESH,     /* num: peer index; lanes refused (ticket or session): fetch session, endpoints, ticket anew.
	                            Answered by PEER_SET (possibly unchanged) */
	DP_EVT_NOTE,             /* num: token, num2: segment handle, ptr: malloc'ed struct dp_note_in: control delivers, then
	                            DP_CMD_NOTE_VERDICT */
	DP_EVT_DATAGRAM,         /* num2: peer index, ptr: malloc'ed bytes, len */
	DP_EVT_COPY,             /* id: tag, num: handle of the imported memory, num2: offset in it, len: bytes, status: 1 = from the
	                            staging buffer that the tag names into the memory, 0 = the other way: ask the client. Answered
	                            by COPIED, unless the client goes */
	DP_EVT_LANE_STATE        /* num: 1 up / 0 down, num2: peer index, len: transport kind; for status output */
};

struct dp_evt { /* 64 bytes */
	uint64_t id;
	uint32_t kind;
	uint32_t len;
	void *ptr;
	uint64_t num, num2;
	uint32_t worker;
	int32_t status;
	uint8_t reserved[16];
};

/* A notice on its way to a local client (DP_EVT_NOTE). */
struct dp_note_in {
	uint64_t seq;                   /* the sender's number: low 6 bits its worker, strictly increasing per worker */
	struct tn_id128 session;        /* the sender's: with peer_index and seq one that was sent again is known; zero = this host */
	uint32_t peer_index;
	tn_status refused;              /* what the worker found against it; OK = nothing */
	char from[TN_NAME_MAX];         /* "" = this host */
	uint32_t uid;                   /* local senders: uid of the sending client */
	uint32_t len;
	struct tn_list link;            /* from here on the control thread's: a verdict that is yet to be told */
	uint64_t token;
	uint32_t worker;
	tn_status verdict;
	uint8_t payload[];
};

#endif
