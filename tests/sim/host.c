/* SPDX-License-Identifier: Apache-2.0
 * Life of the daemons, and the control planes' edge: what controlplane/loop.c does with ZeroMQ, done with the simulator's
 * network. One thread. */
#include "tests/sim/host.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/daemon_args.h"
#include "common/message.h"
#include "controlplane/node.h"
#include "controlplane/observe/cells.h"
#include "dataplane/daemon.h"
#include "shm-ring/lease.h"
#include "tests/sim/fd.h"
#include "tests/sim/link.h"
#include "tests/sim/net.h"
#include "tests/sim/trouble.h"

#define TICK_NS (50 * TN_NS_PER_MS)
#define BREAK_NS (15 * TN_NS_PER_S) /* a connection between control planes that nothing passes breaks */

struct sim_host sim_hosts[SIM_HOSTS];

struct letter { struct letter *next; enum cp_door door; uint64_t connection; enum cp_contact contact; size_t len; uint8_t bytes[]; };

/* Our own connection to the other host's control plane. */
struct call_line { bool wanted, up; uint64_t id; uint64_t last_ns; struct letter *waiting, **tail; };

struct mind {
	struct sim_host *host;
	struct cp_node *node;
	struct cp_cells *cells;
	struct letter *in, **in_tail;
	struct call_line line;
};
static struct mind minds[SIM_HOSTS];
static uint64_t line_next;
static bool let_die;

/* ---- configuration ---- */

/* What a seed draws once: only a restart changes it. */
static void draw_cold(struct sim_host *h)
{
	static const char *const names[] = { "a", "b" };
	(void)snprintf(h->cold, sizeof h->cold,
		       "{\"host\":{\"name\":\"%s\"},\"runtime_dir\":\"%s\",\"state_dir\":\"%s\",\n"
		       "\"workers\":{\"count\":%u},\"poll\":{\"spin_us\":%u},\n"
		       "\"limits\":{\"max_requests_per_worker\":1024,\"max_memories_per_client\":16,\"max_segments_per_client\":16,"
		       "\"max_opens_per_client\":16,\"note_inbox\":%u},\n"
		       "\"transports\":{\"tcp\":{\"bind_address\":\"%s\",\"port\":7000,\"max_connections\":64,"
		       "\"progress_timeout_ms\":%u}},\n"
		       "\"staging\":{\"chunk_bytes\":%u,\"chunks\":%u,\"cleanup_ms\":%u},\n"
		       "\"deadline\":{\"default_ms\":%u},\n"
		       "\"peers\":[{\"name\":\"%s\",\"address\":\"tcp://%s:9000\",\"public_key\":\"%064u\"}]",
		       names[h->index], h->runtime_dir, h->runtime_dir, (unsigned)sim_pick(1, 2), (unsigned)sim_pick(0, 3),
		       (unsigned)sim_pick(8, 64), sim_host_address(h->index), (unsigned)sim_pick(500, 2000),
		       (unsigned)sim_pick(1, 4) * 4096, (unsigned)sim_pick(1, 4), (unsigned)sim_pick(10, 1000),
		       (unsigned)sim_pick(1000, 5000), names[1 - h->index], sim_host_address(1 - h->index), 1 + h->index);
}

