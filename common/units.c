/* SPDX-License-Identifier: Apache-2.0
 * The one parser and formatter of durations and sizes. Integer arithmetic only, so that what was written is what is
 * meant to the last unit. No state; any thread. */
#include "common/units.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct unit { const char *name; uint64_t factor; };

/* Largest first; the formatters walk down. */
static const struct unit duration_units[] = {
	{ "d", UINT64_C(86400000000000) }, { "h", UINT64_C(3600000000000) }, { "m", UINT64_C(60000000000) },
	{ "s", 1000000000 }, { "ms", 1000000 }, { "us", 1000 }, { "ns", 1 },
};
static const struct unit byte_units[] = {
	{ "TiB", UINT64_C(1) << 40 }, { "GiB", UINT64_C(1) << 30 }, { "MiB", UINT64_C(1) << 20 }, { "KiB", UINT64_C(1) << 10 },
	{ "B", 1 },
};
static const struct unit byte_units_read[] = {
	{ "", 1 }, { "B", 1 },
	{ "K", UINT64_C(1) << 10 }, { "KB", UINT64_C(1) << 10 }, { "KiB", UINT64_C(1) << 10 },
	{ "M", UINT64_C(1) << 20 }, { "MB", UINT64_C(1) << 20 }, { "MiB", UINT64_C(1) << 20 },
	{ "G", UINT64_C(1) << 30 }, { "GB", UINT64_C(1) << 30 }, { "GiB", UINT64_C(1) << 30 },
	{ "T", UINT64_C(1) << 40 }, { "TB", UINT64_C(1) << 40 }, { "TiB", UINT64_C(1) << 40 },
};

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static const struct unit *unit_find(const struct unit *units, size_t cnt, const char *name)
{
	for (size_t i = 0; i < cnt; i++)
		if (strcmp(units[i].name, name) == 0)
			return &units[i];
	return NULL;
}

/* 0.digits times the factor, cut to whole units. 18 digits are exact in 64 bits and finer than any factor needs. */
static uint64_t fraction_value(const char *digits, uint64_t factor)
{
	uint64_t numerator = 0, denominator = 1;
	for (int i = 0; i < 18 && is_digit(digits[i]); i++) {
		numerator = numerator * 10 + (uint64_t)(digits[i] - '0');
		denominator *= 10;
	}
	return (uint64_t)((unsigned __int128)factor * numerator / denominator);
}

static tn_status quantity_parse(const char *text, const struct unit *units, size_t cnt, uint64_t *out)
{
	const char *p = text;
	uint64_t whole = 0;
	bool big = false;
	if (!is_digit(*p))
		return TN_INVALID;
	for (; is_digit(*p); p++)
		big |= __builtin_mul_overflow(whole, 10, &whole) || __builtin_add_overflow(whole, (uint64_t)(*p - '0'), &whole);
	const char *fraction = "";
	if (*p == '.') {
		fraction = ++p;
		if (!is_digit(*p))
			return TN_INVALID;
		while (is_digit(*p))
			p++;
	}
	const struct unit *u = unit_find(units, cnt, p);
	if (u == NULL)
		return TN_INVALID;
	if (big || __builtin_mul_overflow(whole, u->factor, &whole) ||
	    __builtin_add_overflow(whole, fraction_value(fraction, u->factor), &whole))
		return TN_RANGE;
	*out = whole;
	return TN_OK;
}

tn_status tn_duration_parse(const char *text, uint64_t *ns_out)
{
	if (strcmp(text, "0") == 0) {
		*ns_out = 0;
		return TN_OK;
	}
	return quantity_parse(text, duration_units, TN_ARRAY_LEN(duration_units), ns_out);
}

tn_status tn_bytes_parse(const char *text, uint64_t *bytes_out)
{
	return quantity_parse(text, byte_units_read, TN_ARRAY_LEN(byte_units_read), bytes_out);
}

/* Three significant digits of value / factor. */
static char *scaled_format(uint64_t value, const struct unit *u, char *out)
{
	double v = (double)value / (double)u->factor;
	int digits = u->factor == 1 || v >= 99.95 ? 0 : v >= 9.995 ? 1 : 2;
	snprintf(out, TN_UNITS_TEXT, "%.*f%s", digits, v, u->name);
	return out;
}

char *tn_duration_format(uint64_t ns, char out[static TN_UNITS_TEXT])
{
	const uint64_t second = duration_units[3].factor;
	if (ns == 0)
		return strcpy(out, "0s");
	if (ns < 60 * second) {
		size_t i = 3;
		while (ns < duration_units[i].factor)
			i++;
		return scaled_format(ns, &duration_units[i], out);
	}
	size_t i = ns >= duration_units[0].factor ? 0 : ns >= duration_units[1].factor ? 1 : 2;
	const struct unit *big = &duration_units[i], *small = &duration_units[i + 1];
	snprintf(out, TN_UNITS_TEXT, "%" PRIu64 "%s%02" PRIu64 "%s", ns / big->factor, big->name,
	         ns % big->factor / small->factor, small->name);
	return out;
}

char *tn_bytes_format(uint64_t bytes, char out[static TN_UNITS_TEXT])
{
	size_t i = 0;
	while (byte_units[i].factor > 1 && bytes < byte_units[i].factor)
		i++;
	return scaled_format(bytes, &byte_units[i], out);
}

static char *exact_format(uint64_t value, const struct unit *units, char *out)
{
	while (value % units->factor != 0)
		units++;
	snprintf(out, TN_UNITS_TEXT, "%" PRIu64 "%s", value / units->factor, units->name);
	return out;
}

char *tn_duration_format_exact(uint64_t ns, char out[static TN_UNITS_TEXT])
{
	return ns == 0 ? strcpy(out, "0s") : exact_format(ns, duration_units, out);
}

char *tn_bytes_format_exact(uint64_t bytes, char out[static TN_UNITS_TEXT])
{
	return bytes == 0 ? strcpy(out, "0B") : exact_format(bytes, byte_units, out);
}
