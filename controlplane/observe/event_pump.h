/* SPDX-License-Identifier: Apache-2.0
 * Drains the event rings of the attached region: exemplars, then, in time order, the memory of recent records and JSON
 * lines to the sink; counts what was overwritten before it came (ring="log": the normal rings, ring="trace": the keep
 * rings). Loop thread only. */
#ifndef CP_OBSERVE_EVENT_PUMP_H
#define CP_OBSERVE_EVENT_PUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"
#include "common/text_buf.h"
#include "controlplane/observe/event_mark.h"
#include "controlplane/observe/exemplar.h"
#include "controlplane/observe/log_limit.h"
#include "controlplane/observe/recent.h"
#include "shm-ring/event_json.h"
#include "shm-ring/events.h"

enum {
	CP_PUMP_BATCH = 64,        /* records of one ring in one round */
	CP_PUMP_LINE_MAX = 4096,   /* a line is about 400 bytes */
	CP_PUMP_RINGS_MAX = CP_MARK_RINGS,
};

/* Takes one complete line (with '\n'). Must not block for long. */
typedef void (*cp_line_sink)(void *ctx, const char *line, size_t len);

struct cp_pumped { struct shr_event_shm ev; bool logged; }; /* logged: a predecessor wrote its line */

struct cp_event_pump {
	struct shr_event_reader reader[CP_PUMP_RINGS_MAX]; /* of thread t: 2t normal, 2t+1 keep */
	uint32_t reader_cnt;                               /* 0 = no region */
	uint64_t rendered[CP_PUMP_RINGS_MAX];              /* records below it are in the log already */
	struct cp_event_mark mark;
	struct tn_id128 session;                           /* of the region */
	uint64_t generation;                               /* of it */
	bool more;                                         /* a ring may hold more than the last round read */
	struct shr_event_clock clock;
	struct cp_log_limit limit;
	struct tn_text line;
	struct cp_recent *recent;                          /* owned */
	struct cp_pumped *round;                           /* CP_PUMP_RINGS_MAX * CP_PUMP_BATCH records, owned */
};

/* mark_path: where it is remembered how far the log is, across restarts; NULL: nowhere. TN_OK or TN_NO_MEMORY. Close
 * accepts an object that init refused. */
tn_status cp_event_pump_init(struct cp_event_pump *p, const char *mark_path);
void cp_event_pump_close(struct cp_event_pump *p);

/* Reads from now on from this region (kept mapped by the caller until the next bind), or from none (NULL).
 * from_start: the region is younger than we are, so also the records already gone count as missed. What a predecessor
 * rendered of this region is read for exemplars and memory, and not rendered again. */
void cp_event_pump_bind(struct cp_event_pump *p, const struct shr_tele_ro *tele, bool from_start);

/* One round: up to CP_PUMP_BATCH records of each ring. Returns how many; call again when p->more. missed_out[2]: newly missed records, log and trace.
 * exemplars is updated; the caller holds the lock that guards it only around cp_event_pump_read(). */
uint32_t cp_event_pump_read(struct cp_event_pump *p, struct cp_exemplars *exemplars, uint64_t missed_out[static 2]);
/* Keeps the records of the last read in p->recent, renders them and remembers that: killed in between, the next one renders this round again. */
void cp_event_pump_render(struct cp_event_pump *p, uint32_t cnt, uint64_t now_ns, cp_line_sink sink, void *ctx);

#endif
