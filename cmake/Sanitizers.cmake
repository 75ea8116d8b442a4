# FP8_SANITIZE=address,undefined instruments our own code. LLVM and MLIR come
# from Debian, and compiled kernels are not C++: neither is instrumented.
set(FP8_SANITIZE "" CACHE STRING
    "Sanitizers to build with, as for -fsanitize= (address,undefined)")
if(NOT FP8_SANITIZE)
  return()
endif()

# vptr and function need RTTI, without which LLVM is built.
add_compile_options(-fsanitize=${FP8_SANITIZE} -fno-sanitize=vptr,function
  -fno-sanitize-recover=all -fno-omit-frame-pointer -gline-tables-only -O1)
# A shared library takes the sanitizer's symbols from the program that loads it.
string(REPLACE "-Wl,-z,defs" "" CMAKE_SHARED_LINKER_FLAGS
       "${CMAKE_SHARED_LINKER_FLAGS}")
add_link_options(-fsanitize=${FP8_SANITIZE})

# Options that every program needs are compiled in rather than set in the environment.
add_library(fp8_sanitizer_options OBJECT
            ${CMAKE_CURRENT_LIST_DIR}/SanitizerOptions.c)
link_libraries(
  $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:$<TARGET_OBJECTS:fp8_sanitizer_options>>)
