/* SPDX-License-Identifier: Apache-2.0
 * Address text to socket address and back; the only user of inet_pton, inet_ntop and interface indices for texts.
 * No state; any thread. */
#include "common/addr.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define URL_PREFIX "tcp://"

/* The pieces of a text, not yet looked at; each fits or the text was refused. */
struct pieces {
	char host[INET6_ADDRSTRLEN + IF_NAMESIZE + 1];
	const char *port;   /* NULL: none written */
	bool v6;
};

static struct sockaddr_in *as_v4(struct tn_addr *a) { return (struct sockaddr_in *)(void *)&a->ss; }
static struct sockaddr_in6 *as_v6(struct tn_addr *a) { return (struct sockaddr_in6 *)(void *)&a->ss; }
static const struct sockaddr_in *as_v4c(const struct tn_addr *a)
{
	return (const struct sockaddr_in *)(const void *)&a->ss;
}
static const struct sockaddr_in6 *as_v6c(const struct tn_addr *a)
{
	return (const struct sockaddr_in6 *)(const void *)&a->ss;
}

static tn_status refuse(char *err, const char *text, const char *why)
{
	snprintf(err, TN_ERR_TEXT, "address \"%.64s\": %s", text, why);
	return TN_INVALID;
}

static tn_status split(const char *text, const char *rest, int default_port, struct pieces *out, char *err)
{
	const char *host = rest, *end;
	const char *colon = strchr(rest, ':');
	out->v6 = rest[0] == '[' || (colon != NULL && strchr(colon + 1, ':') != NULL);
	if (rest[0] == '[') {
		host = rest + 1;
		end = strchr(host, ']');
		if (end == NULL)
			return refuse(err, text, "the closing ] is missing");
		if (end[1] != '\0' && end[1] != ':')
			return refuse(err, text, "only :port may follow ]");
		out->port = end[1] == ':' ? end + 2 : NULL;
	} else if (out->v6) {
		if (default_port < 0)
			return refuse(err, text, "IPv6 with a port needs brackets: [address]:port");
		end = rest + strlen(rest);
		out->port = NULL;
	} else {
		end = colon != NULL ? colon : rest + strlen(rest);
		out->port = colon != NULL ? colon + 1 : NULL;
	}
	size_t len = (size_t)(end - host);
	if (len == 0)
		return refuse(err, text, "the address is missing; use 0.0.0.0 or [::] to listen everywhere");
	if (len >= sizeof out->host)
		return refuse(err, text, "too long");
	memcpy(out->host, host, len);
	out->host[len] = '\0';
	return TN_OK;
}

static tn_status port_parse(const char *text, const char *port, int default_port, uint16_t *out, char *err)
{
	if (port == NULL) {
		if (default_port < 0)
			return refuse(err, text, "the port is missing: address:port");
		*out = (uint16_t)default_port;
		return TN_OK;
	}
	unsigned v = 0;
	size_t len = strspn(port, "0123456789");
	if (len == 0 || len > 5 || port[len] != '\0')
		return refuse(err, text, "the port must be a number from 0 to 65535");
	for (size_t i = 0; i < len; i++)
		v = v * 10 + (unsigned)(port[i] - '0');
	if (v > UINT16_MAX)
		return refuse(err, text, "the port must be a number from 0 to 65535");
	*out = (uint16_t)v;
	return TN_OK;
}

/* Interface name or number -> index. */
static tn_status zone_parse(const char *text, const char *zone, uint32_t *out, char *err)
{
	unsigned index = if_nametoindex(zone);
	if (index == 0 && zone[0] != '\0' && zone[strspn(zone, "0123456789")] == '\0') {
		unsigned long v = strtoul(zone, NULL, 10);
		index = v <= UINT32_MAX ? (unsigned)v : 0;
	}
	if (index == 0) {
		(void)refuse(err, text, "no network interface of that zone name exists here");
		return TN_NOT_FOUND;
	}
	*out = index;
	return TN_OK;
}

