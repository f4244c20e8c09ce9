/* SPDX-License-Identifier: Apache-2.0
 * `tentctl segment publish`: a file, or room for one, in memory under a name, as long as this process runs. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/message.h"
#include "controlplane/tentctl/infile.h"
#include "controlplane/tentctl/outfile.h"
#include "controlplane/tentctl/publication.h"

#define LOOK_NS TN_NS_PER_S /* for a data plane that will not come back; notices wake at once */

struct publish_args {
	const char *file, *output;
	uint64_t size;           /* UINT64_MAX: not given */
	bool writable;
	struct tctl_texts peers;
};

static int check_args(struct tctl *t, const struct publish_args *a, const char *name)
{
	if (!tn_name_valid(name))
		return tctl_bad_usage(
		    t, "\"%.200s\" is no segment name: 1 to 63 of A-Z a-z 0-9 . _ -, not starting with . or -", name);
	if (a->file == NULL && a->size == UINT64_MAX)
		return tctl_bad_usage(t, "say what to publish: --file FILE, or --size BYTES for an empty room");
	if (a->output != NULL && a->file != NULL && !a->writable)
		return tctl_bad_usage(t, "--output is for what others put here: it needs --writable");
	for (unsigned i = 0; i < a->peers.cnt; i++)
		if (!tn_name_valid(a->peers.item[i]))
			return tctl_bad_usage(t, "--peer %.200s: no peer name", a->peers.item[i]);
	return TCTL_OK;
}

/* Peers that the configuration does not know could never come: most likely a typing error. */
static int check_peers(struct tctl *t, const struct publish_args *a)
{
	const struct tn_config *c = tctl_config(t);
	if (c == NULL)
		return TCTL_FAILED;
	for (unsigned i = 0; i < a->peers.cnt; i++)
		if (tn_config_peer_by_name(c, a->peers.item[i]) == NULL)
			return tctl_fail(t, TN_PEER_UNKNOWN, "--peer %s: no such peer in the configuration",
					 a->peers.item[i]);
	return TCTL_OK;
}

/* Found out before anybody can put, not after the first one did. */
static int check_output(struct tctl *t, const struct publish_args *a)
{
	char err[512];
	if (a->output == NULL)
		return TCTL_OK;
	tn_status s = tctl_outfile_check(a->output, err, sizeof err);
	return s == TN_OK ? TCTL_OK : tctl_fail(t, s, "--output %s", err);
}

/* Room for the file, or the size asked for when that is more. */
static int find_capacity(struct tctl *t, const struct publish_args *a, uint64_t *capacity_out)
{
	char err[512];
	struct tctl_infile in;
	*capacity_out = a->size;
	if (a->file == NULL)
		return TCTL_OK;
	uint64_t most = a->size != UINT64_MAX ? a->size : TCTL_CAPACITY_MAX;
	tn_status s = tctl_infile_open(&in, a->file, most, err, sizeof err);
	if (s != TN_OK)
		return tctl_fail(t, s, "%s", err);
	tctl_infile_close(&in);
	if (a->size == UINT64_MAX)
		*capacity_out = in.bytes;
	return TCTL_OK;
}

/* False: whoever waits for it would wait for ever. */
static bool say_published(const struct tctl_publication *pub)
{
	char hex[TCTL_SHA256_HEX] = "";
	bool ready = pub->trailer.content == TCTL_CONTENT_READY;
	if (ready)
		tctl_sha256_hex(pub->trailer.sha256, hex);
	if (pub->t->json) {
		json_t *j = json_object();
		tn_json_put_str(j, "event", "published");
		tn_json_put_str(j, "segment", pub->name);
		tn_json_put_u64(j, "pid", (uint64_t)getpid());
		tn_json_put_bool(j, "writable", pub->writable);
		tn_json_put_u64(j, "capacity", pub->trailer.capacity);
		tn_json_put_u64(j, "bytes", pub->trailer.content_bytes);
		json_object_set_new(j, "sha256", ready ? json_string(hex) : json_null());
		tctl_print_json_line(j);
		json_decref(j);
	} else {
		printf("published %s: %s%s, %s%s%s\n", pub->name,
		       tctl_bytes_text(ready ? pub->trailer.content_bytes : pub->trailer.capacity),
		       ready ? "" : " of room", pub->writable ? "writable" : "read-only", ready ? ", sha256 " : "", hex);
	}
	return tctl_flush(pub->t);
}

static int fail_lost(struct tctl *t, const tent_note *note)
{
	if (note->status == TENT_CANCELED)
		return tctl_fail(t, TN_CANCELED, "%s was withdrawn by an operator", note->segment);
	return tctl_fail(t, (tn_status)note->status, "%s could not be published again after the data plane restarted",
			 note->segment);
}

/* Until a signal comes, or there is nothing left to serve. */
static int serve(struct tctl_publication *pub)
{
	static tent_note note = TENT_NOTE_INIT;
	tent_info info = TENT_INFO_INIT;
	int fd = tent_note_fd(pub->ctx);
	while (!tctl_stopped()) {
		while (!tctl_stopped() && tent_note_recv(pub->ctx, &note, 0) == TENT_OK) {
			if (note.kind == TENT_NOTE_SEGMENT_LOST)
				return fail_lost(pub->t, &note);
			(void)tctl_publication_on_note(pub, &note);
		}
		if (tctl_stopped())
			break;
		if (tent_query(pub->ctx, &info) != TENT_OK || info.state == TENT_STATE_DEAD)
			return tctl_fail(pub->t, TN_DATAPLANE_DOWN, "%s: the data plane of this host did not come back",
					 pub->name);
		tctl_stop_sleep(fd, LOOK_NS);
	}
	return TCTL_OK;
}

int tctl_cmd_segment_publish(struct tctl *t, int argc, char **argv)
{
	struct publish_args a = { .size = UINT64_MAX };
	const struct tctl_option options[] = {
		{ "file", 'f', TCTL_TEXT, &a.file }, { "size", '\0', TCTL_BYTES, &a.size },
		{ "writable", 'w', TCTL_FLAG, &a.writable }, { "output", 'o', TCTL_TEXT, &a.output },
		{ "peer", '\0', TCTL_TEXTS, &a.peers }, { NULL, '\0', TCTL_FLAG, NULL },
	};
	struct tctl_publication pub = { .ctx = NULL };
	uint64_t capacity;
	if (!tctl_args(t, &argc, argv, options, 1, 1))
		return t->exit_code;
	int rc = check_args(t, &a, argv[1]);
	if (rc == TCTL_OK)
		rc = check_peers(t, &a);
	if (rc == TCTL_OK)
		rc = check_output(t, &a);
	if (rc == TCTL_OK)
		rc = find_capacity(t, &a, &capacity);
	if (rc != TCTL_OK)
		return rc;
	pub.name = argv[1];
	pub.output = a.output;
	pub.writable = a.writable || a.file == NULL;
	tctl_stop_catch();
	rc = tctl_publication_open(&pub, t, capacity);
	if (rc == TCTL_OK && a.file != NULL)
		rc = tctl_publication_load(&pub, a.file);
	if (rc == TCTL_OK)
		rc = tctl_publication_publish(&pub, &a.peers);
	if (rc == TCTL_OK)
		rc = say_published(&pub) ? serve(&pub) : TCTL_FAILED;
	tctl_publication_close(&pub);
	return rc;
}