/* What an operator may change while it runs. */
static void write_hot(FILE *f)
{
	static const char *const orders[] = { "\"tcp\",\"shm\"", "\"tcp\",\"rdma\",\"shm\"", "\"shm\",\"rdma\"", "\"shm\",\"tcp\"" };
	fprintf(f, ",\n\"admission\":{\"merge_max_bytes\":24576,\"window_owners\":%u,\"peer_window_owners\":%u,\"peer_window_bytes\":%u,\"stall_ms\":%u,"
		   "\"edf\":%s,\"drop_infeasible\":%s},\n", (unsigned)sim_pick(8, 64), (unsigned)sim_pick(1, 8),
		(unsigned)sim_pick(24576, 1 << 20), (unsigned)sim_pick(5, 400), sim_chance(2) ? "true" : "false",
		sim_chance(2) ? "true" : "false");
	fprintf(f, "\"retry\":{\"max_attempts\":%u,\"max_failovers\":%u},\n", (unsigned)sim_pick(1, 12), (unsigned)sim_pick(0, 4));
	fprintf(f, "\"rails\":{\"max_errors\":%u,\"cool_min_ms\":%u,\"settle_ms\":%u,\"probe_ms\":%u},\n", (unsigned)sim_pick(0, 3),
		(unsigned)sim_pick(1, 300), (unsigned)sim_pick(0, 2000), (unsigned)sim_pick(10, 500));
	fprintf(f, "\"observability\":{\"trace_sample_rate_ppm\":%u},\n\"policies\":[", (unsigned)sim_pick(0, 1000000));
	for (unsigned i = 0, cnt = (unsigned)sim_pick(0, 3); i < cnt; i++)
		fprintf(f, "%s{\"name\":\"p%u\",\"transports\":[%s],\"min_bytes\":%u}", i > 0 ? "," : "", (unsigned)sim_pick(2 * i, 2 * i + 1),
			orders[sim_pick(0, TN_ARRAY_LEN(orders) - 1)], (unsigned)sim_pick(0, 2000));
	fprintf(f, "]");
}

void sim_host_write_config(const struct sim_host *h, bool calm)
{
	FILE *f = fopen(h->config_path, "w");
	if (f == NULL)
		abort();
	(void)fputs(h->cold, f);
	if (!calm)
		write_hot(f);
	(void)fputs("}\n", f);
	(void)fclose(f);
}

struct tn_config *sim_host_config(const struct sim_host *h)
{
	static const char *const no_env[] = { "HOME=/nonexistent", NULL };
	static struct tn_config_errors errors;
	struct tn_config_opts opts = { .size = sizeof opts, .path = h->config_path, .env = no_env };
	struct tn_config *cfg = NULL;
	if (tn_config_load(&opts, &cfg, &errors) != TN_OK && !sim_trouble_starves()) {
		tn_config_errors_print(&errors, stderr);
		abort();
	}
	return cfg;
}

/* ---- data plane ---- */

static void dataplane_start(void *arg, uint64_t num);
static void controlplane_start(void *arg, uint64_t num);

static bool hurry;

void sim_hosts_hurry(void) { hurry = true; }

static uint64_t restart_delay(void)
{
	bool now = hurry;
	hurry = false;
	if (now)
		return sim_pick(10, 3000) * TN_NS_PER_US;
	return sim_chance(8) ? sim_pick(1, 4) * TN_NS_PER_S : sim_pick(1, 200) * TN_NS_PER_MS;
}

static void dataplane_died(struct sim_proc *p, void *arg)
{
	struct sim_host *h = arg;
	(void)p;
	memset(h->workers, 0, sizeof h->workers);
	if (!let_die)
		sim_after(restart_delay(), dataplane_start, h, 0);
}

static void *dataplane_main(void *arg)
{
	struct sim_host *h = arg;
	struct tn_daemon_args args = { .program = "tent-dataplane", .config_path = h->config_path };
	struct tn_config *cfg = sim_host_config(h);
	if (h->starved && cfg != NULL) /* cannot start */
		h->dataplane->alloc_countdown = sim_pick(1, 100);
	int status = cfg != NULL ? dp_daemon_run(&args, cfg) : 1;
	sim_trace("data plane %u ends with status %d", h->index, status);
	sim_exit_process();
}

static void stop_young(void *arg, uint64_t num)
{
	(void)num;
	(void)sim_signal(arg, SIGTERM);
}

