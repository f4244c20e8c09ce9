/* SPDX-License-Identifier: Apache-2.0
 * The control side under test, and an application made of bare attach messages. */
#include "tests/unit/dataplane_ctl/bench.h"

#include <CUnit/Basic.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/unit/small_tables.h"

static void must(tn_status s, const char *what)
{
	if (s == TN_OK)
		return;
	fprintf(stderr, "bench: %s: %s\n", what, tn_status_name(s));
	exit(1);
}

static struct tn_config *config_for(const char *dir, const char *const *sets)
{
	static struct tn_config_errors errors;
	char runtime_dir[96];
	const char *all[SETS_MAX] = { SMALL_TABLES, "host/name=here", runtime_dir };
	const char *const no_env[] = { "HOME=/nonexistent", NULL };
	struct tn_config *cfg = NULL;

	(void)snprintf(runtime_dir, sizeof runtime_dir, "runtime_dir=%s", dir);
	struct tn_config_opts opts = { .size = sizeof opts, .sets = all, .set_cnt = sets_append(all, sets, SETS_MAX), .env = no_env,
	                               .default_path = "/nonexistent" };
	if (tn_config_load(&opts, &cfg, &errors) != TN_OK) {
		tn_config_errors_print(&errors, stderr);
		exit(1);
	}
	return cfg;
}

void bench_start(struct bench *b, unsigned worker_cnt, const char *const *sets)
{
	char err[TN_ERR_TEXT * 2] = "";
	struct tn_config *cfg;

	memset(b, 0, sizeof *b);
	fake_reset();
	(void)snprintf(b->dir, sizeof b->dir, "/dev/shm/dpctl-XXXXXX");
	if (mkdtemp(b->dir) == NULL)
		exit(1);
	cfg = config_for(b->dir, sets);
	must(tn_rand_id128(&b->env.session), "session");
	struct shr_tele_cfg tele = { .worker_cnt = worker_cnt, .cell_cnt = TN_METRIC_CELL_CNT, .event_slots = 64,
	                             .keep_slots = 64, .session = b->env.session, .build = "test" };
	must(shr_tele_create(b->dir, &tele, &b->tele), "telemetry");
	b->env.config = cfg;
	b->env.telemetry = &b->tele;
	b->env.worker_cnt = b->worker_cnt = worker_cnt;
	struct dp_control_cfg ctl = { .config = cfg, .env = &b->env, .telemetry = &b->tele };
	must(dp_control_init(&b->ctl, &ctl), "control");
	for (unsigned i = 0; i < worker_cnt; i++) {
		must(dp_worker_new(&b->env, i, &b->workers[i]), "worker");
		must(dp_crew_add(&b->ctl.crew, b->workers[i]), "crew");
	}
	must(dp_greet_listen(&b->ctl.greet, err, sizeof err), err);
	must(dp_attach_listen(&b->ctl.attach, b->dir), "attach socket");
}

static void remove_dir(const char *dir)
{
	DIR *d = opendir(dir);
	char path[512];

	for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
		(void)snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
		(void)unlink(path);
	}
	if (d != NULL)
		closedir(d);
	(void)rmdir(dir);
}

void bench_stop(struct bench *b)
{
	dp_control_fini(&b->ctl);
	for (unsigned i = 0; i < b->worker_cnt; i++)
		dp_worker_free(b->workers[i]);
	shr_tele_close(&b->tele);
	remove_dir(b->dir);
}

void bench_turns(struct bench *b, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++) {
		dp_control_turn(&b->ctl, 1000000);
	}
}

int app_connect(struct bench *b)
{
	char path[128];
	int sock = -1;

	(void)snprintf(path, sizeof path, "%s/" DP_ATTACH_SOCKET, b->dir);
	must(shr_attach_connect(path, tn_now_ns() + 1000000000, &sock), "connect");
	bench_turns(b, 2);
	return sock;
}

tn_status app_recv(struct bench *b, int sock, struct shr_msg *m)
{
	uint64_t until_ns = tn_now_ns() + UINT64_C(5000000000);
	tn_status s;

	while ((s = shr_msg_recv(sock, SHR_FROM_DATAPLANE, m)) == TN_AGAIN && tn_now_ns() < until_ns)
		bench_turns(b, 1);
	return s == TN_AGAIN ? TN_TIMEOUT : s;
}

