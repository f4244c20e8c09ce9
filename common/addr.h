/* SPDX-License-Identifier: Apache-2.0
 * The one parser and formatter of network addresses. Numeric only: no name is ever resolved, so no call blocks.
 *   192.0.2.7:7001   [2001:db8::1]:7001   [fe80::1%eth0]:7001   each also with a leading "tcp://"
 * No state; any thread. */
#ifndef TN_ADDR_H
#define TN_ADDR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "common/status.h"

#define TN_ADDR_TEXT 96   /* room for any formatted address with prefix, zone and NUL */

/* An IPv4 or IPv6 socket address; len is what bind(2) and connect(2) take. */
struct tn_addr {
	struct sockaddr_storage ss;
	socklen_t len;
};

#define TN_ADDR_NEED_PORT (-1)   /* for default_port: the text must name one */

/* Reads `text` into addr_out. Without a port in the text, default_port (0..65535) is taken, and IPv6 may then stand
 * without brackets. Port 0 (any free port) is accepted only when written. A zone is an interface name or number; a
 * link-local address must have one, every other address must not.
 * TN_INVALID: malformed; err names what and shows the form that is expected. TN_NOT_FOUND: the zone's interface does
 * not exist here. addr_out is untouched then. */
tn_status tn_addr_parse(const char *text, int default_port, struct tn_addr *addr_out, char err[static TN_ERR_TEXT]);

/* The same for a text from another host, whose zones would mean nothing here: a link-local address may stand without
 * one and gets `zone`; 0 leaves it without, which no socket call takes but comparisons do (it matches any). */
tn_status tn_addr_parse_zoned(const char *text, int default_port, uint32_t zone, struct tn_addr *addr_out,
			      char err[static TN_ERR_TEXT]);

/* From what accept(2) or getpeername(2) gave; an IPv4-mapped IPv6 address becomes IPv4, so that one host has one form.
 * TN_UNSUPPORTED: neither IPv4 nor IPv6, or too short. */
tn_status tn_addr_from_sockaddr(const struct sockaddr *sa, socklen_t len, struct tn_addr *addr_out);

/* "192.0.2.7:7001" / "[fe80::1%eth0]:7001"; the _url form leads with "tcp://"; the _host form has neither port nor
 * brackets. Any tn_addr that the functions above gave fits. Return out. */
char *tn_addr_format(const struct tn_addr *addr, char out[static TN_ADDR_TEXT]);
char *tn_addr_format_url(const struct tn_addr *addr, char out[static TN_ADDR_TEXT]);
char *tn_addr_format_host(const struct tn_addr *addr, char out[static TN_ADDR_TEXT]);

uint16_t tn_addr_port(const struct tn_addr *addr);
void tn_addr_set_port(struct tn_addr *addr, uint16_t port);

/* Interface index of a link-local address; 0: none. Setting touches link-local addresses only; 0 gives the form in
 * which an address may be told to other hosts. */
uint32_t tn_addr_zone(const struct tn_addr *addr);
void tn_addr_set_zone(struct tn_addr *addr, uint32_t zone);

/* Same family, address, zone (a zone of 0 matches any) and, for _eq, port. */
bool tn_addr_eq(const struct tn_addr *a, const struct tn_addr *b);
bool tn_addr_host_eq(const struct tn_addr *a, const struct tn_addr *b);

/* 127.0.0.0/8 or ::1; 0.0.0.0 or :: (listens everywhere, names nobody). */
bool tn_addr_is_loopback(const struct tn_addr *addr);
bool tn_addr_is_any(const struct tn_addr *addr);
bool tn_addr_is_link_local(const struct tn_addr *addr); /* fe80::/10 */

/* May a connection to `to` be bound to the source address `from`? Same family, `from` names one address, and its scope
 * reaches: loopback only to loopback, link-local only to the same link. */
bool tn_addr_may_reach(const struct tn_addr *from, const struct tn_addr *to);

#endif
