# volumed_library(NAME [SOURCES file...] [DEPS target...]): the one static library of a folder.
# A folder that has headers only becomes an INTERFACE library.
function(volumed_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  if(ARG_SOURCES)
    add_library(${name} STATIC ${ARG_SOURCES})
    target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(${name} PUBLIC ${ARG_DEPS})
  else()
    add_library(${name} INTERFACE)
    target_include_directories(${name} INTERFACE ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(${name} INTERFACE ${ARG_DEPS})
  endif()
endfunction()

# Everything that `ctest -L unit` runs.
add_custom_target(unit_tests)

# volumed_test(NAME LABEL unit|root SOURCES file... [DEPS target...]): a GoogleTest executable, one
# CTest entry. `root` tests mount for real: they run in a mount namespace of their own.
# SIMULATED: its world has a clock of its own and one thread at a time; also the label for that.
# UNITY lets a unity build put its files together: none of them has a name that another has too.
function(volumed_test name)
  cmake_parse_arguments(ARG "UNITY;SIMULATED" "LABEL;TIMEOUT" "SOURCES;DEPS;ARGS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES UNITY_BUILD_BATCH_SIZE 8)
  if(VOLUMED_SANITIZE)
    target_compile_options(${name} PRIVATE -O0)  # in half the time; what is tested keeps its -O1
  endif()
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gtest GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name} ${ARG_ARGS})
  if(ARG_LABEL STREQUAL "unit")
    add_dependencies(unit_tests ${name})
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(ARG_SIMULATED)
    list(APPEND ARG_LABEL simulated)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABEL}" TIMEOUT ${ARG_TIMEOUT})
endfunction()
