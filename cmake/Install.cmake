# The files that `cmake --install` installs, and the targets of find_package(FP8):
#   FP8::runtime            the runtime library, for programs that train
#   FP8::compiler           the compiler's C interface
#   FP8::compiler_headers   with COMPONENTS Compiler: headers for plugins of
#                           fp8-opt, with those of MLIR
# Everything is under one prefix and located relative to it.
include(CMakePackageConfigHelpers)
set(FP8_CMAKE_DIR lib/cmake/FP8)

set_target_properties(fp8_runtime PROPERTIES EXPORT_NAME runtime)
set_target_properties(fp8_compiler PROPERTIES EXPORT_NAME compiler
  INSTALL_RPATH "$ORIGIN" INSTALL_RPATH_USE_LINK_PATH ON)
target_include_directories(fp8_runtime INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
add_library(fp8_compiler_headers INTERFACE)
set_target_properties(fp8_compiler_headers PROPERTIES EXPORT_NAME compiler_headers)
target_include_directories(fp8_compiler_headers INTERFACE $<INSTALL_INTERFACE:include>)

install(TARGETS fp8_runtime fp8_compiler fp8_compiler_headers EXPORT FP8Targets LIBRARY DESTINATION lib)
# The runtime opens transports, which are beside it.
get_property(transports GLOBAL PROPERTY FP8_TRANSPORTS)
if(transports)
  install(TARGETS ${transports} LIBRARY DESTINATION lib)
endif()
# LLVM and MLIR are not installed: they stay where they are.
set_target_properties(fp8-opt fp8-run fp8-train fp8-lsp-server fp8-reduce PROPERTIES
  INSTALL_RPATH "$ORIGIN/../lib" INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS fp8-opt fp8-run fp8-train fp8-lsp-server fp8-reduce RUNTIME DESTINATION bin)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION include
  FILES_MATCHING PATTERN "*.h" PATTERN "*.td")
install(DIRECTORY ${PROJECT_BINARY_DIR}/include/ DESTINATION include
  FILES_MATCHING PATTERN "*.inc")
install(EXPORT FP8Targets NAMESPACE FP8:: DESTINATION ${FP8_CMAKE_DIR})

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/FP8Config.cmake.in
  ${PROJECT_BINARY_DIR}/FP8Config.cmake INSTALL_DESTINATION ${FP8_CMAKE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/FP8ConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/FP8Config.cmake ${PROJECT_BINARY_DIR}/FP8ConfigVersion.cmake
  DESTINATION ${FP8_CMAKE_DIR})
