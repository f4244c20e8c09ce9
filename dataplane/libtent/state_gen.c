/* SPDX-License-Identifier: Apache-2.0
 * Prints libtent's part of docs/state-machines.md from states.h, in the form of dataplane/request/state_gen.c. Host
 * program of the build; target state_docs writes the page, the test check.state_docs_fresh compares it. */
#include <stdio.h>

#include "common/compiler.h"
#include "dataplane/libtent/states.h"

struct move { uint8_t from, to; const char *when; };

#define NAME(name, text) #text,
static const char *const context_names[] = { LT_CONTEXT_STATES(NAME) };
static const char *const object_names[] = { LT_OBJECT_STATES(NAME) };
static const char *const slot_names[] = { LT_SLOT_STATES(NAME) };
#define X(from, to, when) { LT_CONTEXT_##from, LT_CONTEXT_##to, when },
static const struct move context_moves[] = { LT_CONTEXT_MOVES(X) };
#undef X
#define X(from, to, when) { LT_OBJECT_##from, LT_OBJECT_##to, when },
static const struct move object_moves[] = { LT_OBJECT_MOVES(X) };
#undef X
#define X(from, to, when) { LT_SLOT_##from, LT_SLOT_##to, when },
static const struct move slot_moves[] = { LT_SLOT_MOVES(X) };
#undef X

static void print_machine(const char *name, const char *what, const char *const *names, const struct move *moves,
			  size_t cnt)
{
	printf("\n## %s\n\n%s\n\n```mermaid\nstateDiagram-v2\n", name, what);
	for (size_t i = 0; i < cnt; i++)
		printf("\t%s --> %s\n", moves[i].from ? names[moves[i].from] : "[*]",
		       moves[i].to ? names[moves[i].to] : "[*]");
	printf("```\n\n| from | to | when |\n|---|---|---|\n");
	for (size_t i = 0; i < cnt; i++)
		printf("| %s | %s | %s |\n", names[moves[i].from], names[moves[i].to], moves[i].when);
}

int main(void)
{
	print_machine("libtent context", "An application's attachment to the data plane of its host.", context_names,
		      context_moves, TN_ARRAY_LEN(context_moves));
	print_machine("libtent object", "A memory, a published or an opened segment, on the application's side.",
		      object_names, object_moves, TN_ARRAY_LEN(object_moves));
	print_machine("libtent slot", "A request or notice in the application's shadow of what is outstanding.",
		      slot_names, slot_moves, TN_ARRAY_LEN(slot_moves));
	return ferror(stdout) || fflush(stdout) != 0;
}