/* default_zone NULL: a link-local address must name its zone. */
static tn_status v6_parse(const char *text, char *host, const uint32_t *default_zone, struct tn_addr *out, char *err)
{
	uint32_t scope = 0;
	char *zone = strchr(host, '%');
	if (zone != NULL)
		*zone++ = '\0';
	struct sockaddr_in6 *sa = as_v6(out);
	if (inet_pton(AF_INET6, host, &sa->sin6_addr) != 1)
		return refuse(err, text, "not an IPv6 address");
	bool link_local = IN6_IS_ADDR_LINKLOCAL(&sa->sin6_addr);
	if (zone != NULL && !link_local) /* the kernel would ignore it in silence */
		return refuse(err, text, "only a link-local address (fe80::/10) has a zone: leave out % and what follows");
	if (zone == NULL && link_local && default_zone == NULL)
		return refuse(err, text, "a link-local address needs its zone: [fe80::1%eth0]:port");
	tn_status st = zone != NULL ? zone_parse(text, zone, &scope, err) : TN_OK;
	if (st != TN_OK)
		return st;
	if (zone == NULL && link_local)
		scope = *default_zone;
	sa->sin6_family = AF_INET6;
	sa->sin6_scope_id = scope;
	out->len = sizeof *sa;
	return TN_OK;
}

static tn_status v4_parse(const char *text, const char *host, struct tn_addr *out, char *err)
{
	struct sockaddr_in *sa = as_v4(out);
	if (strchr(host, '%') != NULL)
		return refuse(err, text, "only an IPv6 link-local address has a zone: leave out % and what follows");
	if (inet_pton(AF_INET, host, &sa->sin_addr) != 1)
		return refuse(err, text, "not a numeric address (names are not resolved here): 192.0.2.7:port or [2001:db8::1]:port");
	sa->sin_family = AF_INET;
	out->len = sizeof *sa;
	return TN_OK;
}

static tn_status parse(const char *text, int default_port, const uint32_t *default_zone, struct tn_addr *addr_out,
		       char *err)
{
	const char *rest = text;
	if (strncmp(text, URL_PREFIX, strlen(URL_PREFIX)) == 0)
		rest += strlen(URL_PREFIX);
	else if (strstr(text, "://") != NULL)
		return refuse(err, text, "only tcp:// may lead");
	struct pieces p;
	struct tn_addr addr = { .len = 0 };
	uint16_t port = 0;
	tn_status st = split(text, rest, default_port, &p, err);
	if (st == TN_OK)
		st = port_parse(text, p.port, default_port, &port, err);
	if (st == TN_OK)
		st = p.v6 ? v6_parse(text, p.host, default_zone, &addr, err) : v4_parse(text, p.host, &addr, err);
	if (st != TN_OK)
		return st;
	tn_addr_set_port(&addr, port);
	*addr_out = addr;
	return TN_OK;
}

tn_status tn_addr_parse(const char *text, int default_port, struct tn_addr *addr_out, char err[static TN_ERR_TEXT])
{
	return parse(text, default_port, NULL, addr_out, err);
}

tn_status tn_addr_parse_zoned(const char *text, int default_port, uint32_t zone, struct tn_addr *addr_out,
			      char err[static TN_ERR_TEXT])
{
	return parse(text, default_port, &zone, addr_out, err);
}

tn_status tn_addr_from_sockaddr(const struct sockaddr *sa, socklen_t len, struct tn_addr *addr_out)
{
	struct tn_addr addr = { .len = 0 };
	if (len < (socklen_t)sizeof sa->sa_family || len > (socklen_t)sizeof addr.ss)
		return TN_UNSUPPORTED;
	memcpy(&addr.ss, sa, len);
	if (addr.ss.ss_family == AF_INET && len >= (socklen_t)sizeof(struct sockaddr_in)) {
		addr.len = sizeof(struct sockaddr_in);
	} else if (addr.ss.ss_family == AF_INET6 && len >= (socklen_t)sizeof(struct sockaddr_in6)) {
		addr.len = sizeof(struct sockaddr_in6);
		struct sockaddr_in6 v6 = *as_v6c(&addr);
		if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
			struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = v6.sin6_port };
			memcpy(&v4.sin_addr, &v6.sin6_addr.s6_addr[12], 4);
			addr = (struct tn_addr){ .len = sizeof v4 };
			*as_v4(&addr) = v4;
		}
	} else {
		return TN_UNSUPPORTED;
	}
	*addr_out = addr;
	return TN_OK;
}

