/* SPDX-License-Identifier: Apache-2.0
 * Linked into every test that says it starts no threads (tests/CMakeLists.txt): the linker sends its calls of
 * pthread_create() here, so that a test with threads does not stay out of the thread sanitizer's sight. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	(void)thread, (void)attr, (void)run, (void)arg;
	fprintf(stderr, "this test starts a thread: add THREADS to its tent_unit()\n");
	abort();
}
