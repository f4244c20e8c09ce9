/* SPDX-License-Identifier: Apache-2.0
 * Memory that tent can reach: a range of a memfd, registered with the data plane. Allocated memory is also mapped
 * here. Imported memory is reached by this process alone, which copies. Fields are constant from registration to free, except what struct lt_object says. */
#ifndef LT_MEMORY_H
#define LT_MEMORY_H

#include <sys/types.h>

#include "dataplane/libtent/call.h"
#include "dataplane/libtent/object.h"

struct tent_memory {
	struct lt_object obj;
	int fd;                 /* our duplicate */
	dev_t dev;              /* dev and ino: which memory object, to find overlaps */
	ino_t ino;
	uint64_t offset, bytes; /* the range within the object */
	uint32_t rights;        /* TENT_RIGHT_* */
	uint32_t used_by;       /* published segments that contain it; context lock */
	void *addr;             /* mapping of allocated memory, the application's address of imported memory, else NULL */
	bool imported;          /* no fd; offset is its address, dev and ino are none of any object's */
};

/* The MEM_REGISTER or MEM_IMPORT call for it; lives as long as `mem`. */
void lt_memory_register_call(const tent_memory *mem, uint64_t deadline_ns, struct lt_call *call_out);
/* Unmaps and closes every memory of a context that nobody uses any more; the objects stay in the list. */
void lt_memory_release_all(tent_context *ctx);

#endif
