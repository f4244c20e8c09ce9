/* SPDX-License-Identifier: Apache-2.0
 * Two processes move bytes. One publishes memory under a name and waits for a notice; the other writes into it.
 *
 *   hello publish            shares 1 MiB as segment "hello", then prints what arrives in it
 *   hello move hello         writes a greeting into segment "hello" of this host
 *   hello move host-b/hello  ... of another host
 *
 * Build: cc hello.c $(pkg-config --cflags --libs tent) -o hello */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tent/tent.h>

#define BYTES (1u << 20)

static void check(tent_status status)
{
	if (status != TENT_OK) {
		fprintf(stderr, "hello: %s\n", tent_last_error()); /* where, why, what to do */
		exit(1);
	}
}

/* Waits for one completion; the data plane gives exactly one for each request and each notice. */
static void wait_for_one(tent_qp *qp)
{
	tent_completion done;
	char text[256];

	int n = tent_wait(qp, &done, 1, UINT64_MAX);
	if (n < 0)
		check((tent_status)n);
	puts(tent_completion_text(&done, text, sizeof text));
	if (done.outcome != TENT_OUTCOME_COMPLETED)
		exit(1);
}

static void publish(tent_context *ctx)
{
	tent_memory *memory;
	tent_published *published;
	tent_note note = TENT_NOTE_INIT;

	check(tent_memory_alloc(ctx, BYTES, TENT_RIGHT_REMOTE_READ | TENT_RIGHT_REMOTE_WRITE, 0, &memory));
	check(tent_segment_publish(ctx, "hello", &(tent_buffer){ .memory = memory }, 1, NULL, &published));
	check(tent_note_recv(ctx, &note, UINT64_MAX)); /* the data is there before its notice */
	printf("%.*s wrote: %s\n", (int)note.bytes, (char *)note.payload, (char *)tent_memory_addr(memory));
}

static void move(tent_context *ctx, const char *name)
{
	tent_memory *memory;
	tent_segment *segment;
	tent_qp *qp;

	check(tent_memory_alloc(ctx, BYTES, TENT_RIGHT_LOCAL, 0, &memory));
	snprintf(tent_memory_addr(memory), BYTES, "hello from another process");
	check(tent_segment_open(ctx, name, &segment));
	check(tent_qp_create(ctx, NULL, &qp)); /* one for each thread */
	tent_request write = { .opcode = TENT_WRITE, .priority = TENT_PRIORITY_MEDIUM, .memory = memory,
			       .segment = segment, .bytes = tent_memory_bytes(memory), .batch = 1 };
	check(tent_submit(qp, &write, 1, NULL));
	check(tent_notify(qp, segment, 1, "mover", 5, 0, 0)); /* leaves after batch 1 has arrived */
	wait_for_one(qp);
	wait_for_one(qp);
}

int main(int argc, char **argv)
{
	tent_context *ctx;

	check(tent_open(NULL, &ctx));
	if (argc == 3 && strcmp(argv[1], "move") == 0)
		move(ctx, argv[2]);
	else
		publish(ctx);
	check(tent_close(ctx)); /* gives back everything that is left */
	return 0;
}
