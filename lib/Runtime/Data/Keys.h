//===- Keys.h - PRNG keys as JAX advances them ------------------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_DATA_KEYS_H
#define FP8_LIB_RUNTIME_DATA_KEYS_H

#include "../Support/TensorType.h"

namespace fp8::rt {

/// The words of a key: two (threefry2x32) or four (rbg: two threefry keys).
using Key = std::vector<uint32_t>;

/// Returns whether it is a key or an array of keys: the last dimension holds 2
/// or 4 words.
bool isKeyType(const TensorType &type);

/// Returns jax.random.key_data(jax.random.key(seed)), of `words` words. Without
/// jax_enable_x64, JAX uses only the low half of larger seeds.
Key keyFromSeed(uint64_t seed, int64_t words);

/// Computes jax.random.fold_in for each pair of words.
Key foldIn(Key key, uint32_t data);

/// Returns the initial value of a key argument that has none: the key of a
/// seed, different for each argument (`ordinal`). Throws Error if the argument
/// is not a key.
Key firstKey(uint64_t seed, size_t ordinal, const TensorInfo &argument);

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_DATA_KEYS_H
