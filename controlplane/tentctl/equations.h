/* SPDX-License-Identifier: Apache-2.0
 * The equations that hold between counters of one host (design contract section 4), as a table, and their check on
 * parsed samples. Pure. */
#ifndef TCTL_EQUATIONS_H
#define TCTL_EQUATIONS_H

#include "controlplane/tentctl/samples.h"

enum { TCTL_EQUATION_TERMS = 10 };

struct tctl_term {
	int side;            /* +1: left, -1: right; 2 and -2: subtracted there */
	const char *family;
	const char *label;   /* "outcome=failed": only these series; NULL: all */
};

struct tctl_equation {
	const char *number, *text;
	const char *by[2];   /* holds for each value of these labels; NULL: one sum over all */
	bool at_most;        /* left <= right instead of left = right */
	struct tctl_term terms[TCTL_EQUATION_TERMS]; /* ends with a NULL family */
};
extern const struct tctl_equation tctl_equations[]; /* ends with a NULL number */

/* One instance of an equation: for one group of label values. */
struct tctl_balance {
	const struct tctl_equation *equation;
	char group[96];      /* "operation=read"; "" for the whole */
	int64_t left, right;
	bool holds;
};

/* Fills up to `cap` balances and returns their number. An equation none of whose families are there gives none. */
size_t tctl_equations_check(const struct tctl_samples *s, struct tctl_balance *out, size_t cap);

#endif
