/* SPDX-License-Identifier: Apache-2.0
 * Validity by the lead byte's length, then the ranges that RFC 3629 takes out. */
#include "common/utf8.h"

#include <string.h>

size_t tn_utf8_len(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	if (s[0] < 0x80)
		return 1;
	size_t len = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < len; i++)
		if ((s[i] & 0xc0) != 0x80) /* a NUL stops here too */
			return 0;
	bool bad = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
		   (s[0] == 0xf4 && s[1] > 0x8f);
	return bad ? 0 : len;
}

bool tn_utf8_valid(const char *text)
{
	size_t len = 1;
	for (; *text != '\0' && len > 0; text += len)
		len = tn_utf8_len(text);
	return len > 0;
}

/* Also C1, which steers terminals as well. */
static bool is_control(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	return s[0] < 0x20 || s[0] == 0x7f || (s[0] == 0xc2 && s[1] < 0xa0);
}

void tn_utf8_line(char *out, size_t out_bytes, const char *text)
{
	size_t used = 0;
	while (*text != '\0') {
		size_t len = tn_utf8_len(text), step = len > 0 ? len : 1;
		bool keep = len > 0 && !is_control(text);
		size_t bytes = keep ? len : 1;
		if (used + bytes >= out_bytes)
			break;
		memmove(out + used, keep ? text : "?", bytes);
		used += bytes;
		text += step;
	}
	out[used] = '\0';
}
