/* SPDX-License-Identifier: Apache-2.0
 * Model of the data plane's lease (shm-ring/lease.h): lives that start, publish a socket, stop in order or are killed at
 * any step. A stopped process (SIGSTOP) is one that takes no step for as long as it likes. While a life serves, the
 * name leads to it, and no second life serves.
 *
 * Variants that must fail:
 *   RELEASE_FIRST    the name is removed after the lease was given up (looking at the inode does not save it)
 *   NO_LOOK          removes whatever is there, after the lease was given up
 *   TAKE_FROM_SILENT a successor that trusts a missed heartbeat instead of the kernel's lock */
#ifndef LIVES
#define LIVES 3
#endif
#define NOBODY 255

byte owner = NOBODY;  /* the kernel's lock: given up by release or by death, never by silence */
byte name = NOBODY;   /* whose socket the published name leads to */
byte serving;         /* lives that believe they serve */

/* Death: the kernel closes the lock; the name stays where it is. */
#define KILL atomic { if :: owner == me -> owner = NOBODY :: else -> skip fi; goto gone }

active [LIVES] proctype life()
{
	byte me = _pid;
	bool mine = false;

	/* start */
	if
#ifdef TAKE_FROM_SILENT
	:: atomic { owner != NOBODY -> owner = me } /* "it has not answered for a while" */
#endif
	:: atomic { owner == NOBODY -> owner = me }
	:: atomic { owner != NOBODY -> goto gone }
	fi;
	if
	:: KILL
	:: skip
	fi;

	/* publish: bind under another name, rename; one step for everybody else */
	atomic { name = me; serving++; assert(serving == 1) }

	/* serve: look at any time */
	atomic { assert(name == me); assert(owner == me) }
	if
	:: atomic { serving--; KILL }
	:: skip
	fi;

	/* stop in order */
#ifdef RELEASE_FIRST
	atomic { serving--; owner = NOBODY }
	mine = (name == me);
	if
	:: mine -> name = NOBODY
	:: else -> skip
	fi;
#else
#ifdef NO_LOOK
	atomic { serving--; owner = NOBODY }
	name = NOBODY;
#else
	atomic { assert(name == me); serving-- }
	mine = (name == me);
	if
	:: mine -> name = NOBODY
	:: else -> skip
	fi;
	if
	:: KILL
	:: skip
	fi;
	atomic { assert(owner == me); owner = NOBODY }
#endif
#endif
gone:
	skip
}

/* Looks at every moment: whoever serves holds the lock, and the name leads to it. */
active proctype watch()
{
end:
	do
	:: atomic { serving > 0 -> assert(owner != NOBODY && name == owner) }
	od
}
