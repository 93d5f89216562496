# Warnings are errors, in every preset and for both compilers.
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
                    -Wswitch-enum -Wimplicit-fallthrough -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # gcc 12 reports these inside libstdc++ for correct code once it inlines across std::variant and
  # std::optional.
  add_compile_options(-Wno-maybe-uninitialized -Wno-restrict)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_options(-Wthread-safety)
endif()
if(VOLUMED_SANITIZE)
  add_compile_options(-fsanitize=${VOLUMED_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  # The two compilers have no macro in common that says so.
  add_compile_definitions(VOLUMED_SANITIZED)
  add_link_options(-fsanitize=${VOLUMED_SANITIZE})
endif()
