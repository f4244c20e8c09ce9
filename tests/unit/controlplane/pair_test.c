/* SPDX-License-Identifier: Apache-2.0
 * `pause`, `resume` and `drain` go through to the data plane with what they say, and its answer comes back. */
#include <string.h>

#include "common/clock.h"
#include "tests/unit/controlplane/net.h"
#include "tests/unit/cu.h"

static void answers_come_back(void)
{
	static const char *const verbs[] = { "pause", "resume", "drain" };
	struct net *n = net_new();
	struct tn_message m;

	net_attach(n, A, 0xa1, 1);
	for (size_t i = 0; i < TN_ARRAY_LEN(verbs); i++) {
		net_bus_say(n, A, verbs[i], 9, json_pack("{s:i}", "grace_ms", 700));
		net_settle(n);
		CU_ASSERT_TRUE_FATAL(net_link_take(n, A, &m));
		CU_ASSERT_STRING_EQUAL(m.type, verbs[i]);
		CU_ASSERT_EQUAL(json_integer_value(json_object_get(m.body, "grace_ms")), 700);
		net_link_say(n, A, verbs[i], m.id, true, TN_OK, json_pack("{s:s,s:b}", "state", "some", "changed", 1));
		tn_message_clear(&m);
		m = net_bus_answer(n, A, 9, TN_OK);
		CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(m.body, "state")), "some");
		tn_message_clear(&m);
	}
	net_bus_say(n, A, "pause", 9, NULL);
	net_settle(n);
	CU_ASSERT_TRUE_FATAL(net_link_take(n, A, &m));
	net_link_say(n, A, "pause", m.id, true, TN_CLOSED, NULL);
	tn_message_clear(&m);
	m = net_bus_answer(n, A, 9, TN_CLOSED);
	CU_ASSERT_TRUE(m.detail[0] != '\0');
	tn_message_clear(&m);
	net_free(n);
}

static void without_a_data_plane(void)
{
	struct net *n = net_new();
	struct tn_message m;

	net_bus_say(n, A, "drain", 9, NULL);
	net_settle(n);
	m = net_bus_answer(n, A, 9, TN_DATAPLANE_DOWN);
	CU_ASSERT_PTR_NOT_NULL(strstr(m.detail, "no data plane of host a has attached"));
	tn_message_clear(&m);
	net_attach(n, A, 0xa1, 1);
	net_bus_say(n, A, "pause", 9, NULL); /* it says nothing: bounded by the asker's deadline */
	net_settle(n);
	CU_ASSERT_TRUE_FATAL(net_link_take(n, A, &m));
	tn_message_clear(&m);
	net_pass(n, 10 * TN_NS_PER_S);
	m = net_bus_answer(n, A, 9, TN_TIMEOUT);
	tn_message_clear(&m);
	net_free(n);
}

TN_TEST_MAIN("controlplane pair", { "answers come back", answers_come_back }, { "without a data plane", without_a_data_plane })