static void dataplane_start(void *arg, uint64_t num)
{
	struct sim_host *h = arg;
	char name[24];
	(void)num;
	(void)snprintf(name, sizeof name, "dp%u.%u", h->index, (unsigned)++h->dataplane_starts);
	h->dataplane = sim_proc_new(h->index, name);
	h->dataplane->died = dataplane_died;
	h->dataplane->died_arg = h;
	(void)sim_spawn(h->dataplane, "", dataplane_main, h);
	if (h->dataplane_starts > 1 && !let_die && sim_chance(20)) /* asked to stop before it has started */
		sim_after(sim_pick(0, 60000), stop_young, h->dataplane, 0);
	h->starved = h->dataplane_starts > 1 && sim_trouble_starves() && sim_chance(6);
	sim_trace("start %s", name);
}

/* ---- control plane: what comes in ---- */

static struct letter *letter_new(enum cp_door door, uint64_t connection, const void *bytes, size_t len)
{
	struct letter *l = sim_calloc(1, sizeof *l + len);
	l->door = door;
	l->connection = connection;
	l->len = len;
	if (len > 0)
		memcpy(l->bytes, bytes, len);
	return l;
}

static bool mind_lives(uint32_t host)
{
	const struct sim_proc *p = sim_hosts[host].controlplane;
	return p != NULL && p->state != SIM_DEAD && minds[host].node != NULL;
}

static void put_in(struct mind *m, struct letter *l)
{
	if (!mind_lives(m->host->index)) {
		free(l);
		return;
	}
	l->next = NULL;
	*m->in_tail = l;
	m->in_tail = &l->next;
	sim_notify(m);
}

static void contact(struct mind *m, enum cp_contact what)
{
	struct letter *l = letter_new(0, 0, NULL, 0);
	l->contact = what;
	put_in(m, l);
}

static void from_link(uint32_t host, uint64_t connection, const void *bytes, size_t len)
{
	put_in(&minds[host], letter_new(CP_DOOR_LINK, connection, bytes, len));
}

void sim_host_ask(uint32_t host, const char *type, json_t *body)
{
	char text[2048];
	size_t len;
	struct tn_message m = { .id = 1, .remaining_ms = 1000, .body = body };
	(void)snprintf(m.type, sizeof m.type, "%s", type);
	if (tn_message_encode(&m, text, sizeof text, &len) == TN_OK)
		put_in(&minds[host], letter_new(CP_DOOR_BUS, 1, text, len));
	json_decref(body);
}

static const struct sim_link_ends link_ends = { .lives = mind_lives, .deliver = from_link };

static void handle(struct mind *m, struct letter *l)
{
	struct cp_input in = { .door = l->door, .peer = l->door == CP_DOOR_LINK || l->door == CP_DOOR_BUS ? CP_NO_PEER : 0, .bytes = l->bytes, .len = l->len,
			       .route = { .len = sizeof l->connection }, .address = sim_host_address(1 - m->host->index) };
	memcpy(in.route.bytes, &l->connection, sizeof l->connection);
	if (l->door == 0)
		cp_node_contact(m->node, 0, l->contact, tn_now_ns());
	else
		cp_node_input(m->node, &in, tn_now_ns());
	free(l);
}

/* ---- between control planes ---- */

struct trip { uint32_t to; uint64_t line; uint64_t sent_ns; struct letter *letter; };

static void travel(void *arg, uint64_t num);

static void send_letter(struct mind *from, uint32_t to, uint64_t line_id, uint64_t *last_ns, struct letter *l)
{
	struct trip *t = sim_calloc(1, sizeof *t);
	uint64_t at = sim.now_ns + sim_link_delay(from->host->index, to, l->len);
	*t = (struct trip){ .to = to, .line = line_id, .sent_ns = sim.now_ns, .letter = l };
	*last_ns = TN_MAX(*last_ns, at);
	sim_after(*last_ns - sim.now_ns, travel, t, 0);
}

static void line_break(struct mind *m, enum cp_contact what);

