# Generates man pages from the programs' --help, and installs bash completion,
# which runs --help each time.
find_program(FP8_AWK awk REQUIRED)
set(manuals)

# fp8_manual(PROGRAM "what it is" [REGEX of the options to list])
function(fp8_manual program what)
  set(page ${PROJECT_BINARY_DIR}/man/${program}.1)
  set(script ${PROJECT_SOURCE_DIR}/tools/man/help-to-man.awk)
  add_custom_command(OUTPUT ${page}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/man
    COMMAND $<TARGET_FILE:${program}> --help > ${page}.help
    COMMAND ${FP8_AWK} -v name=${program} -v version=${PROJECT_VERSION}
            -v "what=${what}" -v "only=${ARGN}" -f ${script} ${page}.help > ${page}
    DEPENDS ${program} ${script}
    VERBATIM)
  set(manuals ${manuals} ${page} PARENT_SCOPE)
endfunction()

fp8_manual(fp8-opt "run passes of the fp8 compiler over a module"
  "^--?(fp8-.*|convert-(fp8|stablehlo|chlo)-.*|report-memory|help|version|o|pass-pipeline|load-pass-plugin|split-input-file|verify-diagnostics|mlir-print-ir-(before|after)(-all)?|mlir-print-debuginfo)$")
if(TARGET fp8-run)
  fp8_manual(fp8-run "compile a JAX training step and train with it in FP8")
endif()
fp8_manual(fp8-train "train with a package that fp8-run wrote")
fp8_manual(fp8-reduce "make a module smaller that shows a mistake")
fp8_manual(fp8-lsp-server "language server for modules of the fp8 compiler" "^--(help|version)$")

add_custom_target(fp8_manuals ALL DEPENDS ${manuals})
install(FILES ${manuals} DESTINATION share/man/man1)
# bash-completion looks for one file named after each program.
foreach(program fp8-opt fp8-run fp8-train fp8-reduce fp8-lsp-server)
  install(FILES ${PROJECT_SOURCE_DIR}/tools/completion/fp8.bash
    DESTINATION share/bash-completion/completions RENAME ${program})
endforeach()
