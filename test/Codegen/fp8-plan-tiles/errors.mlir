// RUN: fp8-opt %s --fp8-plan-tiles=threads=0 --verify-diagnostics

// expected-error@below {{expected threads > 0 but got 0}}
module {}
