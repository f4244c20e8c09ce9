/* SPDX-License-Identifier: Apache-2.0
 * What of this host may stand in a bundle that is given to strangers. The names of hosts, peers, segments and policies and
 * the words of their addresses are learned from the documents themselves; wherever one of them stands as a word, also in the
 * middle of a sentence, a token takes its place ("peer-1"), the same one in all documents. Numeric addresses, absolute paths,
 * keys and long ids go by their form. Pure; one thread. */
#ifndef TCTL_BUNDLE_REDACT_H
#define TCTL_BUNDLE_REDACT_H

#include <jansson.h>
#include <stdbool.h>

enum { TCTL_REDACT_NAMES_MAX = 4096 };

enum tctl_redact_mode {
	TCTL_REDACT_DEFAULT, /* trace ids and sentences stay */
	TCTL_REDACT_STRICT   /* they do not, nor process and user numbers */
};

struct tctl_redactor; /* opaque */

/* NULL: no memory. */
struct tctl_redactor *tctl_redactor_new(enum tctl_redact_mode mode);
void tctl_redactor_free(struct tctl_redactor *r);
/* Remember the names in a document; of all documents, before the first is rewritten. False: no memory, or more than
 * TCTL_REDACT_NAMES_MAX: then nothing may be handed out. */
bool tctl_redactor_learn(struct tctl_redactor *r, const json_t *doc);
/* The document without them: a new reference. NULL: no memory. */
json_t *tctl_redactor_json(const struct tctl_redactor *r, const json_t *doc);
/* Text of any kind, from malloc. NULL: no memory. */
char *tctl_redactor_text(const struct tctl_redactor *r, const char *text);

#endif
