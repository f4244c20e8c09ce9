/* SPDX-License-Identifier: Apache-2.0
 * Chunks through one queue pair: submit, complete, send again. What may pass and what is final is decided here. */
#include "controlplane/tentctl/pump.h"

#include <stdarg.h>
#include <string.h>

#include "common/message.h"
#include "controlplane/tentctl/style.h"

#define QP_DEPTH 16u
#define TRAILER_SLOT TCTL_PUMP_BUFFERS
#define STEP_SLEEP_NS (200 * TN_NS_PER_MS)
#define RETRY_FIRST_NS (20 * TN_NS_PER_MS)
#define RETRY_MOST_NS TN_NS_PER_S
#define COMPLAIN_AFTER_NS (3 * TN_NS_PER_S)
/* A segment may be away for a moment while its host's data plane restarts; a withdrawn one stays away. */
#define GONE_STALL_NS (10 * TN_NS_PER_S)

bool tctl_pump_fail(struct tctl_pump *p, tn_status status, const char *fmt, ...)
{
	char text[640];
	va_list ap;
	if (p->failed)
		return false;
	p->failed = true;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	tctl_fail(p->t, status, "%s", text);
	return false;
}

static bool is_gone(tn_status s)
{
	return s == TN_STALE || s == TN_NOT_FOUND || s == TN_PEER_STALE;
}

static bool may_pass(tn_status s)
{
	switch (s) {
	case TN_AGAIN:
	case TN_PENDING:
	case TN_TIMEOUT:
	case TN_AMBIGUOUS:
	case TN_BUSY:
	case TN_LIMIT:
	case TN_CANCELED:
	case TN_PATH_DOWN: case TN_PATH_PROTOCOL: case TN_PATH_TIMEOUT: case TN_PEER_DOWN: case TN_DATAPLANE_DOWN:
	case TN_CONTROLPLANE_DOWN: case TN_CLIENT_GONE:
		return true;
	default:
		return is_gone(s);
	}
}

static void note_failed(struct tctl_pump *p, tn_status s, const char *text)
{
	p->note_failed = true;
	p->note_status = s;
	snprintf(p->note_error, sizeof p->note_error, "%s", text);
}

static void remember(struct tctl_pump *p, tn_status s, const char *text)
{
	p->last_status = s;
	snprintf(p->last_error, sizeof p->last_error, "%s", text);
}

/* ---- open ---- */

/* Somebody does not answer: who that is. */
static bool is_silence(tn_status s)
{
	return s == TN_PEER_DOWN || s == TN_PEER_DENIED || s == TN_TIMEOUT || s == TN_DATAPLANE_DOWN;
}

/* Once while it goes on; and at its end (false). */
static bool complain(struct tctl_pump *p, uint64_t still_ns, bool over, uint32_t state)
{
	char who[500] = "";
	const char *why = p->last_error[0] != '\0' ? p->last_error : state == TENT_STATE_RECOVERING ?
			  "the data plane of this host is away" : "the far side does not answer";
	if (p->last_status == TN_OK || is_silence(p->last_status))
		tctl_trouble(p->t, p->ref, who, sizeof who);
	if (who[0] != '\0')
		why = who;
	p->complained = true;
	if (over)
		return tctl_pump_fail(p, p->last_status != TN_OK ? p->last_status : TN_TIMEOUT,
				      "%s: nothing moved for %s: %s", p->ref, tctl_time_text(still_ns), why);
	fprintf(stderr, "tentctl: nothing moved for %s, still trying: %s%s\n", tctl_time_text(still_ns), why,
		is_gone(p->last_status) ? "; waiting for it to be published again" : "");
	return true;
}

static bool open_failed(struct tctl_pump *p, tn_status s)
{
	char why[500] = "";
	if (is_silence(s))
		tctl_trouble(p->t, p->ref, why, sizeof why);
	if (why[0] == '\0')
		return tctl_pump_fail(p, s, "%s", tent_last_error());
	return tctl_pump_fail(p, s, "%s: %s", p->ref, why);
}

