/* SPDX-License-Identifier: Apache-2.0
 * Finds what somebody meant who misspelt a word: keys of the configuration, verbs and options of the command line. Pure
 * functions; any thread. */
#ifndef TN_NEAREST_H
#define TN_NEAREST_H

#include <stddef.h>

#define TN_EDIT_TEXT_MAX 128 /* longer texts are compared by this many first bytes */

/* Number of single-character edits (insert, delete, replace, swap of neighbours) between two texts. */
unsigned tn_edit_distance(const char *a, const char *b);
/* How many edits a word of this length may be away and still be called a misspelling. */
unsigned tn_edit_limit(size_t len);
/* Copies candidate to out (cut to fit) when it is nearer to word than *best edits, and makes that the new *best. Start
 * with tn_edit_limit() + 1; when it is still that at the end, nothing was near. */
void tn_keep_nearest(const char *word, const char *candidate, unsigned *best, char *out, size_t out_bytes);

#endif
