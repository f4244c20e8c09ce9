/* SPDX-License-Identifier: Apache-2.0
 * Model of the SPSC rings (shm-ring/spsc.h, mailbox.c): every value arrives once, whole and in order, for any delay of
 * stores that release and acquire allow. Stores leave their thread through a buffer that process `memory` empties in
 * any order; a release store leaves only after the older stores that it covers. Indices wrap at MOD.
 *
 * Variants that must fail (an assertion or a hang), one per ordering that the code asks for:
 *   WEAK_PUBLISH   tail without release [R1/R3/X1]: the index may overtake the entry
 *   WEAK_PEEK      tail without acquire [R1/R3/X1]: the entry may be read before the index
 *   WEAK_RELEASE   head without release [R2/R4/X2]: the slot may be handed back before it is read
 *   WEAK_SPACE     head without acquire [R2/R4/X2]: the slot may be written before the head that frees it was read */
#ifndef VALUES
#define VALUES 7
#endif
#define ENTRIES 2
#define MOD 4 /* free-running index, a multiple of ENTRIES larger than it, as 2^32 is */
#define DIST(a, b) ((a + MOD - b) % MOD)

byte slot[ENTRIES];              /* shared memory */
byte tail, head;

byte out_slot[ENTRIES];          /* stores on their way */
bool out_slot_set[ENTRIES];
byte out_tail;
bool out_tail_set;
bool tail_covers[ENTRIES];       /* slot stores that the pending release of tail must wait for */
byte out_head;
bool out_head_set;

active proctype memory()
{
end:
	do
	:: d_step { out_slot_set[0] -> slot[0] = out_slot[0]; out_slot_set[0] = false; tail_covers[0] = false }
	:: d_step { out_slot_set[1] -> slot[1] = out_slot[1]; out_slot_set[1] = false; tail_covers[1] = false }
#ifdef WEAK_PUBLISH
	:: d_step { out_tail_set -> tail = out_tail; out_tail_set = false }
#else
	:: d_step { out_tail_set && !tail_covers[0] && !tail_covers[1] -> tail = out_tail; out_tail_set = false }
#endif
	:: d_step { out_head_set -> head = out_head; out_head_set = false }
	od
}

active proctype producer()
{
	byte mine = 0, seen = 0, published = 0, n = 0;
	do
	:: n < VALUES && DIST(mine, seen) < ENTRIES -> /* put */
		d_step {
			out_slot[mine % ENTRIES] = n;
			out_slot_set[mine % ENTRIES] = true;
			mine = (mine + 1) % MOD;
			n++
		}
	:: mine != published -> /* publish what was put so far: one entry or a batch */
		d_step {
			out_tail = mine;
			out_tail_set = true;
			tail_covers[0] = out_slot_set[0];
			tail_covers[1] = out_slot_set[1];
			published = mine
		}
	:: n < VALUES && mine == published && DIST(mine, seen) == ENTRIES -> /* full: look at the peer's line */
#ifdef WEAK_SPACE
		/* The store to the slot is executed before the load of head that allows it. */
		d_step { out_slot[mine % ENTRIES] = n; out_slot_set[mine % ENTRIES] = true }
#endif
		head != seen;
		seen = head
	:: n == VALUES && mine == published -> break
	od
}

active proctype consumer()
{
	byte mine = 0, seen = 0, got = 0, v;
	do
	:: got < VALUES ->
#ifdef WEAK_PEEK
		v = slot[mine % ENTRIES]; /* the load that should follow the index is done first */
#endif
		if
		:: seen == mine ->
			tail != mine; /* polls until there is something */
			seen = tail;
			assert(DIST(seen, mine) <= ENTRIES)
		:: else -> skip
		fi;
#ifdef WEAK_RELEASE
		d_step { out_head = (mine + 1) % MOD; out_head_set = true } /* hands the slot back, then reads it */
		v = slot[mine % ENTRIES];
#else
#ifndef WEAK_PEEK
		v = slot[mine % ENTRIES];
#endif
		d_step { out_head = (mine + 1) % MOD; out_head_set = true }
#endif
		assert(v == got);
		mine = (mine + 1) % MOD;
		got++
	:: else -> break
	od
}
