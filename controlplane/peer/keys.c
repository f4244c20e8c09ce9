/* SPDX-License-Identifier: Apache-2.0
 * Key file: two lines, "public <Z85>" and "secret <Z85>", 0600. Written to a temporary name and linked, so that a crash
 * or a second start never leaves half a key or two of them. */
#include "controlplane/peer/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>
#include <zmq.h>

static tn_status say(char *err, size_t err_bytes, tn_status s, const char *path, const char *what)
{
	snprintf(err, err_bytes, "key file %s: %s", path, what);
	return s;
}

static tn_status say_errno(char *err, size_t err_bytes, const char *path, const char *what)
{
	int e = errno;
	snprintf(err, err_bytes, "key file %s: %s: %s", path, what, strerror(e));
	return e == EEXIST ? TN_EXISTS : e == ENOENT ? TN_NOT_FOUND : TN_SYSTEM;
}

tn_status cp_keys_parse_public(const char *text, struct tn_peer_id *out)
{
	struct tn_peer_id id;
	if (strlen(text) == 64)
		return tn_peer_id_from_hex(text, out);
	if (strlen(text) != 40 || zmq_z85_decode(id.b, text) == NULL)
		return TN_INVALID;
	*out = id;
	return TN_OK;
}

void cp_keys_public_text(const struct tn_peer_id *id, char out[static CP_KEY_TEXT])
{
	zmq_z85_encode(out, id->b, sizeof id->b);
}

void cp_keys_wipe(struct cp_keys *k)
{
	sodium_memzero(k, sizeof *k);
}

/* mkdir -p of the file's folder, new parts 0700. */
static int make_parent(const char *path)
{
	char dir[4096];
	size_t n = strlen(path);
	if (n >= sizeof dir) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(dir, path, n + 1);
	for (char *p = dir + 1; *p != '\0'; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(dir, 0700) != 0 && errno != EEXIST)
			return -1;
		*p = '/';
	}
	return 0;
}

static int write_all(int fd, const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, text, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		text += n;
		len -= (size_t)n;
	}
	return fsync(fd);
}

tn_status cp_keys_generate(const char *path, struct cp_keys *out, char *err, size_t err_bytes)
{
	char temp[4128], text[128];
	struct cp_keys k;
	tn_status s = TN_OK;
	if (make_parent(path) != 0)
		return say_errno(err, err_bytes, path, "cannot make its folder");
	if (zmq_curve_keypair(k.public_text, k.secret_text) != 0)
		return say_errno(err, err_bytes, path, "this ZeroMQ has no CURVE");
	if (cp_keys_parse_public(k.public_text, &k.id) != TN_OK)
		return say(err, err_bytes, TN_INTERNAL, path, "ZeroMQ made a key that does not parse");
	snprintf(temp, sizeof temp, "%s.%ld.new", path, (long)getpid());
	int len = snprintf(text, sizeof text, "public %s\nsecret %s\n", k.public_text, k.secret_text);
	int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		s = say_errno(err, err_bytes, path, "cannot create a file beside it");
		goto wipe;
	}
	if (write_all(fd, text, (size_t)len) != 0)
		s = say_errno(err, err_bytes, path, "cannot write");
	else if (link(temp, path) != 0)
		s = say_errno(err, err_bytes, path, "cannot put it in place");
	close(fd);
	unlink(temp);
	if (s == TN_OK)
		*out = k;
wipe:
	sodium_memzero(text, sizeof text);
	cp_keys_wipe(&k);
	return s;
}

static tn_status check_file(int fd, const char *path, char *err, size_t err_bytes)
{
	struct stat st;
	if (fstat(fd, &st) != 0)
		return say_errno(err, err_bytes, path, "fstat");
	if (!S_ISREG(st.st_mode) || st.st_size > 4096)
		return say(err, err_bytes, TN_CONFIG, path, "is not a key file; make one with tentctl keygen");
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return say(err, err_bytes, TN_PERMISSION, path, "belongs to another user; chown it to the daemon's user");
	if ((st.st_mode & 077) != 0)
		return say(err, err_bytes, TN_PERMISSION, path, "others may read the secret key; chmod 600 it");
	return TN_OK;
}

static tn_status parse(char *text, struct cp_keys *k)
{
	char derived[CP_KEY_TEXT];
	uint8_t raw[32];
	if (sscanf(text, "public %40[^ \n]\nsecret %40[^ \n]", k->public_text, k->secret_text) != 2)
		return TN_CONFIG;
	if (strlen(k->secret_text) != 40 || cp_keys_parse_public(k->public_text, &k->id) != TN_OK ||
	    zmq_z85_decode(raw, k->secret_text) == NULL || zmq_curve_public(derived, k->secret_text) != 0)
		return TN_CONFIG;
	sodium_memzero(raw, sizeof raw);
	return strcmp(derived, k->public_text) == 0 ? TN_OK : TN_CONFIG;
}

tn_status cp_keys_load(const char *path, struct cp_keys *out, char *err, size_t err_bytes)
{
	char text[4097];
	struct cp_keys k = { 0 };
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return say_errno(err, err_bytes, path, "cannot open");
	tn_status s = check_file(fd, path, err, err_bytes);
	ssize_t n = s == TN_OK ? read(fd, text, sizeof text - 1) : 0;
	close(fd);
	if (s != TN_OK)
		return s;
	if (n < 0)
		return say_errno(err, err_bytes, path, "cannot read");
	text[n] = '\0';
	s = parse(text, &k);
	sodium_memzero(text, sizeof text);
	if (s == TN_OK)
		*out = k;
	else
		say(err, err_bytes, s, path, "is not a key file (or its halves differ); make one with tentctl keygen");
	cp_keys_wipe(&k);
	return s;
}

tn_status cp_keys_ensure(const char *path, struct cp_keys *out, bool *made_out, char *err, size_t err_bytes)
{
	tn_status s = cp_keys_load(path, out, err, err_bytes);
	*made_out = false;
	if (s != TN_NOT_FOUND)
		return s;
	s = cp_keys_generate(path, out, err, err_bytes);
	*made_out = s == TN_OK;
	/* another starter was faster: its key counts */
	return s == TN_EXISTS ? cp_keys_load(path, out, err, err_bytes) : s;
}