tn_status app_call(struct bench *b, int sock, uint16_t type, const void *body, uint32_t body_bytes, int fd,
                   struct shr_msg *reply)
{
	static struct shr_msg m;
	static uint32_t correlation;
	void *to = shr_msg_begin(&m, type, ++correlation, body_bytes);
	tn_status s;

	if (body_bytes > 0)
		memcpy(to, body, body_bytes);
	if (fd >= 0)
		m.fds[m.fd_cnt++] = fd;
	s = shr_msg_send(sock, &m);
	if (s == TN_OK)
		s = app_recv(b, sock, reply);
	if (s != TN_OK)
		return s;
	CU_ASSERT_EQUAL(reply->hdr.type, type | SHR_MSG_REPLY);
	CU_ASSERT_EQUAL(reply->hdr.correlation, correlation);
	return reply->hdr.status;
}

int app_attach(struct bench *b)
{
	struct shr_msg_hello hello = { .abi_major = SHR_ABI_MAJOR, .abi_minor = SHR_ABI_MINOR, .app = "test" };
	static struct shr_msg reply;
	int sock = app_connect(b);

	must(app_call(b, sock, SHR_MSG_HELLO, &hello, sizeof hello, -1, &reply), "hello");
	return sock;
}

int memfd_of(uint64_t bytes, bool sealable)
{
	int fd = memfd_create("test", MFD_CLOEXEC | (sealable ? MFD_ALLOW_SEALING : 0u));

	if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0)
		exit(1);
	return fd;
}

uint64_t app_register(struct bench *b, int sock, int fd, uint64_t bytes, uint32_t rights)
{
	struct shr_msg_mem_register req = { .length = bytes, .rights = rights };
	static struct shr_msg reply;

	if (app_call(b, sock, SHR_MSG_MEM_REGISTER, &req, sizeof req, fd, &reply) != TN_OK)
		return 0;
	return ((const struct shr_msg_id *)shr_msg_body_ro(&reply))->id;
}

static tn_status publish(struct bench *b, int sock, const char *name, struct shr_msg_buffer buffer, uint32_t access,
                         uint64_t *id_out)
{
	struct { struct shr_msg_publish fixed; struct shr_msg_buffer buffer; } req;
	static struct shr_msg reply;
	tn_status s;

	memset(&req, 0, sizeof req);
	(void)snprintf(req.fixed.name, sizeof req.fixed.name, "%s", name);
	req.fixed.publication.b[0] = 1;
	req.fixed.access = access;
	req.fixed.buffer_cnt = 1;
	req.buffer = buffer;
	s = app_call(b, sock, SHR_MSG_PUBLISH, &req, sizeof req, -1, &reply);
	if (s == TN_OK && id_out != NULL)
		*id_out = ((const struct shr_msg_id *)shr_msg_body_ro(&reply))->id;
	return s;
}

tn_status app_publish(struct bench *b, int sock, const char *name, uint64_t memory, uint64_t bytes, uint32_t access,
                      uint64_t *id_out)
{
	return publish(b, sock, name, (struct shr_msg_buffer){ .memory = memory, .length = bytes,
	               .rights = SHR_RIGHT_REMOTE_READ | SHR_RIGHT_REMOTE_WRITE }, access, id_out);
}

tn_status app_publish_as(struct bench *b, int sock, const char *name, uint64_t memory, uint64_t bytes, uint32_t rights)
{
	return publish(b, sock, name, (struct shr_msg_buffer){ .memory = memory, .length = bytes, .rights = rights },
	               SHR_ACCESS_SAME_UID, NULL);
}

tn_status app_open(struct bench *b, int sock, const char *ref, struct shr_msg_open_reply *out)
{
	struct shr_msg_open req = { .remaining_ns = UINT64_C(2000000000) };
	static struct shr_msg reply;
	tn_status s;

	(void)snprintf(req.ref, sizeof req.ref, "%s", ref);
	s = app_call(b, sock, SHR_MSG_OPEN, &req, sizeof req, -1, &reply);
	if (s == TN_OK && out != NULL)
		memcpy(out, shr_msg_body_ro(&reply), sizeof *out);
	return s;
}
