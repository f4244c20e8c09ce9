/* SPDX-License-Identifier: Apache-2.0
 * The table of verbs: the only list of what tentctl can do. Help, usage errors, the bash completion and the check of
 * the manual page all read it. To add a verb: a row here, its function in cmd_<noun>.c, its place in tentctl.1. */
#include "controlplane/tentctl/tentctl.h"

const struct tctl_verb tctl_verbs[] = {
    {"status", NULL, "", "the pair of daemons on this host at a glance", tctl_cmd_status},
    {"segment", "list", "[--first N] [--count N]", "segments published on this host", tctl_cmd_segment_list},
    {"segment", "show", "NAME", "one segment in full", tctl_cmd_segment_show},
    {"segment", "publish", "NAME {--file FILE | --size BYTES} [--writable] [--output FILE] [--peer PEER]...",
     "publish a file, or room for one; stays until SIGTERM", tctl_cmd_segment_publish},
    {"segment", "withdraw", "NAME", "take a segment of this host away from its readers", tctl_cmd_segment_withdraw},
    {"put", NULL, "[--transport KIND] [--stall TIME] FILE [PEER/]SEGMENT",
     "write a file into a segment and verify it there", tctl_cmd_put},
    {"get", NULL, "[--transport KIND] [--stall TIME] [PEER/]SEGMENT FILE", "read a segment into a file and verify it",
     tctl_cmd_get},
    {"peer", "list", "", "other hosts: reachable, ticket, lanes", tctl_cmd_peer_list},
    {"peer", "probe", "PEER", "ask a peer's control plane for a sign of life", tctl_cmd_peer_probe},
    {"config", "check", "[FILE]", "read a configuration and say what is wrong with it", tctl_cmd_config_check},
    {"config", "dump", "[--effective] [--origin]", "the configuration as it counts", tctl_cmd_config_dump},
    {"config", "reload", "", "let both daemons of this host read their configuration again", tctl_cmd_config_reload},
    {"pause", NULL, "", "requests wait on this host; what is under way ends", tctl_cmd_pause},
    {"resume", NULL, "", "requests go on after a pause", tctl_cmd_resume},
    {"drain", NULL, "[--grace TIME]", "let the data plane end when it has done what it took", tctl_cmd_drain},
    {"keygen", NULL, "[--show] [FILE]", "make the key of this host; prints the public half", tctl_cmd_keygen},
    {"verify", NULL, "", "check that the counters of this host add up", tctl_cmd_verify},
    {"top", NULL, "[--once] [--interval TIME]", "throughput, latency, failures, load: live", tctl_cmd_top},
    {"explain", NULL, "[--bytes N] [--priority P] [--intent I] {PEER | SEGMENT | PEER/SEGMENT}",
     "which transports would carry a request, and why not the others", tctl_cmd_explain},
    {"events", NULL,
     "[--follow] [--count N] [--since TIME] [--spans] [--event NAME] [--transport KIND] [--operation OP] [--phase PHASE] "
     "[--reason REASON] [--status STATUS] [--request N] [--trace ID]",
     "what failed, was slow or hung lately, and live", tctl_cmd_events},
    {"request", "show", "REQUEST", "how one request stands now, what it waits for, and why not another transport",
     tctl_cmd_request_show},
    {"trace", NULL, "{REQUEST | TRACE}", "one request or trace: its attempts and events in the order of time", tctl_cmd_trace},
    {"doctor", NULL, "[--quiet]", "what is wrong with this host and how to fix it; needs no daemon", tctl_cmd_doctor},
    {"postmortem", NULL, "[--events N] [--spans] [GENERATION]", "what a dead data plane left behind; needs no daemon",
     tctl_cmd_postmortem},
    {"bundle", NULL, "[--strict] [--output FILE]", "all that a bug report needs in one file, without names and keys",
     tctl_cmd_bundle},
    {"version", NULL, "", "versions of tentctl and of the control plane", tctl_cmd_version},
    {NULL, NULL, NULL, NULL, NULL},
};
