/* SPDX-License-Identifier: Apache-2.0
 * `config_reload` through the control plane: its own report and the data plane's beside it, and what is said when one of
 * the two cannot. */
#include <string.h>

#include "common/clock.h"
#include "tests/unit/controlplane/net.h"
#include "tests/unit/cu.h"

static unsigned reloads;

static json_t *own_report(void *ctx)
{
	reloads++;
	return json_pack("{s:I,s:s}", "generation", (json_int_t)(intptr_t)ctx, "who", "control plane");
}

static struct net *start(void)
{
	struct net *n = net_new();
	reloads = 0;
	n->host[A].node->reload = own_report;
	n->host[A].node->reload_ctx = (void *)(intptr_t)7;
	return n;
}

static void ask(struct net *n)
{
	net_bus_say(n, A, "config_reload", 9, NULL);
	net_settle(n);
}

static uint64_t generation_of(const struct tn_message *m, const char *daemon)
{
	return (uint64_t)json_integer_value(json_object_get(json_object_get(m->body, daemon), "generation"));
}

static const char *dp_error(const struct tn_message *m)
{
	const char *s = json_string_value(json_object_get(m->body, "data_plane_error"));
	return s != NULL ? s : "";
}

static struct tn_message question(struct net *n)
{
	struct tn_message m;
	CU_ASSERT_TRUE_FATAL(net_link_take(n, A, &m));
	CU_ASSERT_STRING_EQUAL_FATAL(m.type, "reload");
	return m;
}

static void both_answer(void)
{
	struct net *n = start();
	net_attach(n, A, 0xa1, 1);
	ask(n);
	CU_ASSERT_EQUAL(reloads, 1);
	struct tn_message m = question(n);
	net_link_say(n, A, "reload", m.id, true, TN_OK, json_pack("{s:i}", "generation", 3));
	tn_message_clear(&m);
	m = net_bus_answer(n, A, 9, TN_OK);
	CU_ASSERT_EQUAL(generation_of(&m, "control_plane"), 7);
	CU_ASSERT_EQUAL(generation_of(&m, "data_plane"), 3);
	CU_ASSERT_STRING_EQUAL(dp_error(&m), "");
	tn_message_clear(&m);
	net_free(n);
}

/* Its own reload happened all the same, and is told. */
static void without_the_data_plane(void)
{
	struct net *n = start();
	ask(n);
	struct tn_message m = net_bus_answer(n, A, 9, TN_OK);
	CU_ASSERT_EQUAL(generation_of(&m, "control_plane"), 7);
	CU_ASSERT_TRUE(json_is_null(json_object_get(m.body, "data_plane")));
	CU_ASSERT_PTR_NOT_NULL(strstr(dp_error(&m), "no data plane of host a has attached"));
	tn_message_clear(&m);
	net_attach(n, A, 0xa1, 1);
	ask(n);
	m = question(n);
	net_link_say(n, A, "reload", m.id, true, TN_AGAIN, NULL);
	tn_message_clear(&m);
	m = net_bus_answer(n, A, 9, TN_OK);
	CU_ASSERT_TRUE(json_is_null(json_object_get(m.body, "data_plane")) && dp_error(&m)[0] != '\0');
	tn_message_clear(&m);
	ask(n); /* it says nothing: bounded by the asker's deadline */
	m = question(n);
	tn_message_clear(&m);
	net_pass(n, 10 * TN_NS_PER_S);
	m = net_bus_answer(n, A, 9, TN_OK);
	CU_ASSERT_TRUE(dp_error(&m)[0] != '\0');
	tn_message_clear(&m);
	CU_ASSERT_EQUAL(reloads, 3);
	net_free(n);
}

static void who_cannot_says_so(void)
{
	struct net *n = start();
	net_attach(n, A, 0xa1, 1);
	n->host[A].node->reload = NULL;
	ask(n);
	struct tn_message m = net_bus_answer(n, A, 9, TN_UNSUPPORTED);
	tn_message_clear(&m);
	CU_ASSERT_FALSE(net_link_take(n, A, &m));
	net_free(n);
}

TN_TEST_MAIN("controlplane reload", { "both answer", both_answer },
	     { "without the data plane", without_the_data_plane },
	     { "who cannot says so", who_cannot_says_so })
