# Most of a compilation is parsing MLIR's headers. Precompiling them makes a
# first build three times as fast. Our own headers are excluded, so that editing
# one rebuilds only the sources that include it.
option(FP8_PRECOMPILED_HEADERS "Compile MLIR's headers once for all sources" ON)

# A target that holds the compiled headers; other targets reuse them.
function(add_precompiled_mlir_headers)
  if(NOT FP8_PRECOMPILED_HEADERS)
    return()
  endif()
  add_library(fp8_precompiled_headers OBJECT ${PROJECT_SOURCE_DIR}/cmake/PrecompiledHeaders.cpp)
  target_precompile_headers(fp8_precompiled_headers PRIVATE
    ${PROJECT_SOURCE_DIR}/cmake/PrecompiledHeaders.h)
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    # A time stamp in the precompiled headers would defeat ccache.
    target_compile_options(fp8_precompiled_headers PRIVATE
      "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endfunction()

# Lets `target`, which includes MLIR's headers, reuse the compiled ones.
function(use_precompiled_mlir_headers target)
  if(FP8_PRECOMPILED_HEADERS)
    target_precompile_headers(${target} REUSE_FROM fp8_precompiled_headers)
  endif()
endfunction()
