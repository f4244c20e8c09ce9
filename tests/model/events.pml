/* SPDX-License-Identifier: Apache-2.0
 * Model of the event ring (shm-ring/events.c): the reader never returns a record mixed from two, and a record below the
 * tail is missed only because it was overwritten. One slot, two payload words; record n has the value n + 1 in each. Stores
 * of one word arrive in order; stores of different words in any order that the writer's fences allow. The even seq and
 * the first look at seq are relaxed: the model holds without them, because the tail orders both.
 *
 * Variants that must fail, one per ordering at [E1] and [E2]:
 *   WEAK_ODD    no release fence behind the odd seq: a word of the new record may arrive before it
 *   WEAK_TAIL   tail without release: it may arrive before the even seq
 *   WEAK_AGAIN  no acquire fence: seq may be read for the second time before the words
 *   WEAK_SEEN   tail without acquire: seq may be read before it */
#ifndef RECORDS
#define RECORDS 3
#endif
#define WHOLE(n) (2 * ((n) + 1))

byte seq, a, b, tail;             /* shared memory */
chan seq_buf = [4] of { byte };   /* stores on their way */
chan a_buf = [3] of { byte };
chan b_buf = [3] of { byte };
chan tail_buf = [3] of { byte };

#ifdef WEAK_ODD
#define WORD_MAY_ARRIVE(v) true
#else
#define WORD_MAY_ARRIVE(v) (seq >= WHOLE((v) - 1) - 1)
#endif
#ifdef WEAK_TAIL
#define TAIL_MAY_ARRIVE(v) true
#else
#define TAIL_MAY_ARRIVE(v) (seq >= WHOLE((v) - 1) && a >= v && b >= v)
#endif

active proctype writer()
{
	byte n = 0;
	do
	:: n < RECORDS ->
		seq_buf!(WHOLE(n) - 1);
		if
		:: a_buf!(n + 1); b_buf!(n + 1)
		:: b_buf!(n + 1); a_buf!(n + 1)
		fi;
		seq_buf!WHOLE(n);
		n++;
		tail_buf!n
	:: else -> break
	od
}

active proctype memory()
{
	byte v;
end:
	do
	:: atomic { nempty(seq_buf) -> seq_buf?seq }
	:: atomic { nempty(a_buf) -> a_buf?<v>;
		if
		:: WORD_MAY_ARRIVE(v) -> a_buf?a
		:: else -> skip
		fi; v = 0 }
	:: atomic { nempty(b_buf) -> b_buf?<v>;
		if
		:: WORD_MAY_ARRIVE(v) -> b_buf?b
		:: else -> skip
		fi; v = 0 }
	:: atomic { nempty(tail_buf) -> tail_buf?<v>;
		if
		:: TAIL_MAY_ARRIVE(v) -> tail_buf?tail
		:: else -> skip
		fi; v = 0 }
	od
}

active proctype reader()
{
	byte next = 0, seen, first, again, x, y;
	do
	:: next < RECORDS ->
#ifdef WEAK_SEEN
		first = seq;
#endif
		tail > next;
		seen = tail;
		next = seen - 1; /* one slot: everything older is overwritten */
#ifdef WEAK_SEEN
		x = a; y = b;
#else
		if /* relaxed among each other: any order of the first look and the words */
		:: first = seq; x = a; y = b
		:: y = b; first = seq; x = a
		:: x = a; y = b; first = seq
		fi;
#endif
		assert(first >= WHOLE(next)); /* not whole yet, although below the tail */
		if
		:: first == WHOLE(next) -> again = seq
		:: else -> again = 0 /* overwritten: counted as missed */
		fi;
#ifdef WEAK_AGAIN
		/* The second look was done before the words. */
		if
		:: first == again -> x = a; y = b
		:: else -> skip
		fi;
#endif
		assert(again == 0 || again != first || (x == next + 1 && y == next + 1));
		next++
	:: else -> break
	od
}
