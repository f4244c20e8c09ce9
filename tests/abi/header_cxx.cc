/* SPDX-License-Identifier: Apache-2.0
 * The public header is C++ too: it compiles alone, its initialisers work, and its functions have C linkage. */
#include <tent/tent.h>

extern "C" tent_status header_cxx(tent_context **ctx)
{
	tent_options options = TENT_OPTIONS_INIT;
	tent_access access = TENT_ACCESS_INIT;
	tent_qp_options qp_options = TENT_QP_OPTIONS_INIT;
	tent_info info = TENT_INFO_INIT;
	static tent_note note = TENT_NOTE_INIT;
	tent_request request = tent_request();
	tent_completion completion = tent_completion();
	tent_status (*linkage)(const tent_options *, tent_context **) = tent_open;

	request.opcode = TENT_WRITE;
	request.priority = TENT_PRIORITY_HIGH;
	request.hint = TENT_TRANSPORT_TCP;
	if (completion.status == TENT_TIMEOUT && completion.outcome == TENT_OUTCOME_TIMEOUT)
		return tent_status_name(completion.status) != nullptr ? completion.status : TENT_OK;
	(void)info;
	(void)note;
	options.app_name = "c++";
	(void)access;
	(void)qp_options;
	(void)request;
	return linkage(&options, ctx);
}
