/* SPDX-License-Identifier: Apache-2.0
 * SEG and PEER of docs/protocol.md section 3: the only place where tables become JSON and JSON becomes table entries.
 * What comes in is checked like anything from outside. Control thread. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "common/addr.h"
#include "dataplane/link/wire.h"
#include "dataplane/transport/registry.h"
#include "dataplane/transport/stream/frame.h"

json_t *dp_link_segment_json(const struct dp_segment *s)
{
	json_t *j = json_object(), *peers = json_array(), *buffers = json_array();

	(void)tn_json_put_str(j, "name", s->name);
	(void)tn_json_put_u64(j, "generation", s->generation);
	(void)tn_json_put_hex128(j, "publication", &s->publication);
	(void)tn_json_put_u64(j, "bytes", s->bytes);
	(void)tn_json_put_u64(j, "access", s->access);
	(void)tn_json_put_u64(j, "uid", s->owner_uid);
	(void)tn_json_put_u64(j, "client", s->client_id);
	for (uint32_t i = 0; i < s->peer_cnt; i++)
		json_array_append_new(peers, json_string(s->peers[i]));
	for (uint32_t i = 0; i < s->buffer_cnt; i++) {
		json_t *b = json_object();
		(void)tn_json_put_u64(b, "registration", s->buffers[i].registration);
		(void)tn_json_put_u64(b, "bytes", s->buffers[i].bytes);
		(void)tn_json_put_u64(b, "rights", s->buffers[i].rights);
		json_array_append_new(buffers, b);
	}
	json_object_set_new(j, "peers", peers);
	json_object_set_new(j, "buffers", buffers);
	return j;
}

size_t dp_link_segment_text_max(const struct dp_segment *s)
{
	return 384 + (size_t)s->buffer_cnt * 96 + (size_t)s->peer_cnt * (TN_NAME_MAX + 4);
}

/* NULL: a kind that is not in this build. What its addresses look like is another version's business. */
static struct dp_endpoints *endpoints_of(struct dp_peer *peer, const char *transport)
{
	enum tn_config_key enable;

	for (unsigned kind = TN_TRANSPORT_UNSPEC + 1; kind < TN_TRANSPORT_CNT; kind++)
		if (strcmp(transport, tn_transport_name(kind)) == 0 && dp_registry_built(kind, &enable))
			return &peer->of[kind];
	return NULL;
}

static void endpoint_read(struct tn_json_in *list, const json_t *j, struct dp_peer *peer)
{
	const char *transport = "", *address = "";
	char why[TN_ERR_TEXT];
	struct tn_json_in in;
	struct tn_addr addr;

	tn_json_in_init(&in, j);
	(void)tn_json_str(&in, "transport", 32, &transport);
	(void)tn_json_str(&in, "address", TN_ADDR_TEXT, &address);
	if (in.status != TN_OK) {
		(void)tn_json_refuse(list, "endpoints", "has a malformed entry");
		return;
	}
	struct dp_endpoints *e = endpoints_of(peer, transport);
	if (e == NULL || e->cnt == DP_ENDPOINTS_MAX)
		return;
	if (tn_addr_parse(address, TN_ADDR_NEED_PORT, &addr, why) != TN_OK) {
		(void)tn_json_refuse(list, "endpoints", "has a bad address: %.80s", why);
		return;
	}
	e->at[e->cnt++] = addr.ss;
}

tn_status dp_link_peer_read(const json_t *j, struct dp_peer *out, char err[static TN_ERR_TEXT])
{
	struct dp_peer peer;
	struct tn_json_in in;
	const json_t *endpoints = NULL, *endpoint;
	size_t i;

	memset(&peer, 0, sizeof peer);
	tn_json_in_init(&in, j);
	(void)tn_json_name(&in, "name", peer.name);
	(void)tn_json_peer_id(&in, "id", &peer.id);
	(void)tn_json_hex128(&in, "session", &peer.session);
	(void)tn_json_hex128(&in, "ticket", &peer.ticket);
	(void)tn_json_u32(&in, "frame_bytes", DP_FRAME_BYTES_MIN, DP_FRAME_BYTES_MAX, &peer.frame_bytes);
	(void)tn_json_array(&in, "endpoints", 64, &endpoints);
	if (in.status == TN_OK)
		json_array_foreach(endpoints, i, endpoint)
			endpoint_read(&in, endpoint, &peer);
	if (in.status == TN_OK && (tn_id128_is_zero(&peer.session) || tn_id128_is_zero(&peer.ticket)))
		(void)tn_json_refuse(&in, "session", "or ticket is zero");
	if (in.status == TN_OK)
		*out = peer;
	else
		memcpy(err, in.err, TN_ERR_TEXT);
	explicit_bzero(&peer, sizeof peer);
	return in.status;
}

static void buffer_read(struct tn_json_in *list, const json_t *j, uint64_t *segment_off, struct dp_remote_buffer *out)
{
	struct tn_json_in in;

	tn_json_in_init(&in, j);
	(void)tn_json_u64(&in, "registration", 1, UINT64_MAX, &out->registration);
	(void)tn_json_u64(&in, "bytes", 1, INT64_MAX, &out->bytes);
	(void)tn_json_u32(&in, "rights", 0, SHR_RIGHT_ALL, &out->rights);
	if (in.status != TN_OK || out->bytes > INT64_MAX - *segment_off) {
		(void)tn_json_refuse(list, "buffers", "has a malformed entry: %.80s", in.err);
		return;
	}
	out->segment_off = *segment_off;
	*segment_off += out->bytes;
}

tn_status dp_link_remote_read(const json_t *j, const struct tn_id128 *session, struct dp_remote **out,
                              char err[static TN_ERR_TEXT])
{
	const json_t *buffers = NULL;
	uint64_t generation = 0, bytes = 0, segment_off = 0;
	struct tn_id128 publication;
	struct dp_remote *r = NULL;
	struct tn_json_in in;

	tn_json_in_init(&in, j);
	(void)tn_json_u64(&in, "generation", 1, UINT64_MAX, &generation);
	(void)tn_json_hex128(&in, "publication", &publication);
	(void)tn_json_u64(&in, "bytes", 1, INT64_MAX, &bytes);
	(void)tn_json_array(&in, "buffers", SHR_SEGMENT_BUFFERS_MAX, &buffers);
	if (in.status == TN_OK) {
		uint32_t cnt = (uint32_t)json_array_size(buffers);
		r = calloc(1, sizeof *r + cnt * sizeof(struct dp_remote_buffer));
		if (r == NULL)
			return TN_NO_MEMORY;
		r->session = *session;
		r->generation = generation;
		r->publication = publication;
		r->bytes = bytes;
		r->buffer_cnt = cnt;
		for (uint32_t i = 0; i < cnt; i++)
			buffer_read(&in, json_array_get(buffers, i), &segment_off, &r->buffers[i]);
		if (in.status == TN_OK && (cnt == 0 || segment_off != bytes))
			(void)tn_json_refuse(&in, "buffers", "do not add up to the segment");
	}
	if (in.status != TN_OK) {
		memcpy(err, in.err, TN_ERR_TEXT);
		free(r);
		return in.status;
	}
	*out = r;
	return TN_OK;
}
