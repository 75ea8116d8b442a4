# Most of a compilation is parsing the headers of MLIR and of the two dialects.
# Precompiling them makes a first build several times as fast. Our other headers are
# excluded, so that editing one rebuilds only the sources that include it.
option(FP8_PRECOMPILED_HEADERS "Compile the headers of MLIR and of the dialects once for all sources" ON)

# A target that holds the compiled headers; other targets reuse them.
if(FP8_PRECOMPILED_HEADERS)
  add_library(fp8_precompiled_headers OBJECT ${PROJECT_SOURCE_DIR}/cmake/PrecompiledHeaders.cpp)
  target_precompile_headers(fp8_precompiled_headers PRIVATE
    ${PROJECT_SOURCE_DIR}/cmake/PrecompiledHeaders.h)
  add_dependencies(fp8_precompiled_headers FP8OpsIncGen FP8StableHLOIncGen)
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    # A time stamp in the precompiled headers would defeat ccache.
    target_compile_options(fp8_precompiled_headers PRIVATE
      "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endif()

# Lets `target` reuse the compiled headers.
function(use_precompiled_headers target)
  if(FP8_PRECOMPILED_HEADERS)
    target_precompile_headers(${target} REUSE_FROM fp8_precompiled_headers)
    # Programs are compiled with -fPIE by default, the headers with -fPIC.
    get_target_property(type ${target} TYPE)
    if(type STREQUAL EXECUTABLE)
      target_compile_options(${target} PRIVATE -fPIC)
    endif()
  endif()
endfunction()
