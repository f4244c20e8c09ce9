/* SPDX-License-Identifier: Apache-2.0
 * The exposition as numbers. HTTP/1.0, so that the answer comes plain and ends with the connection. */
#include "controlplane/tentctl/samples.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/compiler.h"
#include "common/metrics.h"

/* ---- fetch ---- */

static bool split_address(const char *where, char *host, size_t host_bytes, char *port, size_t port_bytes)
{
	const char *colon = strrchr(where, ':');
	bool bracket = where[0] == '[';
	if (colon == NULL || (bracket && colon[-1] != ']'))
		return false;
	int len = (int)(colon - where) - (bracket ? 2 : 0);
	return len > 0 && snprintf(host, host_bytes, "%.*s", len, where + bracket) < (int)host_bytes &&
	       snprintf(port, port_bytes, "%s", colon + 1) < (int)port_bytes;
}

static int connect_to(const char *where, char *err, size_t err_bytes)
{
	char host[128], port[16];
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV }, *ai;
	if (!split_address(where, host, sizeof host, port, sizeof port) || getaddrinfo(host, port, &hints, &ai) != 0) {
		snprintf(err, err_bytes, "\"%s\" is no address of a metrics server", where);
		return -1;
	}
	int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, ai->ai_addr, ai->ai_addrlen) != 0) {
		snprintf(err, err_bytes, "http://%s/metrics: %s", where, strerror(errno));
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	freeaddrinfo(ai);
	return fd;
}

/* All that comes until the other end closes; NUL-terminated. */
static char *read_all(int fd, uint64_t deadline_ns, char *err, size_t err_bytes)
{
	size_t len = 0, room = 1 << 16;
	char *text = malloc(room + 1);
	while (text != NULL) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		uint64_t left = tn_remaining_ns(deadline_ns, tn_now_ns());
		if (left == 0 || (poll(&p, 1, tn_ns_to_poll_ms(left)) < 0 && errno != EINTR)) {
			snprintf(err, err_bytes, "the metrics server did not answer in time");
			break;
		}
		ssize_t n = recv(fd, text + len, room - len, MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n < 0) {
			snprintf(err, err_bytes, "the metrics server broke off: %s", strerror(errno));
			break;
		}
		if (n == 0) {
			text[len] = '\0';
			return text;
		}
		len += (size_t)n;
		if (len < room)
			continue;
		char *more = room < TCTL_EXPOSITION_MAX ? realloc(text, room * 2 + 1) : NULL;
		if (more == NULL) {
			snprintf(err, err_bytes, "the metrics server sends more than %d bytes", TCTL_EXPOSITION_MAX);
			break;
		}
		room *= 2;
		text = more;
	}
	free(text);
	return NULL;
}

char *tctl_samples_fetch(const char *where, uint64_t timeout_ns, char *err, size_t err_bytes)
{
	char ask[256];
	uint64_t deadline_ns = tn_deadline_after(tn_now_ns(), timeout_ns);
	snprintf(err, err_bytes, "no memory");
	int fd = connect_to(where, err, err_bytes);
	if (fd < 0)
		return NULL;
	int n = snprintf(ask, sizeof ask, "GET /metrics HTTP/1.0\r\nHost: %.200s\r\n\r\n", where);
	char *answer = NULL;
	if (send(fd, ask, (size_t)n, MSG_NOSIGNAL) == n)
		answer = read_all(fd, deadline_ns, err, err_bytes);
	else
		snprintf(err, err_bytes, "http://%s/metrics: %s", where, strerror(errno));
	close(fd);
	if (answer == NULL)
		return NULL;
	char *body = strstr(answer, "\r\n\r\n");
	if (strncmp(answer, "HTTP/1.", 7) != 0 || strncmp(answer + 8, " 200", 4) != 0 || body == NULL) {
		snprintf(err, err_bytes, "http://%s/metrics answers \"%.*s\"", where,
			 (int)TN_MIN(strcspn(answer, "\r\n"), 80u), answer);
		free(answer);
		return NULL;
	}
	memmove(answer, body + 4, strlen(body + 4) + 1);
	return answer;
}

/* ---- parse: every line is cut in place ---- */

