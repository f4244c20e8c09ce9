/* SPDX-License-Identifier: Apache-2.0
 * The public header is C++ too: it compiles alone, its initialisers work, and its functions have C linkage. */
#include <tent/tent.h>

extern "C" tent_status header_cxx(tent_context **ctx)
{
	tent_options options = TENT_OPTIONS_INIT;
	tent_access access = TENT_ACCESS_INIT;
	tent_qp_options qp_options = TENT_QP_OPTIONS_INIT;
	tent_request request = tent_request();
	tent_status (*linkage)(const tent_options *, tent_context **) = tent_open;

	request.opcode = TENT_WRITE;
	options.app_name = "c++";
	(void)access;
	(void)qp_options;
	(void)request;
	return linkage(&options, ctx);
}
