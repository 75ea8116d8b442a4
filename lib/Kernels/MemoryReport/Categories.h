//===- Categories.h - All categories in their order -------------*- C++ -*-===//

#ifndef FP8_LIB_KERNELS_MEMORYREPORT_CATEGORIES_H
#define FP8_LIB_KERNELS_MEMORYREPORT_CATEGORIES_H

#include "fp8/Kernels/MemoryReport.h"

namespace mlir::fp8 {

inline constexpr StateCategory kStateCategories[] = {
    StateCategory::Master, StateCategory::Moment1,   StateCategory::Moment2,
    StateCategory::Scale,  StateCategory::FP8Weight, StateCategory::Other};
inline constexpr MemoryCategory kMemoryCategories[] = {
    MemoryCategory::SavedActivation, MemoryCategory::Attention,
    MemoryCategory::Gradient,        MemoryCategory::FP8Weight,
    MemoryCategory::OtherWeight,     MemoryCategory::Table,
    MemoryCategory::Temporary};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_MEMORYREPORT_CATEGORIES_H