static int attach_failed(struct tctl_pump *p, tn_status s)
{
	char why[500] = "";
	if (s == TN_TIMEOUT)
		tctl_trouble(p->t, NULL, why, sizeof why);
	if (why[0] == '\0')
		tctl_pump_fail(p, s, "%s", tent_last_error());
	else
		tctl_pump_fail(p, s, "cannot attach: %s", why);
	return TCTL_FAILED;
}

/* While it is opened again nothing moves: said as soon as that lasts. */
static void complain_of_open(struct tctl_pump *p)
{
	uint64_t still_ns = tn_now_ns() - p->moved_ns;
	if (p->seg != NULL && !p->complained && still_ns >= COMPLAIN_AFTER_NS)
		(void)complain(p, still_ns, false, TENT_STATE_ATTACHED);
}

/* Open the segment, waiting for daemons and peers that may still come, until the deadline. */
static bool open_segment(struct tctl_pump *p, uint64_t deadline_ns, tent_segment **out)
{
	uint64_t pause_ns = RETRY_FIRST_NS;
	for (;;) {
		tent_status s = tent_segment_open(p->ctx, p->ref, out);
		if (s == TENT_OK)
			return true;
		tn_status st = (tn_status)s;
		bool again = may_pass(st) && (p->seg != NULL || st != TN_NOT_FOUND);
		if (!again || tn_now_ns() >= deadline_ns)
			return open_failed(p, st);
		if (tctl_stopped())
			return tctl_pump_fail(p, TN_CANCELED, "interrupted");
		remember(p, st, tent_last_error());
		complain_of_open(p);
		tctl_stop_sleep(-1, TN_MIN(pause_ns, tn_remaining_ns(deadline_ns, tn_now_ns()) + TN_NS_PER_MS));
		pause_ns = TN_MIN(pause_ns * 2, RETRY_MOST_NS);
	}
}

int tctl_pump_open(struct tctl_pump *p, struct tctl *t, const struct tctl_pump_cfg *cfg, const char *ref)
{
	tent_options opt = TENT_OPTIONS_INIT;
	tent_qp_options qp_opt = TENT_QP_OPTIONS_INIT;
	memset(p, 0, sizeof *p);
	p->t = t;
	p->cfg = *cfg;
	snprintf(p->ref, sizeof p->ref, "%s", ref);
	opt.runtime_dir = tctl_runtime_dir(t);
	opt.app_name = "tentctl";
	opt.timeout_ns = t->timeout_ns;
	opt.recover_timeout_ns = cfg->stall_ns;
	qp_opt.depth = QP_DEPTH;
	if (opt.runtime_dir == NULL) {
		p->failed = true;
		return TCTL_FAILED;
	}
	tent_status s = tent_open(&opt, &p->ctx);
	if (s == TENT_OK)
		s = tent_qp_create(p->ctx, &qp_opt, &p->qp);
	if (s != TENT_OK)
		return attach_failed(p, (tn_status)s);
	if (!open_segment(p, tn_deadline_after(tn_now_ns(), t->timeout_ns), &p->seg))
		return TCTL_FAILED;
	p->segment_bytes = tent_segment_bytes(p->seg);
	return TCTL_OK;
}

int tctl_pump_buffers(struct tctl_pump *p, uint64_t bytes)
{
	uint64_t chunks = (bytes + TCTL_PUMP_CHUNK - 1) / TCTL_PUMP_CHUNK;
	p->chunk_bytes = TN_MIN(bytes, (uint64_t)TCTL_PUMP_CHUNK);
	p->chunk_bytes = (p->chunk_bytes + 4095) / 4096 * 4096;
	p->buffer_cnt = (unsigned)TN_MIN(chunks, (uint64_t)TCTL_PUMP_BUFFERS);
	uint64_t total = p->chunk_bytes * p->buffer_cnt + 4096;
	tent_status s = tent_memory_alloc(p->ctx, total, TENT_RIGHT_LOCAL, 0, &p->mem);
	if (s != TENT_OK) {
		tctl_pump_fail(p, (tn_status)s, "%s", tent_last_error());
		return TCTL_FAILED;
	}
	p->addr = tent_memory_addr(p->mem);
	for (unsigned i = 0; i < p->buffer_cnt; i++)
		p->slots[i].memory_off = i * p->chunk_bytes;
	p->slots[TRAILER_SLOT].memory_off = p->chunk_bytes * p->buffer_cnt;
	return TCTL_OK;
}

