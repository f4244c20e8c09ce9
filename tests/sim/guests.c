/* SPDX-License-Identifier: Apache-2.0
 * One process each, for a few seconds at most. */
#include "tests/sim/guests.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <tent/tent.h>

#include "dataplane/libtent/queue.h"
#include "shm-ring/handshake.h"
#include "tests/sim/host.h"

#define TRIES 40u

static void *stranger_main(void *arg)
{
	const struct sim_host *h = arg;
	char path[96];
	int sock;
	(void)snprintf(path, sizeof path, "%s/attach.sock", h->runtime_dir);
	if (shr_attach_connect(path, tn_now_ns() + TN_NS_PER_MS, &sock) != TN_OK)
		sim_exit_process();
	if (sim_chance(2)) {
		uint8_t noise[64];
		for (unsigned i = 0; i < sizeof noise; i++)
			noise[i] = (uint8_t)sim_pick(0, 255);
		(void)send(sock, noise, sim_pick(1, sizeof noise), MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	sim_sleep(sim_chance(4) ? sim_pick(1, 6) * TN_NS_PER_S : sim_pick(0, 50) * TN_NS_PER_MS);
	(void)close(sock);
	sim_exit_process();
}

/* Its own words only: the data plane must not believe any of them. */
static void scribble(const tent_qp *qp)
{
	uint64_t *words = (uint64_t *)(void *)qp->ring->view.qp;
	size_t cnt = sizeof *qp->ring->view.qp / sizeof *words;
	words[sim_pick(0, cnt - 1)] = sim_chance(2) ? tn_rand_u64(&sim.rand) : sim_pick(0, 4096);
	shr_doorbell_ring(qp->ring->doorbell);
}

static void *vandal_main(void *arg)
{
	const struct sim_host *h = arg;
	tent_options opt = TENT_OPTIONS_INIT;
	tent_context *ctx;
	tent_qp *qp;
	tent_completion c[8];
	opt.runtime_dir = h->runtime_dir;
	opt.app_name = "vandal";
	if (tent_open(&opt, &ctx) != TENT_OK || tent_qp_create(ctx, NULL, &qp) != TENT_OK)
		sim_exit_process();
	for (unsigned i = 0; i < TRIES && qp->ring != NULL; i++) {
		scribble(qp);
		(void)tent_poll(qp, c, 8);
		sim_sleep(sim_pick(1, 40) * TN_NS_PER_MS);
	}
	(void)tent_close(ctx);
	sim_exit_process();
}

static unsigned guest_cnt;

static void left(struct sim_proc *p, void *arg)
{
	(void)p;
	(void)arg;
	guest_cnt--;
}

bool sim_guests_gone(void) { return guest_cnt == 0; }

static void guest(uint32_t host, const char *name, void *(*main)(void *arg))
{
	struct sim_proc *p = sim_proc_new(host, name);
	p->died = left;
	guest_cnt++;
	(void)sim_spawn(p, "", main, &sim_hosts[host]);
	sim_trace("start %s on host %u", name, host);
}

void sim_stranger(uint32_t host) { guest(host, "stranger", stranger_main); }
void sim_vandal(uint32_t host) { guest(host, "vandal", vandal_main); }
