/* SPDX-License-Identifier: Apache-2.0
 * `tentctl bundle`: everything that a bug report needs in one file, without what would tell whose hosts these are. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/message.h"
#include "common/version.h"
#include "controlplane/tentctl/bundle/archive.h"
#include "controlplane/tentctl/bundle/collect.h"
#include "controlplane/tentctl/bundle/redact.h"
#include "controlplane/tentctl/sha256.h"
#include "controlplane/tentctl/tentctl.h"

#define BUNDLE_NS (30 * TN_NS_PER_S)
#define BUNDLE_BYTES (16u << 20) /* of all members together, before they are compressed */

struct bundle {
	struct tctl *t;
	const char *path;        /* --output; or */
	char own_path[64];
	char folder[48];
	bool strict;
	struct tctl_bundle found;
	struct tctl_redactor *redactor;
	struct tctl_archive *archive;
	json_t *members, *missing;
	size_t bytes;
};

static void name_it(struct bundle *b)
{
	time_t now = time(NULL);
	struct tm tm;
	gmtime_r(&now, &tm);
	strftime(b->folder, sizeof b->folder, "tent-bundle-%Y%m%dT%H%M%SZ", &tm);
	snprintf(b->own_path, sizeof b->own_path, "%s.tar.gz", b->folder);
	if (b->path == NULL)
		b->path = b->own_path;
}

/* ---- members ---- */

static void note_missing(struct bundle *b, const char *name, const char *why)
{
	json_t *j = json_object();
	tn_json_put_str(j, "name", name);
	tn_json_put_str(j, "why", why);
	json_array_append_new(b->missing, j);
}

static int add(struct bundle *b, const char *name, const char *text, const struct tctl_bundle_member *m)
{
	uint8_t digest[TCTL_SHA256_BYTES];
	char hex[TCTL_SHA256_HEX], err[512];
	size_t n = strlen(text);
	if (b->bytes + n > BUNDLE_BYTES) {
		note_missing(b, name, "too_big");
		return TCTL_OK;
	}
	if (!tctl_sha256_of(text, n, digest))
		return tctl_fail(b->t, TN_INTERNAL, "libcrypto cannot hash");
	tn_status s = tctl_archive_add(b->archive, name, text, n, err, sizeof err);
	if (s != TN_OK)
		return tctl_fail(b->t, s, "%s", err);
	b->bytes += n;
	if (m == NULL) /* the manifest does not list itself */
		return TCTL_OK;
	json_t *j = json_object();
	tctl_sha256_hex(digest, hex);
	tn_json_put_str(j, "name", name);
	tn_json_put_u64(j, "bytes", n);
	tn_json_put_str(j, "sha256", hex);
	json_object_set_new(j, "code", json_integer(m->code));
	tn_json_put_u64(j, "took_ms", m->took_ns / TN_NS_PER_MS);
	json_array_append_new(b->members, j);
	return TCTL_OK;
}

/* The member as it may leave this host; from malloc, NULL: no memory. */
static char *redacted(const struct bundle *b, const struct tctl_bundle_member *m)
{
	if (m->text != NULL)
		return tctl_redactor_text(b->redactor, m->text);
	json_t *j = tctl_redactor_json(b->redactor, m->doc);
	char *text = j != NULL ? json_dumps(j, JSON_INDENT(1) | JSON_PRESERVE_ORDER) : NULL;
	json_decref(j);
	return text;
}

static int add_members(struct bundle *b)
{
	for (unsigned i = 0; i < b->found.cnt; i++)
		if (b->found.member[i].doc != NULL && !tctl_redactor_learn(b->redactor, b->found.member[i].doc))
			return tctl_fail(b->t, TN_LIMIT, "more than %d names: they cannot all be left out", TCTL_REDACT_NAMES_MAX);
	for (unsigned i = 0; i < b->found.cnt; i++) {
		const struct tctl_bundle_member *m = &b->found.member[i];
		if (m->missing != NULL) {
			note_missing(b, m->name, m->missing);
			continue;
		}
		char *text = redacted(b, m);
		int rc = text != NULL ? add(b, m->name, text, m) : tctl_fail(b->t, TN_NO_MEMORY, "no memory");
		free(text);
		if (rc != TCTL_OK)
			return rc;
	}
	return TCTL_OK;
}