void tctl_pump_close(struct tctl_pump *p)
{
	(void)tent_close(p->ctx); /* with everything below it; whatever it says, the process ends now */
	p->ctx = NULL;
}

/* ---- completions ---- */

static void moved(struct tctl_pump *p)
{
	p->moved_ns = tn_now_ns();
	p->complained = false;
	p->last_status = TN_OK; /* what failed before has passed */
	p->last_error[0] = '\0';
}

static struct tctl_slot *find_slot(struct tctl_pump *p, uint64_t user_data)
{
	for (unsigned i = 0; i < TN_ARRAY_LEN(p->slots); i++)
		if (p->slots[i].user_data == user_data)
			return &p->slots[i];
	return NULL;
}

static void send_later(struct tctl_pump *p, struct tctl_slot *slot, tn_status s)
{
	uint64_t wait_ns = RETRY_FIRST_NS << TN_MIN(slot->tries, 6u);
	slot->state = TCTL_SLOT_RETRY;
	slot->tries++;
	slot->batch = 0;
	p->batch_broken = true;
	slot->retry_ns = tn_now_ns() + TN_MIN(wait_ns, RETRY_MOST_NS);
	if (is_gone(s))
		p->reopen = true;
}

static void slot_failed(struct tctl_pump *p, struct tctl_slot *slot, tn_status s, const char *text)
{
	remember(p, s, text);
	if (s == TN_UNSUPPORTED && p->cfg.hint != TENT_TRANSPORT_ANY)
		tctl_pump_fail(p, s, "%s cannot be reached over %s, which --transport asks for (%s)", p->ref,
			       p->cfg.transport, text);
	else if (!may_pass(s))
		tctl_pump_fail(p, s, "%s: %s", p->ref, text);
	else
		send_later(p, slot, s);
}

static void slot_done(struct tctl_pump *p, struct tctl_slot *slot, const tent_completion *c)
{
	slot->state = TCTL_SLOT_DONE;
	moved(p);
	if (!slot->counted)
		return;
	p->stats.done_bytes += slot->bytes;
	p->stats.bytes[(unsigned)c->transport < TCTL_PUMP_TRANSPORTS ? c->transport : TENT_TRANSPORT_ANY] +=
	    slot->bytes;
	tn_loghist_add(&p->stats.latency_ns, c->latency_ns);
}

static void on_request(struct tctl_pump *p, const tent_completion *c)
{
	char text[256];
	struct tctl_slot *slot = find_slot(p, c->user_data);
	if (slot == NULL || slot->state != TCTL_SLOT_SENT)
		return;
	slot->held = c->memory_busy != 0;
	if (!slot->held)
		slot->user_data = 0;
	if (slot->counted)
		p->stats.attempts += c->attempts;
	if (c->outcome == TENT_OUTCOME_COMPLETED)
		slot_done(p, slot, c);
	else
		slot_failed(p, slot, (tn_status)c->status, tent_completion_text(c, text, sizeof text));
}

static void on_notify(struct tctl_pump *p, const tent_completion *c)
{
	char text[256];
	if (c->user_data != p->note_user_data)
		return;
	p->note_user_data = 0;
	p->note_done = c->outcome == TENT_OUTCOME_COMPLETED;
	if (p->note_done)
		moved(p);
	else
		note_failed(p, (tn_status)c->status, tent_completion_text(c, text, sizeof text));
}

static void on_release(struct tctl_pump *p, const tent_completion *c)
{
	struct tctl_slot *slot = find_slot(p, c->user_data);
	if (slot == NULL || !slot->held)
		return;
	slot->held = false;
	slot->user_data = 0;
}

/* ---- submission ---- */

