/* SPDX-License-Identifier: Apache-2.0
 * The redacted snapshot of /diagnostics, schema version 1. Numbers, closed names and build identity only: nothing that
 * came from an application or a peer can be in its inputs. Pure; any thread. */
#ifndef CP_OBSERVE_DIAGNOSTICS_H
#define CP_OBSERVE_DIAGNOSTICS_H

#include "common/text_buf.h"
#include "controlplane/observe/prom_text.h"
#include "controlplane/observe/ready.h"

struct cp_diagnostics_in {
	const struct cp_ready_in *ready;
	uint32_t reasons;              /* as cp_ready_evaluate() said */
	const struct cp_build *build;  /* this control plane */
	const char *engine_build;      /* the data plane's own words, "" = unknown */
	uint64_t uptime_ns;            /* control plane */
	uint64_t engine_uptime_ns;     /* 0 = unknown */
	uint64_t config_generation, engine_generation;
	bool engine_metrics_compiled, recording;
};

void cp_diagnostics_json(const struct cp_diagnostics_in *in, struct tn_text *out);

#endif