static int add_manifest(struct bundle *b)
{
	json_t *j = json_object();
	tn_json_put_u64(j, "format", 1);
	tn_json_put_str(j, "version", TN_VERSION);
	tn_json_put_str(j, "commit", TN_COMMIT);
	tn_json_put_str(j, "redaction", b->strict ? "strict" : "default");
	json_object_set(j, "members", b->members);
	json_object_set(j, "missing", b->missing);
	char *text = json_dumps(j, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
	json_decref(j);
	int rc = text != NULL ? add(b, "manifest.json", text, NULL) : tctl_fail(b->t, TN_NO_MEMORY, "no memory");
	free(text);
	return rc;
}

/* ---- the verb ---- */

static void print(const struct bundle *b)
{
	size_t i;
	const json_t *item;
	if (b->t->json) {
		json_t *j = json_object();
		tctl_put_name(j, "file", b->path);
		tn_json_put_str(j, "redaction", b->strict ? "strict" : "default");
		json_object_set(j, "members", b->members);
		json_object_set(j, "missing", b->missing);
		tctl_print_json(j);
		json_decref(j);
		return;
	}
	printf("%s: %zu members, %s before compression, redaction %s\n", b->path, json_array_size(b->members) + 1,
	       tctl_bytes_text(b->bytes), b->strict ? "strict" : "default");
	json_array_foreach(b->missing, i, item)
		printf("missing: %s (%s)\n", tctl_text(item, "name"), tctl_text(item, "why"));
	puts("names, addresses, paths and keys were replaced; look into it before you give it away");
}

static int fill(struct bundle *b)
{
	char err[512];
	tctl_bundle_collect(b->t, tn_deadline_after(tn_now_ns(), BUNDLE_NS), &b->found);
	int rc = add_members(b);
	rc = rc == TCTL_OK ? add_manifest(b) : rc;
	if (rc == TCTL_OK && tctl_stopped())
		rc = tctl_fail(b->t, TN_CANCELED, "interrupted: no bundle was left");
	tn_status s = tctl_archive_close(b->archive, rc == TCTL_OK, err, sizeof err);
	if (rc == TCTL_OK && s != TN_OK)
		rc = tctl_fail(b->t, s, "%s", err);
	if (rc == TCTL_OK)
		print(b);
	return rc;
}

int tctl_cmd_bundle(struct tctl *t, int argc, char **argv)
{
	struct bundle *b = calloc(1, sizeof *b);
	char err[512];
	if (b == NULL)
		return tctl_fail(t, TN_NO_MEMORY, "no memory");
	b->t = t;
	const struct tctl_option options[] = {
		{ "output", 'o', TCTL_TEXT, &b->path }, { "strict", '\0', TCTL_FLAG, &b->strict },
		{ NULL, '\0', TCTL_FLAG, NULL },
	};
	int rc = TCTL_FAILED;
	if (!tctl_args(t, &argc, argv, options, 0, 0)) {
		rc = t->exit_code;
		goto out;
	}
	name_it(b);
	b->members = json_array();
	b->missing = json_array();
	b->redactor = tctl_redactor_new(b->strict ? TCTL_REDACT_STRICT : TCTL_REDACT_DEFAULT);
	if (b->redactor == NULL) {
		rc = tctl_fail(t, TN_NO_MEMORY, "no memory");
		goto out;
	}
	tctl_stop_catch();
	tn_status s = tctl_archive_open(b->path, b->folder, &b->archive, err, sizeof err);
	rc = s == TN_OK ? fill(b) : tctl_fail(t, s, "%s", err);
out:
	tctl_bundle_clear(&b->found);
	tctl_redactor_free(b->redactor);
	json_decref(b->members);
	json_decref(b->missing);
	free(b);
	return rc;
}
