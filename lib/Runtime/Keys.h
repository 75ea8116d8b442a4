//===- Keys.h - PRNG keys as JAX advances them ------------------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_KEYS_H
#define FP8_LIB_RUNTIME_KEYS_H

#include "Support.h"

namespace fp8::rt {

/// The words of a key: two (threefry2x32) or four (rbg: two threefry keys).
using Key = std::vector<uint32_t>;

/// A key or an array of keys: the last dimension holds 2 or 4 words.
bool isKeyType(const TensorType &type);

/// jax.random.key_data(jax.random.key(seed)), of `words` words. Without
/// jax_enable_x64, JAX takes the low half of larger seeds alone.
Key keyFromSeed(uint64_t seed, int64_t words);

/// jax.random.fold_in, of every two words.
Key foldIn(Key key, uint32_t data);

/// What a key argument begins with that has no value: the key of a seed; of
/// several arguments each (`ordinal`) has another. Throws Error where the
/// argument is no key.
Key firstKey(uint64_t seed, size_t ordinal, const TensorInfo &argument);

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_KEYS_H