static void submit(struct tctl_pump *p, struct tctl_slot *slot)
{
	tent_request r = { .opcode = slot->op, .priority = TENT_PRIORITY_MEDIUM, .memory = p->mem,
			   .memory_offset = slot->memory_off, .segment = p->seg, .segment_offset = slot->segment_off,
			   .bytes = slot->bytes, .user_data = ++p->next_user_data, .batch = slot->batch,
			   .hint = p->cfg.hint };
	size_t accepted = 0;
	tent_status s = tent_submit(p->qp, &r, 1, &accepted);
	if (accepted == 1) {
		slot->state = TCTL_SLOT_SENT;
		slot->user_data = r.user_data;
		return;
	}
	slot_failed(p, slot, s == TENT_OK ? TN_AGAIN : (tn_status)s,
		    s == TENT_AGAIN ? "the queue is full" : tent_last_error());
}

/* The handle died with a data plane or a publication: open again once nothing refers to it. */
static bool reopen(struct tctl_pump *p)
{
	tent_segment *fresh;
	if (tent_qp_outstanding(p->qp) > 0)
		return true;
	if (!open_segment(p, tn_deadline_after(tn_now_ns(), TN_MIN(p->cfg.stall_ns, GONE_STALL_NS)), &fresh))
		return false;
	(void)tent_segment_close(p->seg);
	p->seg = fresh;
	p->reopen = false;
	if (tent_segment_bytes(fresh) != p->segment_bytes)
		return tctl_pump_fail(p, TN_STALE, "%s was published again with another size (%llu bytes, before %llu)",
				      p->ref, (unsigned long long)tent_segment_bytes(fresh),
				      (unsigned long long)p->segment_bytes);
	return true;
}

static bool send_due(struct tctl_pump *p, uint64_t now_ns, uint64_t *sleep_ns)
{
	if (p->reopen && !reopen(p))
		return false;
	for (unsigned i = 0; i < TN_ARRAY_LEN(p->slots); i++) {
		struct tctl_slot *slot = &p->slots[i];
		if (slot->state != TCTL_SLOT_RETRY || slot->held || p->reopen)
			continue;
		if (slot->retry_ns > now_ns) {
			*sleep_ns = TN_MIN(*sleep_ns, slot->retry_ns - now_ns);
			continue;
		}
		p->stats.resent += slot->counted;
		submit(p, slot);
	}
	return !p->failed;
}

static bool is_busy(const struct tctl_slot *slot)
{
	return slot->state == TCTL_SLOT_SENT || slot->state == TCTL_SLOT_RETRY || slot->held;
}

/* The data plane lets requests wait for a segment that may come back with its data plane. Whether it is published at all
 * is told by opening it once more; NOT_FOUND shortens the wait. Blocks up to --timeout. */
static void look_for_segment(struct tctl_pump *p, uint64_t now_ns)
{
	tent_segment *probe;
	if (now_ns < p->probe_ns)
		return;
	p->probe_ns = now_ns + COMPLAIN_AFTER_NS;
	tent_status s = tent_segment_open(p->ctx, p->ref, &probe);
	if (s == TENT_OK)
		(void)tent_segment_close(probe);
	else if (is_gone((tn_status)s) || p->last_status == TN_OK)
		remember(p, (tn_status)s, tent_last_error());
}

/* Nothing moved for too long, although something should. */
static bool check_stall(struct tctl_pump *p, uint64_t now_ns)
{
	tent_info info = TENT_INFO_INIT;
	bool busy = p->note_user_data != 0;
	for (unsigned i = 0; i < TN_ARRAY_LEN(p->slots); i++)
		busy |= is_busy(&p->slots[i]);
	if (!busy) {
		p->moved_ns = now_ns;
		return true;
	}
	uint64_t still_ns = now_ns - p->moved_ns;
	if (still_ns < COMPLAIN_AFTER_NS)
		return true;
	if (tent_query(p->ctx, &info) == TENT_OK && info.state == TENT_STATE_DEAD)
		return tctl_pump_fail(p, TN_DATAPLANE_DOWN, "the data plane of this host did not come back");
	if (info.state == TENT_STATE_ATTACHED)
		look_for_segment(p, now_ns);
	uint64_t most_ns = is_gone(p->last_status) ? TN_MIN(p->cfg.stall_ns, GONE_STALL_NS) : p->cfg.stall_ns;
	bool over = still_ns >= most_ns;
	return (p->complained && !over) || complain(p, still_ns, over, info.state);
}

