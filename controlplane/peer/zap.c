/* SPDX-License-Identifier: Apache-2.0
 * The ZAP handler. A request is version, request id, domain, address, identity, mechanism, credentials...; the answer is
 * version, request id, status code, status text, user id, metadata. CURVE: the credential is the client's 32-byte key.
 * NULL (control/insecure on loopback only): the claimed routing id is the peer's name. */
#include "controlplane/peer/zap.h"

#include <stdio.h>
#include <string.h>

#include <zmq.h>

#include "common/clock.h"
#include "common/log.h"
#include "controlplane/peer/keys.h"

enum { Z_VERSION, Z_ID, Z_DOMAIN, Z_ADDRESS, Z_IDENTITY, Z_MECHANISM, Z_CREDENTIAL, Z_CNT };
#define FRAME_MAX 255u
#define TELL_AGAIN_NS (60 * TN_NS_PER_S)

struct frames { uint8_t bytes[Z_CNT][FRAME_MAX + 1]; size_t len[Z_CNT]; int cnt; bool bad; };

tn_status cp_zap_bind(void *zmq_context, void **socket_out)
{
	void *s = zmq_socket(zmq_context, ZMQ_ROUTER);
	int linger = 0;
	if (s == NULL)
		return TN_SYSTEM;
	zmq_setsockopt(s, ZMQ_LINGER, &linger, sizeof linger);
	if (zmq_bind(s, "inproc://zeromq.zap.01") != 0) {
		zmq_close(s);
		return TN_SYSTEM;
	}
	*socket_out = s;
	return TN_OK;
}

static bool is(const struct frames *f, int i, const char *text)
{
	return i < f->cnt && f->len[i] == strlen(text) && memcmp(f->bytes[i], text, f->len[i]) == 0;
}

/* Index of the peer that these credentials prove, or -1. */
static long admit(const struct frames *f, const struct tn_config *config)
{
	bool insecure = tn_config_bool(config, TN_CFG_CONTROL_INSECURE);
	if (f->bad || f->cnt < Z_CREDENTIAL || !is(f, Z_VERSION, "1.0"))
		return -1;
	for (unsigned i = 0; i < tn_config_peer_cnt(config); i++) {
		const struct tn_config_peer *p = tn_config_peer(config, i);
		if (!insecure && is(f, Z_MECHANISM, "CURVE") && f->cnt > Z_CREDENTIAL && f->len[Z_CREDENTIAL] == sizeof p->id &&
		    !tn_peer_id_is_zero(&p->id) && memcmp(f->bytes[Z_CREDENTIAL], p->id.b, sizeof p->id) == 0)
			return (long)i;
		if (insecure && is(f, Z_MECHANISM, "NULL") && is(f, Z_IDENTITY, p->name))
			return (long)i;
	}
	return -1;
}

static void send(void *s, const void *bytes, size_t len, int flags)
{
	(void)zmq_send(s, bytes, len, flags | ZMQ_DONTWAIT);
}

static void answer(void *s, const uint8_t *route, size_t route_len, const struct frames *f, long peer)
{
	char user[16] = "";
	if (peer >= 0)
		snprintf(user, sizeof user, "%ld", peer);
	send(s, route, route_len, ZMQ_SNDMORE);
	send(s, "", 0, ZMQ_SNDMORE);
	send(s, "1.0", 3, ZMQ_SNDMORE);
	send(s, f->bytes[Z_ID], f->len[Z_ID], ZMQ_SNDMORE);
	send(s, peer >= 0 ? "200" : "400", 3, ZMQ_SNDMORE);
	send(s, peer >= 0 ? "OK" : "unknown key", peer >= 0 ? 2 : 11, ZMQ_SNDMORE);
	send(s, user, strlen(user), ZMQ_SNDMORE);
	send(s, "", 0, 0);
}

/* route, empty delimiter, then the frames of one request. False when none waits. */
static bool receive(void *s, uint8_t route[FRAME_MAX + 1], size_t *route_len, struct frames *f)
{
	int more = 1;
	memset(f, 0, sizeof *f);
	for (int n = 0; more; n++) {
		uint8_t drop[FRAME_MAX + 1];
		uint8_t *to = n == 0 ? route : n == 1 || f->cnt == Z_CNT ? drop : f->bytes[f->cnt];
		int got = zmq_recv(s, to, FRAME_MAX, n == 0 ? ZMQ_DONTWAIT : 0);
		size_t opt = sizeof more;
		if (got < 0)
			return false;
		f->bad |= (size_t)got > FRAME_MAX;
		if (n == 0)
			*route_len = TN_MIN((size_t)got, FRAME_MAX);
		else if (n > 1 && f->cnt < Z_CNT)
			f->len[f->cnt++] = TN_MIN((size_t)got, FRAME_MAX);
		zmq_getsockopt(s, ZMQ_RCVMORE, &more, &opt);
	}
	return true;
}

/* A refused host tries again each second: told once per key and address, and again each minute. */
static void tell_refusal(const struct frames *f)
{
	static struct { uint8_t key[32], address[64]; uint64_t at_ns; } told;
	static const char mapped[] = "::ffff:"; /* an IPv4 address as a dual-stack socket has it */
	const char *from = (const char *)f->bytes[Z_ADDRESS];
	uint8_t key[sizeof told.key] = { 0 }, address[sizeof told.address] = { 0 };
	struct tn_peer_id id;
	char text[CP_KEY_TEXT] = "(none)";
	uint64_t now_ns = tn_now_ns();
	bool has_key = f->cnt > Z_CREDENTIAL && f->len[Z_CREDENTIAL] == sizeof key && is(f, Z_MECHANISM, "CURVE");
	if (has_key)
		memcpy(key, f->bytes[Z_CREDENTIAL], sizeof key);
	memcpy(address, from, TN_MIN(f->len[Z_ADDRESS], sizeof address - 1));
	if (told.at_ns != 0 && now_ns - told.at_ns < TELL_AGAIN_NS && memcmp(told.key, key, sizeof key) == 0 &&
	    memcmp(told.address, address, sizeof address) == 0)
		return;
	memcpy(told.key, key, sizeof key);
	memcpy(told.address, address, sizeof address);
	told.at_ns = now_ns;
	memcpy(id.b, key, sizeof id.b);
	if (has_key)
		cp_keys_public_text(&id, text);
	from += strncmp(from, mapped, sizeof mapped - 1) == 0 ? sizeof mapped - 1 : 0;
	tn_log_warn("peer", "refused a control connection from %s: its public key %s is not in peers (tentctl keygen --show "
		    "there prints what belongs here)", from, text);
}

bool cp_zap_serve(void *socket, const struct tn_config *config)
{
	uint8_t route[FRAME_MAX + 1];
	size_t route_len;
	struct frames f;
	for (int i = 0; i < 64; i++) {
		if (!receive(socket, route, &route_len, &f))
			return false;
		long peer = admit(&f, config);
		if (peer < 0)
			tell_refusal(&f);
		answer(socket, route, route_len, &f, peer);
	}
	return true;
}
