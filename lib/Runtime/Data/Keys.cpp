//===- Keys.cpp - PRNG keys as JAX advances them --------------------------===//

#include "Keys.h"
#include "../Support/Error.h"

namespace fp8::rt {

/// Threefry 2x32 with 20 rounds: encrypts a block of two words.
static void threefry(const uint32_t key[2], uint32_t block[2]) {
  static const int rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const uint32_t schedule[3] = {key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDA};
  block[0] += schedule[0];
  block[1] += schedule[1];
  for (uint32_t group = 0; group < 5; ++group) {
    for (int rotation : rotations[group % 2]) {
      block[0] += block[1];
      block[1] = block[1] << rotation | block[1] >> (32 - rotation);
      block[1] ^= block[0];
    }
    block[0] += schedule[(group + 1) % 3];
    block[1] += schedule[(group + 2) % 3] + group + 1;
  }
}

bool isKeyType(const TensorType &type) {
  return (type.dtype == FP8_DTYPE_U32 || type.dtype == FP8_DTYPE_I32) &&
         !type.dims.empty() && (type.dims.back() == 2 || type.dims.back() == 4);
}

Key keyFromSeed(uint64_t seed, int64_t words) {
  Key key;
  while (static_cast<int64_t>(key.size()) < words) {
    key.push_back(static_cast<uint32_t>(seed >> 32));
    key.push_back(static_cast<uint32_t>(seed));
  }
  return key;
}

Key foldIn(Key key, uint32_t data) {
  for (size_t i = 0; i + 1 < key.size(); i += 2) {
    uint32_t block[2] = {0, data};
    threefry(&key[i], block);
    key[i] = block[0];
    key[i + 1] = block[1];
  }
  return key;
}

Key firstKey(uint64_t seed, size_t ordinal, const TensorInfo &argument) {
  if (!isKeyType(argument.type) || argument.type.dims.size() != 1)
    throw Error(FP8_ERROR_MISMATCH, str("key argument '", argument.name,
                                        "': expected u32[2], u32[4] "
                                        "or an initial value but got ",
                                        argument.type.text()));
  Key key = keyFromSeed(seed, argument.type.dims[0]);
  // Fold in numbers from the top, which no step number reaches.
  return ordinal == 0 ? key : foldIn(key, -static_cast<uint32_t>(ordinal));
}

} // namespace fp8::rt
