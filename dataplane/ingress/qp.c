/* SPDX-License-Identifier: Apache-2.0
 * Building a queue pair's private half, and its table of open batches. new/free: control thread; the rest: worker. */
#include "dataplane/ingress/qp.h"

#include <stdlib.h>

#include "common/bits.h"
#include "common/rand.h"

struct dp_qp *dp_qp_new(const struct dp_qp_cfg *cfg)
{
	struct shr_qp_layout lay;
	if (shr_qp_layout(cfg->sq_entries, cfg->note_slots, &lay) != TN_OK || lay.region_bytes != cfg->region_bytes ||
	    lay.cq_entries != cfg->cq_entries)
		return NULL;
	struct dp_qp *qp = calloc(1, sizeof *qp);
	uint32_t buckets = (uint32_t)tn_pow2_ceil(TN_MIN(lay.sq_entries, 256u));
	struct tn_list *batches = calloc(buckets, sizeof *batches);
	if (!qp || !batches || tn_rand_os(&qp->batch_seed, sizeof qp->batch_seed) != TN_OK) {
		free(batches);
		free(qp);
		return NULL;
	}
	qp->cfg = *cfg;
	/* From our own numbers, not from the header: the application may already be writing to it. */
	qp->view = (struct shr_qp_view){
		.lay = lay,
		.qp = (struct shr_qp_shm *)(void *)cfg->region,
		.sq = (struct shr_sqe_shm *)(void *)(cfg->region + lay.sq_off),
		.cq = (struct shr_cqe_shm *)(void *)(cfg->region + lay.cq_off),
		.notes = lay.note_slots ? cfg->region + lay.note_off : NULL,
	};
	shr_sq_cons_init(&qp->sq, &qp->view);
	shr_cq_prod_init(&qp->cq, &qp->view);
	tn_list_init(&qp->link);
	tn_list_init(&qp->hot_link);
	tn_list_init(&qp->dirty_link);
	tn_list_init(&qp->requests);
	qp->batches = batches;
	qp->batch_mask = buckets - 1;
	for (uint32_t i = 0; i < buckets; i++)
		tn_list_init(&batches[i]);
	qp->bell.fd = -1;
	return qp;
}

void dp_qp_free(struct dp_qp *qp)
{
	if (!qp)
		return;
	free(qp->batches);
	free(qp);
}

static struct tn_list *bucket(const struct dp_qp *qp, uint32_t number)
{
	uint64_t h = (number ^ qp->batch_seed) * UINT64_C(0x9e3779b97f4a7c15);
	return &qp->batches[(h >> 40) & qp->batch_mask];
}

struct dp_batch *dp_qp_batch(const struct dp_qp *qp, uint32_t number)
{
	tn_list_foreach(node, bucket(qp, number)) {
		struct dp_batch *b = tn_list_entry(node, struct dp_batch, link);
		if (b->number == number)
			return b;
	}
	return NULL;
}

void dp_qp_batch_add(struct dp_qp *qp, struct dp_batch *b)
{
	tn_list_push_front(bucket(qp, b->number), &b->link);
	qp->batch_cnt++;
}

void dp_qp_batch_close(struct dp_qp *qp, struct dp_batch *b)
{
	if (!tn_list_linked(&b->link))
		return;
	tn_list_unlink(&b->link);
	qp->batch_cnt--;
}
