/* SPDX-License-Identifier: Apache-2.0
 * Model of the doorbell (shm-ring/doorbell.h): one sleeper with two rings (a worker with two queue pairs), one
 * publisher per ring. Every store goes through its thread's store buffer, as on x86 (FIFO, emptied at any time); a full
 * fence waits for one's own buffer. A lost wake-up is a sleeper that waits for ever with an entry in a ring: spin
 * reports it as an invalid end state.
 *
 * Variants that must fail:
 *   NO_SLEEPER_FENCE, NO_PUBLISHER_FENCE   the two full fences [D1] [D2]
 *   NO_RECHECK                             looking at the rings again between arming and sleeping */
#define RINGS 2
#ifndef EACH
#define EACH 2 /* entries published per ring */
#endif

byte tail[RINGS];                /* memory: entries published; the data itself is ring.pml's subject */
bool armed[RINGS];
bool rung;                       /* wake-ups wait in the socket; more than one is as good as one */

chan sleeper_buf = [4] of { byte, bool };     /* stores to armed[] on their way */
chan publisher_buf[RINGS] = [2] of { byte };  /* stores to tail[i] on their way */

active proctype memory()
{
	byte i, v;
	bool b;
end:
	do
	:: d_step { nempty(sleeper_buf) -> sleeper_buf?i,b; armed[i] = b; i = 0; b = false }
	:: d_step { nempty(publisher_buf[0]) -> publisher_buf[0]?v; tail[0] = v; v = 0 }
	:: d_step { nempty(publisher_buf[1]) -> publisher_buf[1]?v; tail[1] = v; v = 0 }
	od
}

active [RINGS] proctype publisher()
{
	byte me = _pid - 1, n = 0;
	do
	:: n < EACH ->
		n++;
		publisher_buf[me]!n;
#ifndef NO_PUBLISHER_FENCE
		empty(publisher_buf[me]);
#endif
		if
		:: armed[me] -> rung = true
		:: else -> skip
		fi
	:: else -> break
	od
}

active proctype sleeper()
{
	byte taken[RINGS];
	do
	:: taken[0] == EACH && taken[1] == EACH -> break
	:: tail[0] != taken[0] -> taken[0]++
	:: tail[1] != taken[1] -> taken[1]++
	:: tail[0] == taken[0] && tail[1] == taken[1] && !(taken[0] == EACH && taken[1] == EACH) ->
		sleeper_buf!0,true;
		sleeper_buf!1,true;
#ifndef NO_SLEEPER_FENCE
		empty(sleeper_buf);
#endif
		if
#ifndef NO_RECHECK
		:: tail[0] != taken[0] -> skip
		:: tail[0] == taken[0] && tail[1] != taken[1] -> skip
		:: tail[0] == taken[0] && tail[1] == taken[1] ->
#else
		:: true ->
#endif
			rung -> skip /* asleep until somebody rings */
		fi;
		sleeper_buf!0,false;
		sleeper_buf!1,false;
		rung = false /* drain */
	od
}
