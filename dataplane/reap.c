/* SPDX-License-Identifier: Apache-2.0
 * Owner of the slow pool's threads and its two queues. The only lock of the data plane; workers never see it. */
#include "dataplane/reap.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void *reap_main(void *arg)
{
	struct dp_reap *r = arg;

	pthread_mutex_lock(&r->lock);
	for (;;) {
		struct tn_list *node = tn_list_pop_front(&r->todo);
		if (node == NULL) {
			if (r->stop)
				break;
			pthread_cond_wait(&r->work, &r->lock);
			continue;
		}
		struct dp_job *j = tn_list_entry(node, struct dp_job, link);
		pthread_mutex_unlock(&r->lock);
		j->run(j);
		pthread_mutex_lock(&r->lock);
		tn_list_push_back(&r->ready, &j->link);
		(void)!write(r->finished.fd, &(uint64_t){ 1 }, sizeof(uint64_t));
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

static void reap_deliver(struct dp_reap *r)
{
	struct tn_list batch;

	tn_list_init(&batch);
	pthread_mutex_lock(&r->lock);
	tn_list_splice_back(&batch, &r->ready);
	pthread_mutex_unlock(&r->lock);
	for (struct tn_list *node; (node = tn_list_pop_front(&batch)) != NULL;) {
		struct dp_job *j = tn_list_entry(node, struct dp_job, link);
		j->done(j);
	}
}

static void reap_ready(struct dp_source *s, uint32_t events)
{
	uint64_t count;

	(void)events;
	(void)!read(s->fd, &count, sizeof count);
	reap_deliver(tn_container_of(s, struct dp_reap, finished));
}

tn_status dp_reap_init(struct dp_reap *r, struct dp_loop *loop)
{
	tn_status s;

	*r = (struct dp_reap){ .loop = loop, .finished = { .ready = reap_ready, .fd = -1 } };
	tn_list_init(&r->todo);
	tn_list_init(&r->ready);
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->work, NULL);
	r->finished.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (r->finished.fd < 0)
		return tn_status_from_errno(errno);
	s = dp_loop_add(loop, &r->finished, EPOLLIN);
	while (s == TN_OK && r->thread_cnt < DP_REAP_THREADS) {
		int err = pthread_create(&r->threads[r->thread_cnt], NULL, reap_main, r);
		if (err != 0)
			s = tn_status_from_errno(err);
		else
			(void)pthread_setname_np(r->threads[r->thread_cnt++], "tent-slow");
	}
	if (s != TN_OK)
		dp_reap_fini(r);
	return s;
}

void dp_reap_fini(struct dp_reap *r)
{
	if (r->loop == NULL)
		return;
	pthread_mutex_lock(&r->lock);
	r->stop = true;
	pthread_cond_broadcast(&r->work);
	pthread_mutex_unlock(&r->lock);
	for (uint32_t i = 0; i < r->thread_cnt; i++)
		pthread_join(r->threads[i], NULL);
	r->thread_cnt = 0;
	reap_deliver(r);
	dp_loop_del(r->loop, &r->finished);
	if (r->finished.fd >= 0)
		close(r->finished.fd);
	pthread_cond_destroy(&r->work);
	pthread_mutex_destroy(&r->lock);
	r->loop = NULL;
}

void dp_reap_submit(struct dp_reap *r, struct dp_job *j)
{
	tn_list_init(&j->link);
	pthread_mutex_lock(&r->lock);
	tn_list_push_back(&r->todo, &j->link);
	pthread_cond_signal(&r->work);
	pthread_mutex_unlock(&r->lock);
}
