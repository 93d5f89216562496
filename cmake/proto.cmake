# A program with this property gets protobuf's archive, and so no C++ library to load and relocate at
# its start; for one that is started often. It asks for the static C++ runtime itself.
define_property(TARGET PROPERTY VOLUMED_STARTS_OFTEN)
find_library(VOLUMED_PROTOBUF_ARCHIVE libprotobuf.a REQUIRED)
find_package(ZLIB REQUIRED)

# What messages are made of: the program that starts often takes the archive.
set(starts_often $<BOOL:$<TARGET_PROPERTY:VOLUMED_STARTS_OFTEN>>)
add_library(volumed_protobuf INTERFACE)
target_link_libraries(volumed_protobuf INTERFACE
  $<IF:${starts_often},${VOLUMED_PROTOBUF_ARCHIVE},protobuf::libprotobuf>
  $<${starts_often}:ZLIB::ZLIB>)

# What is made before anything is compiled, and all that clang-tidy needs of a build.
add_custom_target(generated)

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
  add_custom_target(${name}_generated DEPENDS ${generated})
  add_dependencies(generated ${name}_generated)
  add_library(${name} STATIC ${generated})
  target_include_directories(${name} SYSTEM PUBLIC ${out})
  target_compile_options(${name} PRIVATE -w)
  target_link_libraries(${name} PUBLIC volumed_protobuf)
  if(ARG_GRPC)
    target_link_libraries(${name} PUBLIC gRPC::grpc++)
  endif()
endfunction()
