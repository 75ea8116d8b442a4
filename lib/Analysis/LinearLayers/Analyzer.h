//===- Analyzer.h - The analysis of linear layers ---------------*- C++ -*-===//
//
// What the parts of the analysis share (LinearLayers.cpp describes it).
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_ANALYSIS_LINEARLAYERS_ANALYZER_H
#define FP8_LIB_ANALYSIS_LINEARLAYERS_ANALYZER_H

#include "Origins.h"
#include "ValueFlow.h"

#include "fp8/Analysis/LinearLayers/LinearLayers.h"

#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/StringSet.h"

#include <vector>

namespace mlir::fp8 {

/// Whether two dots contract other dimensions of one weight, as a layer and its
/// dgrad do. Experts are contracted by both.
inline bool areComplementary(const llvm::SmallBitVector &a,
                             const llvm::SmallBitVector &b) {
  return !a.anyCommon(b) || (a.test(b) && b.test(a));
}

/// Returns true if a dot sums over two whole arrays, as optimizers do with
/// parameters and gradients, or multiplies an array by a number, as the
/// gradient of such a sum does. A layer has tokens, or outputs, or both.
bool isInnerProduct(stablehlo::DotGeneralOp dot);

/// A dot of a weight and data: the number of the weight's root, the dimensions
/// of it that are contracted, and the number of the other operand's root.
struct WeightRead {
  Operation *dot;
  unsigned weight;
  llvm::SmallBitVector contracted;
  unsigned other;
  /// The other operand and what it has its elements from.
  SmallVector<Value> otherChain;
};

/// Values that are read as a parameter, which they are computed from.
using ChangedParameters = SmallVector<std::pair<Value, BlockArgument>>;

/// A forward dot with a weight.
struct Layer {
  unsigned info;
  /// The number of the weight's root, and the dimensions of it that are
  /// contracted.
  unsigned weight;
  llvm::SmallBitVector weightContracted;
  /// The same for the activation; `activationRest` are the dimensions that a
  /// weight gradient contracts.
  unsigned activation;
  llvm::SmallBitVector activationRest;
  SmallVector<int64_t> weightShape;
  /// The numbers of the output gradients that the layer's dgrad dots read.
  SmallVector<unsigned> gradients;
};

struct Analyzer {
  Analyzer(func::FuncOp function, SmallVectorImpl<DotInfo> &dots,
           const ChangedParameters &changed)
      : function(function), dots(dots), numbers(function), views(numbers),
        origins(function) {
    origins.addUpdatedParameters(changed);
  }

  void run();
  void collectDots();
  void classifyForwardAndBackward();
  bool classifyByOperands(unsigned index);
  bool classifyEmbedding(DotInfo &info);
  void assignLayers();
  ChangedParameters findChangedByGradients() const;
  llvm::StringSet<> findOtherState() const;
  void findForwardSlice();
  SmallVector<Value> findForwardOfOtherLosses();
  SmallVector<Value> findGradientsOfReturnedLosses();
  void dropAfterGradients(SmallVectorImpl<Value> &roots);
  std::vector<WeightRead> findWeightReads();
  void leaveOutInnerBackward(ArrayRef<Value> losses, ArrayRef<Value> others);
  bool isTrained(Value weight) const;
  DenseSet<Operation *>
  getSlice(ArrayRef<Value> roots, bool throughSteps,
           function_ref<bool(Value)> isLeaf = nullptr) const;
  void findSavedUses(SmallVectorImpl<OpOperand *> &uses) const;
  bool inForwardPass(Operation *op) const;
  bool isRepeatedInBatch(Value operand, ArrayRef<int64_t> batch,
                         Operation *user) const;
  bool isProjection(Value value, Operation *user) const;
  Origin getOperandOrigin(stablehlo::DotGeneralOp dot, unsigned index) const;
  bool isMadeForBatch(stablehlo::DotGeneralOp dot, unsigned index) const;
  bool isOneHot(Value value, Operation *user) const;
  struct WeightDot;
  WeightDot getWeightDot(stablehlo::DotGeneralOp dot);
  static void findContracted(WeightDot &dot);
  bool isBatchOfScores(Value value, int64_t dim) const;
  bool mixesHeads(stablehlo::DotGeneralOp dot, unsigned activation) const;
  void describeParameter(DotInfo &info, const WeightDot &own);
  void findLayersOf(const WeightDot &own, SmallVectorImpl<unsigned> &same,
                    SmallVectorImpl<unsigned> &complementary);
  void classifyWithWeight(unsigned index);
  void explainRepeatedWeights();
  Layer makeLayer(unsigned index, const WeightDot &own);
  void classifyWithoutWeight(unsigned index);
  /// A dot from which an operand of another one follows without dots in
  /// between, other than those that mix heads.
  struct SourceDot {
    Operation *dot;
    bool throughExp;
  };
  SmallVector<SourceDot> findSourceDots(Operation *dot) const;
  DenseSet<Operation *>
  findDotsOfSoftmaxes(ArrayRef<unsigned> candidates) const;
  void findSoftmaxes();
  Value findTerm(Value value, Operation *user,
                 function_ref<bool(Value)> accepts) const;
  BlockArgument getChangedParameter(Value value, Operation *user) const;
  bool matchWgrad(unsigned index, bool activationIsLhs);
  bool matchWgradByGradient(unsigned index, bool activationIsLhs);
  bool explainWgradOfEach(unsigned index, bool activationIsLhs);
  void setWgrad(unsigned index, unsigned layer, bool activationIsLhs);
  std::string getUpdatedParameter(Value gradient,
                                  bool throughDots = false) const;
  bool readsParameter(const Layer &layer, StringRef path) const;
  std::string getParameterOfResult(unsigned result) const;
  void findHeads();
  void dropChoices();
  std::string getPath(BlockArgument parameter) const {
    return parameter ? getParameterPath(function, parameter) : "";
  }

  // Reading attributes is not const in MLIR.
  mutable func::FuncOp function;
  SmallVectorImpl<DotInfo> &dots;
  ValueNumbers numbers;
  Views views;
  Origins origins;
  std::vector<Layer> layers;
  /// For each dot, the layers whose weight or activation it reads.
  SmallVector<SmallVector<unsigned, 2>> layersOfDot;
  /// Operands of dots without a role, which are parameters plus data.
  ChangedParameters changedOperands;
  /// Dots of two activations: those that have no batching dimensions and no
  /// role, and those that have them.
  SmallVector<unsigned> ofActivations, batched;
  bool hasLoss = false, updatesParameters = false;
  /// The ops that compute the loss, and those that compute the next parameters
  /// and the state of the optimizer.
  DenseSet<Operation *> forwardSlice, updateSlice;
  /// Dots of the optimizer, and those that mix heads.
  DenseSet<Operation *> optimizerDots, mixers;
  /// What `getOperandOrigin` has found. Products of a loop lead back to
  /// themselves.
  mutable DenseMap<std::pair<Operation *, unsigned>, Origin> operandOrigins;
};

} // namespace mlir::fp8

#endif // FP8_LIB_ANALYSIS_LINEARLAYERS_ANALYZER_H