/* The line that a letter belongs to is the asker's, whichever way it goes. */
static struct call_line *line_of(const struct trip *t)
{
	return t->letter->door == CP_DOOR_SERVER ? &minds[1 - t->to].line : &minds[t->to].line;
}

static void travel(void *arg, uint64_t num)
{
	struct trip *t = arg;
	struct call_line *line = line_of(t);
	(void)num;
	if (line->id != t->line || !line->up) {
		free(t->letter);
		free(t);
	} else if (sim_link(0, 1)->cut && sim.now_ns - t->sent_ns < BREAK_NS) {
		sim_after(20 * TN_NS_PER_MS, travel, t, 0);
	} else if (sim_link(0, 1)->cut) {
		line_break(line == &minds[0].line ? &minds[0] : &minds[1], CP_CONTACT_BROKEN);
		free(t->letter);
		free(t);
	} else {
		put_in(&minds[t->to], t->letter);
		free(t);
	}
}

static void line_try(void *arg, uint64_t id)
{
	struct mind *m = arg;
	uint32_t to = 1 - m->host->index;
	if (m->line.id != id || m->line.up || !mind_lives(m->host->index))
		return;
	if (sim_link(0, 1)->cut || !mind_lives(to)) {
		if (!sim_link(0, 1)->cut)
			contact(m, CP_CONTACT_UNREACHED);
		sim_after(sim_pick(50, 1000) * TN_NS_PER_MS, line_try, m, id);
		return;
	}
	m->line.up = true;
	contact(m, CP_CONTACT_UP);
	for (struct letter *l; (l = m->line.waiting) != NULL;) {
		m->line.waiting = l->next;
		send_letter(m, to, id, &m->line.last_ns, l);
	}
	m->line.tail = &m->line.waiting;
}

static void line_drop(struct mind *m)
{
	for (struct letter *l; (l = m->line.waiting) != NULL;) {
		m->line.waiting = l->next;
		free(l);
	}
	m->line = (struct call_line){ .id = ++line_next };
	m->line.tail = &m->line.waiting;
}

static void line_open(struct mind *m)
{
	m->line.wanted = true;
	sim_after(sim_link_delay(0, 1, 0) * 2, line_try, m, m->line.id);
}

static void line_break(struct mind *m, enum cp_contact what)
{
	bool wanted = m->line.wanted;
	line_drop(m);
	contact(m, what);
	if (wanted)
		line_open(m);
}

/* ---- control plane: what goes out ---- */

static tn_status emit(void *ctx, const struct cp_output *out)
{
	struct mind *m = ctx;
	uint32_t other = 1 - m->host->index;
	uint64_t route = 0;
	if (out->door == CP_DOOR_CLIENT) {
		struct letter *l = letter_new(CP_DOOR_SERVER, m->line.id, out->bytes, out->len);
		if (!m->line.wanted)
			line_open(m);
		if (m->line.up) {
			send_letter(m, other, m->line.id, &m->line.last_ns, l);
		} else {
			*m->line.tail = l;
			m->line.tail = &l->next;
		}
		return TN_OK;
	}
	memcpy(&route, out->route->bytes, sizeof route);
	if (out->door == CP_DOOR_LINK)
		return sim_link_send(m->host->index, route, out->bytes, out->len) ? TN_OK : TN_PEER_DOWN;
	if (out->door == CP_DOOR_SERVER && minds[other].line.id == route)
		send_letter(m, other, route, &minds[other].line.last_ns, letter_new(CP_DOOR_CLIENT, route, out->bytes, out->len));
	return TN_OK;
}

static void reconnect(void *ctx, uint32_t peer)
{
	(void)peer;
	line_drop(ctx);
}

/* ---- control plane: its life ---- */

static bool engine_lives(const struct mind *m)
{
	const struct cp_link *l = &m->node->link;
	struct shr_lease_info info;
	if (shr_lease_read(m->host->runtime_dir, "dataplane", &info) != TN_OK)
		return l->attached;
	return info.held && (tn_id128_is_zero(&l->session) || tn_id128_eq(&info.session, &l->session));
}

