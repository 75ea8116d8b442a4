// RUN: fp8-opt %s --fp8-analyze-signature --split-input-file --verify-diagnostics

// Files of tensors, logs and the cache hold names in UTF-8.
// expected-error @below {{expected names in UTF-8 but got 'x['w�']' for argument 0}}
func.func public @argument(%x: tensor<4xf32> loc("x['w\FF']")) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// expected-error @below {{expected names in UTF-8 but got 'result['w�']' for result 0}}
func.func public @result(%x: tensor<4xf32> loc("grüß")) -> (tensor<4xf32> {jax.result_info = "result['w\FF']"}) {
  return %x : tensor<4xf32>
}
