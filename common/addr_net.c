/* SPDX-License-Identifier: Apache-2.0
 * Prefixes of addresses: text, and membership. No state; any thread. */
#include "common/addr_net.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

static const uint8_t *bytes_of(const struct tn_addr *a)
{
	return a->ss.ss_family == AF_INET ?
		       (const uint8_t *)&((const struct sockaddr_in *)(const void *)&a->ss)->sin_addr :
		       ((const struct sockaddr_in6 *)(const void *)&a->ss)->sin6_addr.s6_addr;
}

static uint32_t width_of(const struct tn_addr *a) { return a->ss.ss_family == AF_INET ? 32 : 128; }

/* The bits of byte i that belong to a prefix of `bits`. */
static uint8_t mask_of(uint32_t bits, uint32_t i)
{
	uint32_t here = bits > 8 * i ? bits - 8 * i : 0;
	return here >= 8 ? 0xff : (uint8_t)(0xff00u >> here);
}

static void cut(struct tn_addr *a, uint32_t bits)
{
	uint8_t *b = (uint8_t *)(uintptr_t)bytes_of(a);
	for (uint32_t i = 0; i < width_of(a) / 8; i++)
		b[i] &= mask_of(bits, i);
}

static tn_status refuse(char *err, const char *text, const char *why)
{
	snprintf(err, TN_ERR_TEXT, "address \"%.48s\": %.128s", text, why);
	return TN_INVALID;
}

/* "24" -> 24, at most `width`. */
static bool bits_parse(const char *text, uint32_t width, uint32_t *out)
{
	size_t len = strspn(text, "0123456789");
	uint32_t v = 0;
	if (len == 0 || len > 3 || text[len] != '\0')
		return false;
	for (size_t i = 0; i < len; i++)
		v = v * 10 + (uint32_t)(text[i] - '0');
	*out = v;
	return v <= width;
}

/* The host part alone: a port would suggest that ports are compared. */
static tn_status host_parse(const char *text, const char *host, struct tn_addr *out, char *err)
{
	struct tn_addr addr;
	char why[TN_ERR_TEXT];
	if (strstr(host, "://") != NULL || tn_addr_parse_zoned(host, TN_ADDR_NEED_PORT, 0, &addr, why) == TN_OK)
		return refuse(err, text, "write the address alone, such as 192.0.2.7, 192.0.2.0/24 or 2001:db8::1, without "
					 "tcp:// and port");
	return tn_addr_parse_zoned(host, 0, 0, out, err);
}

static tn_status prefix_parse(const char *text, const char *bits, struct tn_addr_net *net, char *err)
{
	struct tn_addr plain, cut_addr = net->addr;
	char form[TN_ADDR_TEXT], why[TN_ADDR_TEXT + 80];
	if (!bits_parse(bits, width_of(&net->addr), &net->bits)) {
		snprintf(why, sizeof why, "the prefix must be a number from 0 to %u", width_of(&net->addr));
		return refuse(err, text, why);
	}
	if (tn_addr_from_sockaddr((const struct sockaddr *)&net->addr.ss, net->addr.len, &plain) == TN_OK &&
	    plain.ss.ss_family != net->addr.ss.ss_family)
		return refuse(err, text, "write the IPv4 prefix itself, such as 192.0.2.0/24");
	cut(&cut_addr, net->bits);
	if (!tn_addr_host_eq(&cut_addr, &net->addr)) {
		snprintf(why, sizeof why, "bits are set behind the prefix: write %s/%u", tn_addr_format_host(&cut_addr, form),
			 net->bits);
		return refuse(err, text, why);
	}
	return TN_OK;
}

tn_status tn_addr_net_parse(const char *text, struct tn_addr_net *net_out, char err[static TN_ERR_TEXT])
{
	struct tn_addr_net net;
	char host[TN_ADDR_TEXT];
	const char *slash = strrchr(text, '/');
	bool scheme = slash != NULL && slash > text && slash[-1] == '/';
	size_t len = slash != NULL && !scheme ? (size_t)(slash - text) : strlen(text);
	if (len >= sizeof host)
		return refuse(err, text, "too long");
	memcpy(host, text, len);
	host[len] = '\0';
	tn_status st = host_parse(text, host, &net.addr, err);
	if (st == TN_OK && text[len] == '/') {
		st = prefix_parse(text, text + len + 1, &net, err);
	} else if (st == TN_OK) {
		if (tn_addr_is_any(&net.addr))
			return refuse(err, text, "a wildcard is nobody's address; 0.0.0.0/0 and ::/0 mean everybody's");
		net = tn_addr_net_of(&net.addr);
	}
	if (st == TN_OK)
		*net_out = net;
	return st;
}

struct tn_addr_net tn_addr_net_of(const struct tn_addr *addr)
{
	struct tn_addr_net net;
	if (tn_addr_from_sockaddr((const struct sockaddr *)&addr->ss, addr->len, &net.addr) != TN_OK)
		net.addr = *addr;
	tn_addr_set_port(&net.addr, 0);
	net.bits = width_of(&net.addr);
	return net;
}

char *tn_addr_net_format(const struct tn_addr_net *net, char out[static TN_ADDR_NET_TEXT])
{
	char host[TN_ADDR_TEXT];
	tn_addr_format_host(&net->addr, host);
	if (net->bits == width_of(&net->addr))
		snprintf(out, TN_ADDR_NET_TEXT, "%s", host);
	else
		snprintf(out, TN_ADDR_NET_TEXT, "%.95s/%u", host, TN_MIN(net->bits, 128u));
	return out;
}

bool tn_addr_net_has(const struct tn_addr_net *net, const struct tn_addr *addr)
{
	uint32_t zone = tn_addr_zone(&net->addr), other = tn_addr_zone(addr);
	if (net->addr.ss.ss_family != addr->ss.ss_family || (zone != 0 && other != 0 && zone != other))
		return false;
	const uint8_t *a = bytes_of(&net->addr), *b = bytes_of(addr);
	uint8_t differ = 0;
	for (uint32_t i = 0; i < width_of(addr) / 8; i++)
		differ |= (uint8_t)((a[i] ^ b[i]) & mask_of(net->bits, i));
	return differ == 0;
}
