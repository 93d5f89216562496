# volumed_proto(NAME file.proto [GRPC]): one library per proto file, used only where its name says.
function(volumed_proto name file)
  cmake_parse_arguments(ARG "GRPC" "" "" ${ARGN})
  get_filename_component(stem ${file} NAME_WE)
  set(out ${CMAKE_CURRENT_BINARY_DIR})
  set(generated ${out}/${stem}.pb.cc)
  set(command protobuf::protoc --cpp_out=${out} -I${CMAKE_CURRENT_SOURCE_DIR})
  if(ARG_GRPC)
    list(APPEND generated ${out}/${stem}.grpc.pb.cc)
    list(APPEND command --grpc_out=${out}
                --plugin=protoc-gen-grpc=$<TARGET_FILE:gRPC::grpc_cpp_plugin>)
  endif()
  add_custom_command(OUTPUT ${generated}
                     COMMAND ${command} ${CMAKE_CURRENT_SOURCE_DIR}/${file}
                     DEPENDS ${file} VERBATIM)
  add_library(${name} STATIC ${generated})
  target_include_directories(${name} SYSTEM PUBLIC ${out})
  target_compile_options(${name} PRIVATE -w)
  target_link_libraries(${name} PUBLIC protobuf::libprotobuf)
  if(ARG_GRPC)
    target_link_libraries(${name} PUBLIC gRPC::grpc++)
  endif()
endfunction()
