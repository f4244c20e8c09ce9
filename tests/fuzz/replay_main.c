/* SPDX-License-Identifier: Apache-2.0
 * main() of a fuzz target where libFuzzer is not built in: runs every file named in argv, and every file directly
 * inside every directory named there, once. Fails when something cannot be read or when there was no input at all. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/fuzz/fuzz.h"

#define INPUT_MAX (4u << 20)

static unsigned inputs_cnt;

/* The input is copied to a block of exactly its size, so that the address sanitizer sees the first byte beyond. */
static int run_file(const char *path)
{
	static uint8_t buf[INPUT_MAX];
	FILE *f = fopen(path, "rb");
	if (f == NULL) {
		perror(path);
		return 1;
	}
	size_t len = fread(buf, 1, sizeof buf, f);
	int failed = ferror(f) || fgetc(f) != EOF;
	fclose(f);
	uint8_t *exact = malloc(len > 0 ? len : 1);
	if (failed || exact == NULL) {
		fprintf(stderr, "%s: cannot be read whole\n", path);
		free(exact);
		return 1;
	}
	for (size_t i = 0; i < len; i++)
		exact[i] = buf[i];
	(void)LLVMFuzzerTestOneInput(exact, len);
	free(exact);
	inputs_cnt++;
	return 0;
}

static int run_dir(const char *path)
{
	DIR *d = opendir(path);
	if (d == NULL) {
		perror(path);
		return 1;
	}
	int failed = 0;
	for (struct dirent *e; (e = readdir(d)) != NULL;) {
		char file[4096];
		if (e->d_name[0] == '.')
			continue;
		snprintf(file, sizeof file, "%s/%s", path, e->d_name);
		failed |= run_file(file);
	}
	closedir(d);
	return failed;
}

int main(int argc, char **argv)
{
	int failed = 0;
	for (int i = 1; i < argc; i++) {
		struct stat st;
		if (stat(argv[i], &st) != 0) {
			perror(argv[i]);
			failed = 1;
		} else {
			failed |= S_ISDIR(st.st_mode) ? run_dir(argv[i]) : run_file(argv[i]);
		}
	}
	printf("%u inputs replayed\n", inputs_cnt);
	return failed || inputs_cnt == 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
