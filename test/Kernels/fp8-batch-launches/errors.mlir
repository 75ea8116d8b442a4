// RUN: fp8-opt %s --fp8-batch-launches --verify-diagnostics

// expected-error @+1 {{expected a schedule with allocations but got an arena: run this pass before fp8-plan-memory}}
fp8.schedule @planned(%arena: memref<64xi8>) arena_bytes = 64 {
  fp8.return
}
