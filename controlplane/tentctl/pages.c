/* SPDX-License-Identifier: Apache-2.0
 * Lists that are longer than a message: asked for page by page. */
#include "common/message.h"
#include "controlplane/tentctl/tentctl.h"

#define PAGE_MOST 64u /* the control plane gives no more at once */

/* One page; a page too large for a message is asked for again in halves. */
static int ask_page(struct tctl *t, const char *type, uint64_t first, uint64_t count, json_t **page_out)
{
	char err[512];
	for (;; count /= 2) {
		json_t *body = json_object();
		tn_json_put_u64(body, "first", first);
		tn_json_put_u64(body, "count", count);
		tn_status s = tctl_query(t, type, body, page_out, err, sizeof err);
		if (s == TN_OK)
			return TCTL_OK;
		if (s != TN_TOO_BIG || count <= 1)
			return tctl_fail(t, s, "%s", err);
	}
}

int tctl_collect(struct tctl *t, const char *type, const char *key, uint64_t first, uint64_t count, json_t *all,
		 uint64_t *total_out)
{
	if (tctl_config(t) == NULL) /* its errors were printed */
		return TCTL_FAILED;
	for (uint64_t got = 0; got < count;) {
		json_t *page;
		int rc = ask_page(t, type, first + got, TN_MIN((uint64_t)PAGE_MOST, count - got), &page);
		if (rc != TCTL_OK)
			return rc;
		const json_t *list = json_object_get(page, key);
		size_t n = json_array_size(list), i;
		json_t *item;
		json_array_foreach(list, i, item)
			json_array_append(all, item);
		*total_out = tctl_u64(page, "total");
		json_decref(page);
		got += n;
		if (n == 0 || first + got >= *total_out)
			break;
	}
	return TCTL_OK;
}
