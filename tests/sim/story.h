/* SPDX-License-Identifier: Apache-2.0
 * What happens in one seed. */
#ifndef SIM_STORY_H
#define SIM_STORY_H

/* Runs it to its end; files go to `dir`. Returns when everything held; sim_fail() otherwise. */
void sim_story(const char *dir);

#endif
