//===- Export.h - Trained weights for other programs ------------*- C++ -*-===//
//
// Which tensors a file of weights has, under which names and in which formats,
// and the functions that make them of the parameters and read them back.
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

/// What the weights are written in. FP8: those of linear layers, with one scale
/// for each output channel; the rest in bf16.
enum class ExportFormat { F32, BF16, F8E4M3FN };

std::optional<ExportFormat> symbolizeExportFormat(StringRef text);
StringRef stringifyExportFormat(ExportFormat format);

/// One tensor of an export.
struct ExportedTensor {
  /// The path of the parameter and its type there.
  std::string source;
  RankedTensorType type;
  /// In the file.
  std::string name;
  RankedTensorType stored;
  /// FP8: the dimensions that one scale spans, those that dots contract.
  SmallVector<int64_t> contracted;
  /// Why it is stored so.
  std::string why;

  bool isScaled() const { return !contracted.empty(); }
  std::string scaleName() const { return name + "_scale"; }
};

/// The tensors of an export.
class ExportPlan {
public:
  /// Of an imported step: its parameters, and what it only reads. Fails if two
  /// would have one name.
  static FailureOr<ExportPlan> make(func::FuncOp step, ExportFormat format);

  /// Moves the factors s of smoothed gated units into their weights, so that
  /// what is exported computes the product h/s: 1/s into the linear branch, s
  /// into the layer that reads the product. `step` has the factors in its
  /// state: this is after the fp8 stage.
  LogicalResult fold(func::FuncOp step, ArrayRef<GatedUnitVerdict> units);

  /// A module with one function, as the fp8 stage leaves it: from parameters to
  /// the tensors of the file, and back. Of a tensor with a factor, the first
  /// one counts too what the factor changes beside the scale.
  OwningOpRef<ModuleOp> buildEncode(MLIRContext *context) const;
  OwningOpRef<ModuleOp> buildDecode(MLIRContext *context) const;

  /// JSON: every tensor with its source, type, scale and factors.
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
  /// By the tensor's source.
  llvm::StringMap<std::vector<Fold>> folds;
  /// Gated units that are not folded, and why.
  std::vector<std::pair<std::string, std::string>> unfolded;
  /// How many forward dots read a parameter.
  llvm::StringMap<unsigned> readers;
};

} // namespace mlir::fp8

#endif // FP8_COMPILER_EXPORT_H
