/* SPDX-License-Identifier: Apache-2.0
 * Takes structs that grow from programs that may be older or newer than the library. */
#include "dataplane/libtent/options.h"

#include <string.h>

#include "common/bits.h"
#include "common/compiler.h"

/* `size` counts bytes that have a meaning: with padding behind the last field, a field that a later version puts there
 * would be known to libraries that do not know it. */
#define NO_TAIL(type, last) \
	TN_STATIC_ASSERT(offsetof(type, last) + sizeof(((type *)NULL)->last) == sizeof(type), #type " ends in padding")
NO_TAIL(tent_options, recover_timeout_ns);
NO_TAIL(tent_info, max_request_bytes);
NO_TAIL(tent_access, peer_count);
NO_TAIL(tent_qp_options, reserved);
NO_TAIL(tent_note, payload);
#undef NO_TAIL

tent_status lt_options_take(const char *what, const char *macro, const void *in, size_t least, void *out, size_t known)
{
	size_t size;

	memcpy(&size, in, sizeof size);
	if (!lt_struct_size_ok(size, least))
		return lt_fail(TN_INVALID, "%s->size is %zu: use %s", what, size, macro);
	if (size > known && !tn_all_zero((const char *)in + known, size - known))
		return lt_fail(TN_INVALID,
			       "%s asks for something that libtent %s does not know: of its %zu bytes the last %zu are not "
			       "zero; leave it out, or run a newer libtent", what, tent_version(), size, size - known);
	memcpy(out, in, TN_MIN(size, known));
	return TENT_OK;
}
