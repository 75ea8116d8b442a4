//===- CollectiveImages.cpp - CollectiveKernels.cpp, compiled -------------===//

#include "CollectiveImages.h"

namespace fp8::rt::gpu {

// The build makes both files (CMakeLists.txt).
const char collectiveKernelsPTX[] =
#include "CollectiveKernels.ptx.inc"
    ;

const char collectiveKernelsIR[] =
#include "CollectiveKernels.ll.inc"
    ;

} // namespace fp8::rt::gpu
