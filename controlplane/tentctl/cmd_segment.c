/* SPDX-License-Identifier: Apache-2.0
 * `tentctl segment list|show|withdraw`: what the control plane knows of the segments of this host. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/message.h"
#include "controlplane/tentctl/tentctl.h"
#include "shm-ring/abi.h"

static const char *access_text(const json_t *seg, char *out, size_t out_bytes)
{
	uint64_t bits = tctl_u64(seg, "access");
	const char *here = (bits & SHR_ACCESS_LOCAL_ALL) != 0 ? "everybody here" :
			   (bits & SHR_ACCESS_SAME_UID) != 0 ? "same user" : "nobody here";
	const json_t *peers = json_object_get(seg, "peers");
	size_t i, at;
	json_t *peer;
	snprintf(out, out_bytes, "%s", here);
	if ((bits & SHR_ACCESS_PEERS) == 0)
		return out;
	at = strlen(out);
	snprintf(out + at, out_bytes - at, json_array_size(peers) == 0 ? ", all peers" : ", peers ");
	json_array_foreach(peers, i, peer) {
		at = strlen(out);
		snprintf(out + at, out_bytes - at, "%s%s", i > 0 ? "," : "",
			 json_is_string(peer) ? json_string_value(peer) : "?");
	}
	return out;
}

static const char *rights_text(uint64_t rights)
{
	bool r = (rights & SHR_RIGHT_REMOTE_READ) != 0, w = (rights & SHR_RIGHT_REMOTE_WRITE) != 0;
	return r && w ? "read, write" : r ? "read" : w ? "write" : "none";
}

/* Of all buffers together. */
static uint64_t all_rights(const json_t *seg)
{
	size_t i;
	json_t *b;
	uint64_t rights = 0;
	json_array_foreach(json_object_get(seg, "buffers"), i, b)
		rights |= tctl_u64(b, "rights");
	return rights;
}

static void print_list(const json_t *list, uint64_t total)
{
	static const char *const headings[] = { "NAME", "SIZE", "BUFFERS", "RIGHTS", "FOR", "GENERATION", "UID" };
	struct tctl_table *tb = tctl_table_new(TN_ARRAY_LEN(headings), headings);
	size_t i;
	json_t *seg;
	json_array_foreach(list, i, seg) {
		char access[256], buffers[24];
		snprintf(buffers, sizeof buffers, "%zu", json_array_size(json_object_get(seg, "buffers")));
		tctl_table_row(tb, (const char *[]){tctl_text(seg, "name"), tctl_bytes_text(tctl_u64(seg, "bytes")),
						    buffers, rights_text(all_rights(seg)),
						    access_text(seg, access, sizeof access),
						    tctl_text(seg, "generation"), tctl_text(seg, "uid")});
	}
	if (json_array_size(list) > 0)
		tctl_table_print(tb, stdout);
	tctl_table_free(tb);
	if (total == 0)
		puts("no segment is published on this host");
	else if (json_array_size(list) < total)
		printf("%zu of %" PRIu64 "\n", json_array_size(list), total);
}

int tctl_cmd_segment_list(struct tctl *t, int argc, char **argv)
{
	uint64_t first = 0, count = UINT64_MAX, total = 0;
	const struct tctl_option options[] = {
	    {"first", '\0', TCTL_COUNT, &first},
	    {"count", '\0', TCTL_COUNT, &count},
	    {NULL, '\0', TCTL_FLAG, NULL},
	};
	if (!tctl_args(t, &argc, argv, options, 0, 0))
		return t->exit_code;
	if (first > UINT32_MAX || count == 0)
		return tctl_bad_usage(t, "--first counts from 0 to 4294967295, --count from 1");
	json_t *all = json_array();
	int rc = tctl_collect(t, "segment_list", "segments", first, count, all, &total);
	if (rc == TCTL_OK && t->json) {
		json_t *j = json_object();
		json_object_set(j, "segments", all);
		tn_json_put_u64(j, "total", total);
		tctl_print_json(j);
		json_decref(j);
	} else if (rc == TCTL_OK) {
		print_list(all, total);
	}
	json_decref(all);
	return rc;
}

static void print_segment(const json_t *seg)
{
	static const char *const headings[] = { "BUFFER", "OFFSET", "SIZE", "RIGHTS" };
	struct tctl_table *tb = tctl_table_new(TN_ARRAY_LEN(headings), headings);
	char access[256];
	size_t i;
	json_t *b;
	uint64_t offset = 0;
	printf("name        %s\n", tctl_text(seg, "name"));
	printf("size        %s (%s bytes)\n", tctl_bytes_text(tctl_u64(seg, "bytes")), tctl_text(seg, "bytes"));
	printf("for         %s\n", access_text(seg, access, sizeof access));
	printf("generation  %s\n", tctl_text(seg, "generation"));
	printf("owner       client %s of uid %s\n\n", tctl_text(seg, "client"), tctl_text(seg, "uid"));
	json_array_foreach(json_object_get(seg, "buffers"), i, b) {
		char number[24], at[24];
		snprintf(number, sizeof number, "%zu", i);
		snprintf(at, sizeof at, "%" PRIu64, offset);
		tctl_table_row(tb, (const char *[]){ number, at, tctl_bytes_text(tctl_u64(b, "bytes")),
						     rights_text(tctl_u64(b, "rights")) });
		offset += tctl_u64(b, "bytes");
	}
	tctl_table_print(tb, stdout);
	tctl_table_free(tb);
}

/* The one argument of show and withdraw. */
static bool name_arg(struct tctl *t, int argc, char **argv, json_t **body_out)
{
	if (!tctl_args(t, &argc, argv, NULL, 1, 1))
		return false;
	if (!tn_name_valid(argv[1])) {
		t->exit_code = tctl_bad_usage(
		    t, "\"%.200s\" is no segment name: 1 to 63 of A-Z a-z 0-9 . _ -%s", argv[1],
		    strchr(argv[1], '/') != NULL ? " (only segments of this host can be asked for)" : "");
		return false;
	}
	*body_out = json_object();
	tn_json_put_str(*body_out, "name", argv[1]);
	return true;
}

int tctl_cmd_segment_show(struct tctl *t, int argc, char **argv)
{
	json_t *body, *answer;
	if (!name_arg(t, argc, argv, &body))
		return t->exit_code;
	if (tctl_ask(t, "segment_show", body, &answer) != TCTL_OK)
		return TCTL_FAILED;
	if (t->json)
		tctl_print_json(answer);
	else
		print_segment(json_object_get(answer, "segment"));
	json_decref(answer);
	return TCTL_OK;
}

int tctl_cmd_segment_withdraw(struct tctl *t, int argc, char **argv)
{
	json_t *body, *answer;
	if (!name_arg(t, argc, argv, &body))
		return t->exit_code;
	json_t *name = json_incref(json_object_get(body, "name"));
	int rc = tctl_ask(t, "segment_withdraw", body, &answer);
	if (rc == TCTL_OK && t->json) {
		json_t *j = json_object();
		json_object_set(j, "withdrawn", name);
		tctl_print_json(j);
		json_decref(j);
	} else if (rc == TCTL_OK) {
		printf("withdrawn %s\n", json_string_value(name));
	}
	if (rc == TCTL_OK)
		json_decref(answer);
	json_decref(name);
	return rc;
}