bool tctl_pump_step(struct tctl_pump *p, uint64_t sleep_ns)
{
	tent_completion done[QP_DEPTH];
	uint64_t now_ns = tn_now_ns();
	if (p->failed || !send_due(p, now_ns, &sleep_ns))
		return false;
	int n = tent_wait(p->qp, done, (int)TN_ARRAY_LEN(done), sleep_ns);
	if (n < 0)
		return tctl_pump_fail(p, (tn_status)n, "%s", tent_last_error());
	for (int i = 0; i < n; i++) {
		switch (done[i].kind) {
		case TENT_COMPLETION_REQUEST: on_request(p, &done[i]); break;
		case TENT_COMPLETION_NOTIFY: on_notify(p, &done[i]); break;
		case TENT_COMPLETION_RELEASE: on_release(p, &done[i]); break;
		}
	}
	if (tctl_stopped())
		return tctl_pump_fail(p, TN_CANCELED, "interrupted");
	return check_stall(p, tn_now_ns()) && !p->failed;
}

/* ---- chunks ---- */

static bool wait_slot(struct tctl_pump *p, const struct tctl_slot *slot)
{
	while (is_busy(slot))
		if (!tctl_pump_step(p, STEP_SLEEP_NS))
			return false;
	return !p->failed;
}

bool tctl_pump_wait(struct tctl_pump *p, uint64_t chunk)
{
	return wait_slot(p, &p->slots[chunk % p->buffer_cnt]);
}

uint8_t *tctl_pump_buffer(const struct tctl_pump *p, uint64_t chunk)
{
	return p->addr + p->slots[chunk % p->buffer_cnt].memory_off;
}

bool tctl_pump_start(struct tctl_pump *p, tent_opcode op, uint64_t chunk, uint64_t segment_off, uint64_t bytes,
		     uint32_t batch)
{
	struct tctl_slot *slot = &p->slots[chunk % p->buffer_cnt];
	if (p->moved_ns == 0)
		p->moved_ns = tn_now_ns();
	slot->op = op;
	slot->counted = true;
	slot->segment_off = segment_off;
	slot->bytes = bytes;
	slot->batch = batch;
	slot->tries = 0;
	p->stats.chunks++;
	submit(p, slot);
	return !p->failed;
}

bool tctl_pump_drain(struct tctl_pump *p)
{
	for (unsigned i = 0; i < p->buffer_cnt; i++)
		if (!wait_slot(p, &p->slots[i]))
			return false;
	return true;
}

const uint8_t *tctl_pump_peek(struct tctl_pump *p, uint64_t segment_off, uint64_t bytes)
{
	struct tctl_slot *slot = &p->slots[TRAILER_SLOT];
	if (!wait_slot(p, slot))
		return NULL;
	p->moved_ns = tn_now_ns();
	slot->op = TENT_READ;
	slot->segment_off = segment_off;
	slot->bytes = bytes;
	slot->tries = 0;
	submit(p, slot);
	return wait_slot(p, slot) ? p->addr + slot->memory_off : NULL;
}

/* ---- notice ---- */

bool tctl_pump_notify(struct tctl_pump *p, uint32_t batch, const void *payload, size_t bytes)
{
	p->note_done = p->note_failed = false;
	for (;;) {
		tent_status s = tent_notify(p->qp, p->seg, batch, payload, bytes, ++p->next_user_data, 0);
		if (s == TENT_OK) {
			p->note_user_data = p->next_user_data;
			return true;
		}
		if (s != TENT_AGAIN) {
			note_failed(p, (tn_status)s, tent_last_error());
			return true;
		}
		if (!tctl_pump_step(p, STEP_SLEEP_NS))
			return false;
	}
}

bool tctl_pump_notify_end(struct tctl_pump *p)
{
	while (p->note_user_data != 0)
		if (!tctl_pump_step(p, STEP_SLEEP_NS))
			return false;
	if (p->note_failed && !may_pass(p->note_status))
		return tctl_pump_fail(p, p->note_status, "%s: the notice did not arrive: %s", p->ref, p->note_error);
	return p->note_done;
}