/* "key="value"," of a label list; values of ours have no escapes but may come from anywhere. */
static char *cut_label(char *p, const char **key, const char **value)
{
	char *equals = strchr(p, '=');
	if (equals == NULL || equals[1] != '"')
		return NULL;
	*equals = '\0';
	*key = p;
	*value = equals + 2;
	for (p = equals + 2; *p != '"'; p++) {
		if (*p == '\0')
			return NULL;
		if (*p == '\\' && p[1] != '\0')
			p++;
	}
	*p++ = '\0';
	return p;
}

/* 1: a sample; 0: none of ours; -1: not an exposition. */
static int cut_line(char *line, struct tctl_sample *s)
{
	char *p = line + strcspn(line, "{ "), *end;
	*s = (struct tctl_sample){ .name = line };
	if (p == line || *p == '\0')
		return -1;
	bool labels = *p == '{';
	*p++ = '\0';
	while (labels && *p != '}') {
		const char *key, *value;
		p = cut_label(p, &key, &value);
		if (p == NULL)
			return -1;
		if (s->label_cnt < TCTL_LABELS_MAX) {
			s->labels[s->label_cnt].key = key;
			s->labels[s->label_cnt++].value = value;
		}
		if (*p == ',')
			p++;
	}
	p += labels ? 1 : 0;
	while (*p == ' ')
		p++;
	if (*p == '\0')
		return -1;
	errno = 0;
	s->value = strtoll(p, &end, 10);
	return errno == 0 && end != p && (*end == '\0' || *end == ' ') ? 1 : 0;
}

bool tctl_samples_parse(char *text, struct tctl_samples *out, char *err, size_t err_bytes)
{
	size_t lines = 1;
	char *save = NULL;
	for (const char *p = text; *p != '\0'; p++)
		lines += *p == '\n';
	struct tctl_samples s = { .text = text, .item = calloc(lines, sizeof *s.item) };
	if (s.item == NULL) {
		snprintf(err, err_bytes, "no memory");
		tctl_samples_free(&s);
		return false;
	}
	for (char *line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
		int got = line[0] == '#' ? 0 : cut_line(line, &s.item[s.cnt]);
		if (got < 0) {
			snprintf(err, err_bytes, "the metrics server sends \"%.60s\", which is no exposition", line);
			tctl_samples_free(&s);
			return false;
		}
		s.cnt += (size_t)got;
	}
	*out = s;
	return true;
}

void tctl_samples_free(struct tctl_samples *s)
{
	free(s->text);
	free(s->item);
	*s = (struct tctl_samples){ .text = NULL };
}

const char *tctl_sample_label(const struct tctl_sample *s, const char *key)
{
	for (unsigned i = 0; i < s->label_cnt; i++)
		if (strcmp(s->labels[i].key, key) == 0)
			return s->labels[i].value;
	return NULL;
}

/* ---- cells ---- */

static const struct tn_metric_family *find_family(const char *name)
{
	for (unsigned m = 0; m < TN_M_CNT; m++)
		if (!TN_MTYPE_IS_HIST(tn_metric_families[m].type) && strcmp(tn_metric_families[m].name, name) == 0)
			return &tn_metric_families[m];
	return NULL;
}

/* Mixed-radix number of the series; false when a label value is not in its domain. */
static bool find_series(const struct tn_metric_family *f, const struct tctl_sample *s, uint32_t *series_out)
{
	uint32_t series = 0;
	for (unsigned l = 0; l < f->label_cnt; l++) {
		const struct tn_metric_domain_info *d = &tn_metric_domains[f->label[l].domain];
		const char *value = tctl_sample_label(s, f->label[l].key);
		unsigned v = 0;
		while (v < d->cnt && (value == NULL || strcmp(d->values[v], value) != 0))
			v++;
		if (v == d->cnt)
			return false;
		series = series * d->cnt + v;
	}
	*series_out = series;
	return true;
}

bool tctl_samples_to_cells(const struct tctl_samples *s, uint64_t *cells, char *err, size_t err_bytes)
{
	memset(cells, 0, TN_METRIC_CELL_CNT * sizeof *cells);
	for (size_t i = 0; i < s->cnt; i++) {
		const struct tn_metric_family *f = find_family(s->item[i].name);
		uint32_t series;
		if (f == NULL)
			continue;
		if (!find_series(f, &s->item[i], &series)) {
			snprintf(err, err_bytes,
				 "%.80s has labels that this tentctl does not know: use the one of the control plane's "
				 "version",
				 s->item[i].name);
			return false;
		}
		cells[f->base + series] = (uint64_t)s->item[i].value;
	}
	return true;
}
