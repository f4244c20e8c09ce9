# SPDX-License-Identifier: Apache-2.0
# The control side of the data plane and its daemon; included from dataplane/CMakeLists.txt (paths are of that folder).
add_library(tent_dp_control STATIC
	config.c
	control.c
	control_state.c
	crew.c
	ingress/attach.c
	ingress/client.c
	ingress/copy.c
	ingress/greet.c
	ingress/note.c
	ingress/refusal.c
	ingress/attach_qp.c
	ingress/ticket.c
	link/attach.c
	link/codec.c
	link/explain.c
	link/link.c
	link/load.c
	link/methods.c
	link/request.c
	loop.c
	reap.c
	segment/handles.c
	segment/local.c
	segment/map.c
	segment/names.c
	segment/peer.c
	segment/populate.c
	segment/remote.c
	segment/secret.c
)
add_library(tent::dp_control ALIAS tent_dp_control)
target_link_libraries(tent_dp_control
	PUBLIC tent_flags tent_common tent_shm_ring tent_dp_stream tent_dp_policy
	PRIVATE PkgConfig::ZMQ PkgConfig::JANSSON)

# The executable needs the worker (tent_dp_core); it is built once that library has one.
if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/worker.c)
	add_executable(tent-dataplane main.c daemon.c)
	target_link_libraries(tent-dataplane PRIVATE tent_dp_control tent_dp_core)
	# No lazy binding: the first call of a library function saves vector registers, which may hold a ticket, on the stack.
	target_link_options(tent-dataplane PRIVATE -Wl,-z,relro,-z,now)
	install(TARGETS tent-dataplane RUNTIME DESTINATION ${CMAKE_INSTALL_SBINDIR})
endif()
