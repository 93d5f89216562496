# volumed_library(NAME [WALKED] [SOURCES file...] [DEPS target...]): the one static library of a folder.
# A folder that has headers only becomes an INTERFACE library.
# WALKED: crash walks and random sequences spend their time in it, so AddressSanitizer gets it optimised, which
# takes twice as long to compile; nothing else is optimised under a sanitizer.
function(volumed_library name)
  cmake_parse_arguments(ARG "WALKED" "" "SOURCES;DEPS" ${ARGN})
  if(ARG_SOURCES)
    add_library(${name} STATIC ${ARG_SOURCES})
    target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(${name} PUBLIC ${ARG_DEPS})
    if(ARG_WALKED AND VOLUMED_SANITIZE MATCHES address)
      target_compile_options(${name} PRIVATE -O1)
    endif()
  else()
    add_library(${name} INTERFACE)
    target_include_directories(${name} INTERFACE ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(${name} INTERFACE ${ARG_DEPS})
  endif()
endfunction()

# volumed_unity_groups(TARGET LIST): a unity build puts files of this list beside each other only.
function(volumed_unity_groups target list)
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
  set(at 0)
  set(size 8)
  if(CMAKE_UNITY_BUILD_BATCH_SIZE)
    set(size ${CMAKE_UNITY_BUILD_BATCH_SIZE})
  endif()
  foreach(source IN LISTS ${list})
    math(EXPR group "${at} / ${size}")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${list}_${group})
    math(EXPR at "${at} + 1")
  endforeach()
endfunction()

# Everything that `ctest -L unit` runs, and what of it has more than one thread: the rest has no race for
# ThreadSanitizer to find.
add_custom_target(unit_tests)
add_custom_target(threaded_tests)

# volumed_quick_to_compile(TARGET): for code of the tests alone, which is optimised less than what is tested: that
# takes a quarter less time, and no optimisation at all as long as a full one. Under a sanitizer nothing of it is;
# that every pointer is looked at before each use of it would cost another third, and AddressSanitizer sees a use of
# one that leads nowhere. What is tested keeps all of it.
function(volumed_quick_to_compile target)
  if(NOT VOLUMED_SANITIZE)
    target_compile_options(${target} PRIVATE -O1)
  endif()
  if(VOLUMED_SANITIZE MATCHES undefined)
    target_compile_options(${target} PRIVATE
      -fno-sanitize=null,alignment,vptr,object-size,nonnull-attribute,returns-nonnull-attribute)
  endif()
endfunction()

# volumed_suites_filter(SOURCE OUT): the GoogleTest filter of all tests in a file, "" if it has none. It is read from
# the file, so that no suite can be forgotten; a file that is changed is read again.
function(volumed_suites_filter source out)
  get_filename_component(path ${source} ABSOLUTE)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  file(STRINGS ${path} tests REGEX "^(TYPED_)?TEST(_F|_P)?\\(")
  list(TRANSFORM tests REPLACE "^[A-Z_]*\\(([A-Za-z0-9]+),.*" "\\1.*:*/\\1.*:\\1/*.*")
  list(REMOVE_DUPLICATES tests)
  list(JOIN tests ":" filter)
  if(filter STREQUAL "" AND source MATCHES "_test\\.cc$")
    message(FATAL_ERROR "${source} has no test")
  endif()
  set(${out} ${filter} PARENT_SCOPE)
endfunction()

# volumed_ctest_entries(ENTRY SHARDS OUT COMMAND word...): the CTest entry, or SHARDS of them, each with a part of the
# tests; their names are appended to OUT.
function(volumed_ctest_entries entry shards out)
  cmake_parse_arguments(PARSE_ARGV 3 ARG "" "" "COMMAND")
  if(NOT shards)
    add_test(NAME ${entry} COMMAND ${ARG_COMMAND})
    list(APPEND ${out} ${entry})
  else()
    math(EXPR last "${shards} - 1")
    foreach(shard RANGE ${last})
      add_test(NAME ${entry}_${shard} COMMAND ${ARG_COMMAND})
      set_tests_properties(${entry}_${shard} PROPERTIES
        ENVIRONMENT "GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${shard}")
      list(APPEND ${out} ${entry}_${shard})
    endforeach()
  endif()
  set(${out} ${${out}} PARENT_SCOPE)
endfunction()

# volumed_test(NAME LABEL unit|root SOURCES file... [DEPS target...]): a GoogleTest executable, one
# CTest entry. `root` tests mount for real: they run in a mount namespace of their own.
# ONE_THREAD: neither it nor what it tests ever starts a thread (tests/unit/one_thread.cc holds it to that), so
# ThreadSanitizer has nothing to find; also the label for that, one-thread. SIMULATED: likewise, but that it hands over
# from one thread to another, of which one goes at a time. GRPC: both ends of a gRPC connection are in it, which
# keeps it from ThreadSanitizer (tests/unit/agent/CMakeLists.txt says why); also a label.
# SHARDS N: its tests take so long that CTest starts it N times, each with a part of them.
# CTest begins with those that have the longest TIMEOUT.
# BY_SOURCE: a CTest entry for the tests of each file instead, NAME_<file without _test.cc>, or SHARDS of them. The
# property TESTS_RUN of a source is a GoogleTest filter for its entry, which then has no others of the file's tests.
# A unity build puts its files together, eight at a time: none of them has a name that another has too.
function(volumed_test name)
  cmake_parse_arguments(ARG "ONE_THREAD;SIMULATED;GRPC;BY_SOURCE" "LABEL;TIMEOUT;SHARDS" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES UNITY_BUILD_BATCH_SIZE 8)
  volumed_quick_to_compile(${name})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} places GTest::gtest GTest::gmock GTest::gtest_main)
  if(ARG_LABEL STREQUAL "unit")
    add_dependencies(unit_tests ${name})
    if(NOT ARG_ONE_THREAD AND NOT ARG_SIMULATED AND NOT ARG_GRPC)
      add_dependencies(threaded_tests ${name})
    endif()
  endif()
  if(ARG_ONE_THREAD AND NOT VOLUMED_SANITIZE)
    target_link_libraries(${name} PRIVATE one_thread)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(ARG_ONE_THREAD OR ARG_SIMULATED)
    list(APPEND ARG_LABEL one-thread)
  endif()
  if(ARG_GRPC)
    list(APPEND ARG_LABEL grpc)
  endif()
  set(tests)
  if(ARG_BY_SOURCE)
    foreach(source IN LISTS ARG_SOURCES)
      get_source_file_property(filter ${source} TESTS_RUN)
      if(NOT filter)
        volumed_suites_filter(${source} filter)
      endif()
      if(filter)
        get_filename_component(part ${source} NAME)
        string(REGEX REPLACE "_test\\.cc$" "" part ${part})
        volumed_ctest_entries(${name}_${part} "${ARG_SHARDS}" tests COMMAND ${name} --gtest_filter=${filter})
      endif()
    endforeach()
  else()
    volumed_ctest_entries(${name} "${ARG_SHARDS}" tests COMMAND ${name})
  endif()
  # Two to a processor: most wait half of their time. What computes all the time counts twice.
  set(slots 1)
  if(ARG_ONE_THREAD OR ARG_SIMULATED OR VOLUMED_SANITIZE)
    set(slots 2)
  endif()
  set_tests_properties(${tests} PROPERTIES LABELS "${ARG_LABEL}" TIMEOUT ${ARG_TIMEOUT} COST ${ARG_TIMEOUT}
                       PROCESSORS ${slots})
endfunction()