static void *controlplane_main(void *arg)
{
	struct mind *m = arg;
	struct tn_config *others = sim_host_config(&sim_hosts[1 - m->host->index]); /* which says who we are */
	struct cp_node_cfg cfg = { .config = sim_host_config(m->host), .self = tn_config_peer(others, 0)->id,
				   .seed = sim_pick(0, UINT64_MAX), .metrics = &m->cells->rec, .emit = emit, .reconnect = reconnect,
				   .emit_ctx = m };
	if (tn_rand_id128(&cfg.control_session) != TN_OK || cp_node_new(&cfg, &m->node) != TN_OK)
		abort();
	for (;;) {
		for (struct letter *l; (l = m->in) != NULL;) {
			m->in = l->next;
			if (m->in == NULL)
				m->in_tail = &m->in;
			handle(m, l);
			sim_preempt();
		}
		cp_node_tick(m->node, tn_now_ns());
		if ((m->node->link.attached || m->node->link.silent) && !engine_lives(m))
			cp_node_link_lost(m->node, tn_now_ns());
		uint64_t next = TN_MIN(cp_node_next_ns(m->node), sim.now_ns + TICK_NS);
		if (m->in == NULL)
			(void)sim_wait((const void *const[]){ m }, 1, next);
	}
}

static void controlplane_died(struct sim_proc *p, void *arg)
{
	struct mind *m = arg, *other = &minds[1 - m->host->index];
	(void)p;
	m->node = NULL;
	m->in = NULL;
	m->in_tail = &m->in;
	line_drop(m);
	sim_link_controlplane_died(m->host->index);
	if (other->line.up)
		line_break(other, CP_CONTACT_BROKEN);
	if (!let_die)
		sim_after(restart_delay(), controlplane_start, m, 0);
}

static void controlplane_start(void *arg, uint64_t num)
{
	struct mind *m = arg;
	struct sim_host *h = m->host;
	char name[24];
	(void)num;
	(void)snprintf(name, sizeof name, "cp%u.%u", h->index, (unsigned)++h->controlplane_starts);
	m->cells = sim_malloc(sizeof *m->cells);
	cp_cells_init(m->cells, true);
	h->controlplane = sim_proc_new(h->index, name);
	h->controlplane->died = controlplane_died;
	h->controlplane->died_arg = m;
	/* The data plane that attaches to it may be short of memory right then. */
	if (h->controlplane_starts > 1 && !let_die && h->dataplane != NULL && sim_chance(3))
		h->dataplane->alloc_countdown = sim_pick(1, 80);
	(void)sim_spawn(h->controlplane, "", controlplane_main, m);
	sim_trace("start %s", name);
}

void sim_hosts_let_die(void) { let_die = true; }

void sim_hosts_start(const char *dir)
{
	sim_link_attach(&link_ends);
	for (uint32_t i = 0; i < SIM_HOSTS; i++) {
		struct sim_host *h = &sim_hosts[i];
		*h = (struct sim_host){ .index = i };
		(void)snprintf(h->runtime_dir, sizeof h->runtime_dir, "%.50s/%u", dir, i);
		(void)snprintf(h->config_path, sizeof h->config_path, "%.50s/%u.json", dir, i);
		if (mkdir(h->runtime_dir, 0700) != 0)
			abort();
		draw_cold(h);
		sim_host_write_config(h, !sim_chance(3));
		minds[i] = (struct mind){ .host = h };
		minds[i].in_tail = &minds[i].in;
		line_drop(&minds[i]);
		sim_after(sim_pick(0, 50) * TN_NS_PER_MS, dataplane_start, h, 0);
		sim_after(sim_pick(0, 50) * TN_NS_PER_MS, controlplane_start, &minds[i], 0);
	}
}
