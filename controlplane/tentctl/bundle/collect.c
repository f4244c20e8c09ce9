/* SPDX-License-Identifier: Apache-2.0
 * Each verb runs as a process of its own, with the global options that this one was started with: one that hangs or dies
 * costs its member and nothing else. */
#include "controlplane/tentctl/bundle/collect.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "controlplane/tentctl/server.h"

#define VERB_NS (10 * TN_NS_PER_S) /* for one of them */
#define WORDS_MAX 8u
#define PEERS_EXPLAINED 8u

static const struct { const char *name, *words[WORDS_MAX]; } verbs[] = {
	{ "version.json", { "version" } },
	{ "status.json", { "status" } },
	{ "peers.json", { "peer", "list" } },
	{ "segments.json", { "segment", "list", "--count", "200" } },
	{ "config.json", { "config", "dump", "--effective" } },
	{ "doctor.json", { "doctor" } },
	{ "top.json", { "top", "--interval", "500ms" } },
	{ "verify.json", { "verify" } },
	{ "postmortem.json", { "postmortem", "--events", "300", "--spans" } },
};

static const struct { const char *name, *page; } pages[] = {
	{ "metrics.prom", "/metrics" }, { "ready.json", "/ready" }, { "diagnostics.json", "/diagnostics" },
};

/* ---- a verb ---- */

/* The child: never returns. */
static void run_verb(const struct tctl *t, const char *const *words, int out)
{
	const char *argv[16 + 2 * TCTL_TEXTS_MAX + WORDS_MAX];
	char timeout[32];
	unsigned n = 0;
	int null = open("/dev/null", O_RDWR);
	snprintf(timeout, sizeof timeout, "%lluus", (unsigned long long)(t->timeout_ns / TN_NS_PER_US));
	argv[n++] = "tentctl";
	argv[n++] = "--json";
	argv[n++] = "--timeout";
	argv[n++] = timeout;
	if (t->config_path != NULL) {
		argv[n++] = "--config";
		argv[n++] = t->config_path;
	}
	if (t->runtime_dir != NULL) {
		argv[n++] = "--runtime-dir";
		argv[n++] = t->runtime_dir;
	}
	for (unsigned i = 0; i < t->sets.cnt; i++) {
		argv[n++] = "--set";
		argv[n++] = t->sets.item[i];
	}
	for (unsigned i = 0; i < WORDS_MAX && words[i] != NULL; i++)
		argv[n++] = words[i];
	argv[n] = NULL;
	if (null >= 0 && dup2(null, 0) == 0 && dup2(out, 1) == 1 && dup2(null, 2) == 2 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0)
		execv("/proc/self/exe", (char *const *)(uintptr_t)argv);
	_exit(127);
}

static const char *reason_of(tn_status s)
{
	return s == TN_TIMEOUT ? "timed_out" : s == TN_TOO_BIG ? "too_big" : "no_answer";
}

static char *ask_verb(const struct tctl *t, const char *const *words, uint64_t deadline_ns, int *code_out, const char **why)
{
	int p[2], status = 0;
	*why = "no_answer";
	if (pipe2(p, O_CLOEXEC) != 0)
		return NULL;
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0)
		run_verb(t, words, p[1]);
	close(p[1]);
	tn_status s = TN_SYSTEM;
	char *text = pid > 0 ? tctl_read_to_end(p[0], TCTL_BUNDLE_MEMBER_BYTES,
						TN_MIN(deadline_ns, tn_deadline_after(tn_now_ns(), VERB_NS)), &s) : NULL;
	*why = reason_of(s);
	close(p[0]);
	if (pid > 0) {
		if (text == NULL)
			kill(pid, SIGKILL);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			continue;
	}
	*code_out = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	return text;
}

/* ---- members ---- */

static struct tctl_bundle_member *member_new(struct tctl_bundle *b, const char *name)
{
	struct tctl_bundle_member *m = &b->member[b->cnt++];
	*m = (struct tctl_bundle_member){ .missing = "no_answer" };
	snprintf(m->name, sizeof m->name, "%s", name);
	return m;
}

/* Takes over `text`; NULL: `why`. */
static void settle(struct tctl_bundle_member *m, char *text, const char *why, uint64_t start_ns)
{
	size_t len = strlen(m->name);
	m->missing = why;
	m->took_ns = tn_now_ns() - start_ns;
	if (text == NULL)
		return;
	if (strcmp(m->name + len - 5, ".json") != 0) {
		m->text = text;
	} else {
		m->doc = json_loads(text, 0, NULL);
		free(text);
	}
	m->missing = m->doc == NULL && m->text == NULL ? "not_json" : NULL;
}

static json_t *add_verb(const struct tctl *t, struct tctl_bundle *b, const char *name, const char *const *words,
			uint64_t deadline_ns)
{
	struct tctl_bundle_member *m = member_new(b, name);
	uint64_t start_ns = tn_now_ns();
	const char *why;
	char *text = ask_verb(t, words, deadline_ns, &m->code, &why);
	settle(m, text, why, start_ns);
	return m->doc;
}

static void add_page(struct tctl *t, struct tctl_bundle *b, const char *name, const char *page, uint64_t deadline_ns)
{
	struct tctl_bundle_member *m = member_new(b, name);
	char where[TCTL_SERVER_TEXT], err[512];
	uint64_t start_ns = tn_now_ns(), left = tn_remaining_ns(deadline_ns, start_ns);
	char *text = NULL;
	if (left > 0 && tctl_server_address(t, where, err, sizeof err) == TN_OK)
		text = tctl_page_fetch(where, page, TN_MIN(left, VERB_NS), &m->code, err, sizeof err);
	settle(m, text, "no_answer", start_ns);
}

static void explain_peers(const struct tctl *t, struct tctl_bundle *b, const json_t *peers, uint64_t deadline_ns)
{
	for (size_t i = 0; i < json_array_size(peers) && i < PEERS_EXPLAINED && !tctl_stopped(); i++) {
		const char *peer = json_string_value(json_object_get(json_array_get(peers, i), "name"));
		char name[32];
		snprintf(name, sizeof name, "explain-%zu.json", i + 1);
		if (peer != NULL)
			add_verb(t, b, name, (const char *const[WORDS_MAX]){ "explain", "--", peer }, deadline_ns);
	}
}

void tctl_bundle_collect(struct tctl *t, uint64_t deadline_ns, struct tctl_bundle *out)
{
	const json_t *peers = NULL;
	out->cnt = 0;
	for (size_t i = 0; i < TN_ARRAY_LEN(verbs) && !tctl_stopped(); i++) {
		json_t *doc = add_verb(t, out, verbs[i].name, verbs[i].words, deadline_ns);
		if (strcmp(verbs[i].name, "peers.json") == 0)
			peers = json_object_get(doc, "peers");
	}
	for (size_t i = 0; i < TN_ARRAY_LEN(pages) && !tctl_stopped(); i++)
		add_page(t, out, pages[i].name, pages[i].page, deadline_ns);
	explain_peers(t, out, peers, deadline_ns);
}

void tctl_bundle_clear(struct tctl_bundle *b)
{
	for (unsigned i = 0; i < b->cnt; i++) {
		json_decref(b->member[i].doc);
		free(b->member[i].text);
	}
	b->cnt = 0;
}