char *tn_addr_format_host(const struct tn_addr *addr, char out[static TN_ADDR_TEXT])
{
	char ip[INET6_ADDRSTRLEN] = "?", zone[IF_NAMESIZE] = "";
	if (addr->ss.ss_family == AF_INET) {
		(void)inet_ntop(AF_INET, &as_v4c(addr)->sin_addr, ip, sizeof ip);
	} else if (addr->ss.ss_family == AF_INET6) {
		uint32_t scope = as_v6c(addr)->sin6_scope_id;
		(void)inet_ntop(AF_INET6, &as_v6c(addr)->sin6_addr, ip, sizeof ip);
		if (scope != 0 && if_indextoname(scope, zone) == NULL)
			snprintf(zone, sizeof zone, "%u", scope);
	}
	snprintf(out, TN_ADDR_TEXT, "%s%s%s", ip, zone[0] != '\0' ? "%" : "", zone);
	return out;
}

static char *format_with_port(const struct tn_addr *addr, const char *prefix, char *out)
{
	char host[TN_ADDR_TEXT];
	bool v6 = addr->ss.ss_family == AF_INET6;
	tn_addr_format_host(addr, host);
	snprintf(out, TN_ADDR_TEXT, "%s%s%.72s%s:%u", prefix, v6 ? "[" : "", host, v6 ? "]" : "", tn_addr_port(addr));
	return out;
}

char *tn_addr_format(const struct tn_addr *addr, char out[static TN_ADDR_TEXT])
{
	return format_with_port(addr, "", out);
}

char *tn_addr_format_url(const struct tn_addr *addr, char out[static TN_ADDR_TEXT])
{
	return format_with_port(addr, URL_PREFIX, out);
}

uint16_t tn_addr_port(const struct tn_addr *addr)
{
	return ntohs(addr->ss.ss_family == AF_INET6 ? as_v6c(addr)->sin6_port : as_v4c(addr)->sin_port);
}

void tn_addr_set_port(struct tn_addr *addr, uint16_t port)
{
	if (addr->ss.ss_family == AF_INET6)
		as_v6(addr)->sin6_port = htons(port);
	else
		as_v4(addr)->sin_port = htons(port);
}

uint32_t tn_addr_zone(const struct tn_addr *addr)
{
	return addr->ss.ss_family == AF_INET6 ? as_v6c(addr)->sin6_scope_id : 0;
}

void tn_addr_set_zone(struct tn_addr *addr, uint32_t zone)
{
	if (tn_addr_is_link_local(addr))
		as_v6(addr)->sin6_scope_id = zone;
}

bool tn_addr_host_eq(const struct tn_addr *a, const struct tn_addr *b)
{
	if (a->ss.ss_family != b->ss.ss_family)
		return false;
	if (a->ss.ss_family == AF_INET)
		return as_v4c(a)->sin_addr.s_addr == as_v4c(b)->sin_addr.s_addr;
	uint32_t sa = as_v6c(a)->sin6_scope_id, sb = as_v6c(b)->sin6_scope_id;
	return memcmp(&as_v6c(a)->sin6_addr, &as_v6c(b)->sin6_addr, 16) == 0 && (sa == 0 || sb == 0 || sa == sb);
}

bool tn_addr_eq(const struct tn_addr *a, const struct tn_addr *b)
{
	return tn_addr_host_eq(a, b) && tn_addr_port(a) == tn_addr_port(b);
}

bool tn_addr_is_loopback(const struct tn_addr *addr)
{
	if (addr->ss.ss_family == AF_INET)
		return ntohl(as_v4c(addr)->sin_addr.s_addr) >> 24 == 127;
	return addr->ss.ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&as_v6c(addr)->sin6_addr);
}

bool tn_addr_is_any(const struct tn_addr *addr)
{
	if (addr->ss.ss_family == AF_INET)
		return as_v4c(addr)->sin_addr.s_addr == htonl(INADDR_ANY);
	return addr->ss.ss_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&as_v6c(addr)->sin6_addr);
}

bool tn_addr_is_link_local(const struct tn_addr *addr)
{
	return addr->ss.ss_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&as_v6c(addr)->sin6_addr);
}

bool tn_addr_may_reach(const struct tn_addr *from, const struct tn_addr *to)
{
	if (from->ss.ss_family != to->ss.ss_family || tn_addr_is_any(from))
		return false;
	if (tn_addr_is_loopback(from))
		return tn_addr_is_loopback(to);
	if (tn_addr_is_link_local(from))
		return tn_addr_is_link_local(to) && tn_addr_zone(from) == tn_addr_zone(to);
	return true;
}
