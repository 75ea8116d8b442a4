# A batch of eight is as large a compilation as two or three of its sources,
# because they share the templates of MLIR. clang-tidy visits every declaration of
# the headers, so it takes hardly longer for a batch than for one source.
option(FP8_UNITY_BUILD "Compile the sources of a library in batches, which halves the time of a first build; OFF compiles each source alone, which is faster after a change" ON)

# Lets the sources of `target` be compiled in batches.
function(use_unity_build target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${FP8_UNITY_BUILD} UNITY_BUILD_BATCH_SIZE 24)
endfunction()

# Adds a library of the compiler. MLIR_LIBS are linked through libMLIR (not as
# LINK_LIBS, which would link static copies in addition to the shared library).
#   add_fp8_library(FP8Foo Foo.cpp DEPENDS FooIncGen FP8_LIBS FP8Bar MLIR_LIBS MLIRIR)
function(add_fp8_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;FP8_LIBS;MLIR_LIBS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  target_link_libraries(${name} PUBLIC ${ARG_FP8_LIBS})
  mlir_target_link_libraries(${name} PUBLIC ${ARG_MLIR_LIBS})
  # Linking libMLIR does not link libLLVM.
  target_link_libraries(${name} PUBLIC LLVM)
  use_precompiled_headers(${name})
  use_unity_build(${name})
endfunction()
