//===- Export.h - Export of trained weights ---------------------*- C++ -*-===//
//
// Determines the tensors of a file of weights, with names and formats, and
// builds the functions that compute them from the parameters and read them
// back.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_COMPILER_EXPORT_H
#define FP8_COMPILER_EXPORT_H

#include "fp8/Analysis/Signature.h"
#include "fp8/Dialect/FP8/Transforms/VerdictReport.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringMap.h"
#include <string>
#include <vector>

namespace mlir::fp8 {

/// The format of exported weights. F8E4M3FN applies to weights of linear
/// layers, with one scale per output channel; other weights are bf16.
enum class ExportFormat { F32, BF16, F8E4M3FN };

std::optional<ExportFormat> symbolizeExportFormat(StringRef text);
StringRef stringifyExportFormat(ExportFormat format);

/// One tensor of an export.
struct ExportedTensor {
  /// The path of the parameter and its type there.
  std::string source;
  RankedTensorType type;
  /// The name and type in the file.
  std::string name;
  RankedTensorType stored;
  /// For FP8: the dimensions that one scale spans, which dots contract.
  SmallVector<int64_t> contracted;
  /// Why it has this format.
  std::string why;

  bool isScaled() const { return !contracted.empty(); }
  std::string scaleName() const { return name + "_scale"; }
};

/// The tensors of an export.
class ExportPlan {
public:
  /// Plans the export of an imported step: its parameters and its frozen
  /// arguments. Fails if two tensors would have the same name.
  static FailureOr<ExportPlan> make(func::FuncOp step, ExportFormat format);

  /// Folds the factors s of smoothed gated units into their weights, so that
  /// the exported weights compute the product h/s: 1/s goes into the linear
  /// branch, s into the layer that reads the product. `step` must have been
  /// through the fp8 stage, so that its state has the factors.
  LogicalResult fold(func::FuncOp step, ArrayRef<GatedUnitVerdict> units);

  /// Builds a module with one function, as the fp8 stage leaves it, from
  /// parameters to the tensors of the file, or back. For a tensor with a
  /// factor, `buildEncode` also returns the number of elements that the factor
  /// changes other than through the scale.
  OwningOpRef<ModuleOp> buildEncode(MLIRContext *context) const;
  OwningOpRef<ModuleOp> buildDecode(MLIRContext *context) const;

  /// Returns JSON: every tensor with its source, type, scale and factors.
  std::string manifest() const;

private:
  /// A factor of a gated unit in one tensor.
  struct Fold {
    std::string unit; // the layer that reads the product
    std::string state;
    RankedTensorType stateType;
    ParameterChannels channels;
    int64_t count;
    bool inverse; // 1/s
    bool exact;
  };

  const ExportedTensor *find(StringRef source) const;
  std::string getObstacle(const GatedUnitVerdict &unit,
                          RankedTensorType state) const;

  ExportFormat format = ExportFormat::F32;
  std::vector<ExportedTensor> tensors;
  /// The factors in each tensor, by its source.
  llvm::StringMap<std::vector<Fold>> folds;
  /// Gated units that are not folded, with the reason.
  std::vector<std::pair<std::string, std::string>> unfolded;
  /// The number of forward dots that read each parameter.
  llvm::StringMap<unsigned> readers;
};

} // namespace mlir::fp8

#endif // FP8_COMPILER_EXPORT_H
