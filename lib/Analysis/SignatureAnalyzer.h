//===- SignatureAnalyzer.h - The analysis of a signature --------*- C++ -*-===//
//
// The parts share their findings: which result replaces which argument
// (StatePairs.cpp), which scalars are losses (Losses.cpp), and the kind of each
// state argument (StateKinds.cpp). AnalyzeSignature.cpp runs them and finds the
// roles of all other arguments and results.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_ANALYSIS_SIGNATUREANALYZER_H
#define FP8_LIB_ANALYSIS_SIGNATUREANALYZER_H

#include "Assignment.h"
#include "Gradients.h"
#include "UpdateChains.h"
#include "Usage.h"
#include "fp8/Analysis/Signature.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include <map>
#include <set>

namespace mlir {
namespace fp8 {

/// The reason for a choice that an option makes.
constexpr llvm::StringLiteral kSetByUser = "set by the user";

/// What a message suggests if data flow does not tell what replaces an
/// argument.
constexpr llvm::StringLiteral kStatesOption =
    "the option 'states' (fp8-run: --state ARGUMENT=RESULT)";

/// The strength of a source that an update reads through ops other than sums
/// and products.
constexpr double kNonlinear = 1;

/// The score of a pair with the same position in trees of state, for which
/// there is no other evidence.
constexpr double kSamePlace = 0.02;

/// Returns true if two paths have the same last key.
bool isSameLeaf(StringRef a, StringRef b);

/// Returns true if two paths have the same last two keys.
bool haveSamePlace(StringRef a, StringRef b);

/// Finds the signature of one function.
class SignatureAnalyzer {
public:
  SignatureAnalyzer(func::FuncOp func, const SignatureOptions &options)
      : func(func), options(options),
        returned(func.getBody().front().getTerminator()->getOperands()),
        onArguments(func, llvm::to_vector_of<Value>(func.getArguments())),
        gradients(func) {}

  FailureOr<Signature> run();

private:
  LogicalResult readRoles();
  LogicalResult readStates();
  LogicalResult readLoss();
  LogicalResult readOptions();
  LogicalResult pairState();
  bool dependsOnArrays(Value value);
  bool isAddedAlone(Value sum, Value scalar);
  double pairScore(unsigned arg, unsigned result);
  bool isDecay(unsigned arg, unsigned result, const Reach &reach);
  double flowScore(unsigned arg, unsigned result);
  bool isWeightedBy(Value value, unsigned arg);
  bool isProbablyOutput(unsigned arg, unsigned result, Reach self);
  ValueSet findUpdates();
  void findFeeding();
  void findReplaceable();
  void findLearning();
  ValueSet findStepped(unsigned update);
  void findUnreplaced();
  void addReplacements(unsigned arg, unsigned update);
  void addCarries();
  /// Arguments that some result updates, and these results.
  struct Updated {
    DenseSet<unsigned> args, results;
  };
  Updated findUpdated();
  void addShifts();
  void addShift(unsigned arg, unsigned result, const Updated &updated);
  SmallVector<unsigned> findNewer(unsigned arg, unsigned result, bool isRead,
                                  const Updated &updated);
  SmallVector<unsigned> chooseTwins(ArrayRef<unsigned> results,
                                    unsigned result);
  SmallVector<unsigned> findHolders(unsigned arg, bool isRead,
                                    const Updated &updated);
  SmallVector<unsigned> findUpdatesOf(unsigned arg, unsigned other);
  bool meetInUpdate(unsigned arg, unsigned other);
  void addSwaps();
  void addOldValues(unsigned arg, unsigned update);
  std::optional<unsigned> donatedTo(unsigned arg);
  void checkHints();
  double hint(unsigned arg, unsigned result);
  void pairByTrees(ArrayRef<unsigned> args, ArrayRef<unsigned> results);
  std::vector<WeightedPair> scorePairs(ArrayRef<unsigned> args,
                                       ArrayRef<unsigned> results);
  bool stopsShifts(ArrayRef<unsigned> args, ArrayRef<unsigned> results,
                   ArrayRef<std::optional<unsigned>> partners,
                   ArrayRef<std::optional<unsigned>> inOrder,
                   ArrayRef<Ambiguity> ties);
  SmallVector<std::optional<unsigned>>
  pairInOrder(ArrayRef<unsigned> args, ArrayRef<unsigned> results,
              std::vector<WeightedPair> pairs);
  void pairByFlow(ArrayRef<unsigned> args, ArrayRef<unsigned> results);
  void addByPlace(ArrayRef<unsigned> args, ArrayRef<unsigned> results,
                  std::vector<WeightedPair> &pairs);
  llvm::MapVector<Type, SmallVector<unsigned>> findCopies();
  std::vector<WeightedPair> weighCopies(ArrayRef<unsigned> args,
                                        ArrayRef<unsigned> results);
  void pairCopies();
  std::optional<unsigned> findOverwritten(Value value);
  void pairWritten();
  void pairRest();
  void pairDonated();
  void pairLastValues();
  bool pairsAreInOrder();
  bool areAlike(ArrayRef<unsigned> results);
  void pairNamesakes();
  /// Arguments or results by their path, or by that below a root.
  using Leaves = std::map<std::string, unsigned>;
  /// The initial values below a root, and the arguments that take them;
  /// `isWhole` if that is all of the root's arguments.
  struct InitialTree {
    std::map<std::string, Type> types;
    Leaves arguments;
    bool isWhole = true;
  };
  bool containsGradientOf(Value argument, const Gradients::Factors &partners,
                          const Chain &chain);
  bool containsGradient(unsigned result);
  bool mayReplaceTree(const InitialTree &tree, const Leaves &results,
                      StringRef prefix);
  void pairInitialTrees();
  void pairByPlace();
  LogicalResult checkFrozen();
  std::set<std::pair<std::string, std::string>> findTreePlaces() const;
  const SignatureResult *findNextOfTree(const SignatureArg &arg,
                                        StringRef place) const;
  LogicalResult checkTypesOfTrees();
  void addRetyped(InFlightDiagnostic &diag) const;
  bool areToldApart(unsigned arg, unsigned result) const;
  bool mayReplaceScalar(unsigned arg, unsigned result);
  bool isComparedWith(Value scalar, Value other);
  void pair(unsigned arg, unsigned result, const Twine &why);
  void unpair(unsigned arg);
  void reportAmbiguities(ArrayRef<unsigned> args, ArrayRef<unsigned> results,
                         ArrayRef<Ambiguity> found);
  unsigned trainedIn(unsigned arg);
  SmallVector<Value> findGradientsOf(unsigned arg);
  bool isUpdatedBy(unsigned arg, ArrayRef<Value> mayBeGradients);
  void collectLearning();
  bool isAddedTo(unsigned arg);
  bool isAveraged(unsigned arg);
  bool runsOverWholeSteps(stablehlo::WhileOp loop,
                          ArrayRef<std::optional<unsigned>> starts);
  void markCarriedState();
  void findGradients();
  void barGradientFlags();
  SmallVector<Value>
  findGradientDots(const llvm::SmallDenseSet<unsigned> &params);
  bool trains();
  /// A possible loss, with the state that its gradients could flow to.
  struct Candidate {
    unsigned index;
    Value value;
    ValueSet gradient;
    SmallVector<unsigned> params;
  };
  std::vector<Candidate>
  findLossCandidates(const Dependence &onGradients,
                     llvm::function_ref<bool(unsigned)> learns);
  std::vector<Candidate> findLossCandidates();
  std::vector<Candidate> findOnlyCandidate();
  bool couldBeLoss(const SignatureResult &result);
  void dropHiddenStates(std::vector<Candidate> &candidates);
  void dropWithoutBatch(std::vector<Candidate> &candidates);
  ValueSet findUsedByUpdates();
  bool isUnusedProduct(const Candidate &outer, const Candidate &inner,
                       const ValueSet &used);
  void dropFunctionsOfOthers(std::vector<Candidate> &candidates);
  void dropUnused(std::vector<Candidate> &candidates);
  void dropAfterOthers(std::vector<Candidate> &candidates);
  void keepMostParameters(std::vector<Candidate> &candidates);
  void chooseByName(std::vector<Candidate> &candidates);
  void chooseFirstOfSeveral(std::vector<Candidate> &candidates);
  InFlightDiagnostic emitNoLoss();
  bool forgetGradientsOfAllScalars();
  LogicalResult findLoss();
  LogicalResult chooseLoss(std::vector<Candidate> candidates);
  llvm::SmallDenseSet<unsigned>
  findMetricsOfGradients(ArrayRef<Candidate> candidates);
  void findOtherLosses(ArrayRef<Candidate> candidates);
  SmallVector<Value> getLosses();
  llvm::StringSet<> findChangingSubtrees();
  bool addsForwardOnly(unsigned arg, const Chain &chain);
  bool isSumOfForward(const SignatureArg &arg);
  void dropOutputs();
  void findStateKinds();
  void setKind(unsigned index, StateKind kind, const Twine &why);
  std::optional<unsigned> findFollowed(unsigned index, const ValueSet &read);
  bool isCounter(const SignatureArg &arg);
  bool isParameter(const SignatureArg &arg, bool isRead);
  SmallVector<unsigned> findParameters();
  /// A parameter, and the argument that the optimizer updates for it.
  struct Trained {
    unsigned param, updated;
  };
  SmallVector<Trained> findTrained(ArrayRef<unsigned> params);
  /// State that the gradient of a parameter feeds.
  struct GradientState {
    unsigned arg, param;
    uint8_t degree;
    bool decays;
    /// The constant factor that it is multiplied by each step; NaN if there is
    /// none.
    double decay;
    /// Whether the update divides by it, and reads it in no other way.
    bool divides;
    /// Other state that feeds it and may itself be a sum of gradients.
    SmallVector<unsigned> others = {};

    bool isLinear() const { return degree % 2 == 1; }
  };
  DenseMap<unsigned, SmallVector<Trained>>
  findReaders(ArrayRef<Trained> trained);
  GradientState describeGradientState(unsigned arg, const Trained &trained);
  bool mayHoldGradients(unsigned arg);
  bool isLastGradient(unsigned arg, const Chain &update);
  SmallVector<GradientState> findGradientState(ArrayRef<Trained> trained);
  bool isResetSum(unsigned arg);
  DenseSet<unsigned> findAccumulators(ArrayRef<GradientState> states);
  DenseSet<unsigned> findSquares(ArrayRef<GradientState> states,
                                 const DenseSet<unsigned> &accumulators);
  void setOwned(const GradientState &entry, StateKind kind, StringRef why);
  void findMoments(ArrayRef<GradientState> states);
  std::optional<unsigned> unchangedArgument(unsigned arg);
  bool everChanges(unsigned arg);
  LogicalResult checkThatStateChanges();
  std::vector<ArgumentUse> findUses();
  /// The evidence for the roles of arguments that no result replaces.
  struct Evidence {
    /// The roots of trees that contain state, and of those with integer data.
    llvm::StringSet<> stateRoots, integerRoots;
    std::optional<int64_t> batchSize;
    std::vector<ArgumentUse> uses;
    /// For each argument, whether the new value of some state depends on it.
    std::vector<bool> updates;
  };
  struct RoleGuess {
    ArgRole role;
    StringRef why;
  };
  Evidence findEvidence();
  bool masksState(Value flags);
  std::optional<RoleGuess> guessRole(const SignatureArg &arg,
                                     const Evidence &evidence);
  void setRole(unsigned index, ArgRole role, StringRef why);
  void findOtherArgs();
  /// Arguments that may take initial values, by path.
  struct Bindable {
    SmallVector<TreeLeaf> leaves;
    SmallVector<unsigned> args;
  };
  void setOnce(unsigned index);
  void findBindable(Bindable &wanted, Bindable &data);
  void readInitialValues();
  void findOtherResults();
  void guessLossOfFunction();
  void describeFunction();
  void describeTokens();

  /// Returns the name that is most similar to a path that does not exist.
  template <typename Range>
  static std::string nearest(StringRef path, const Range &entries) {
    std::string best;
    unsigned distance = ~0u;
    for (const auto &entry : entries)
      if (unsigned d = StringRef(entry.path).edit_distance(path);
          d < distance) {
        distance = d;
        best = entry.path;
      }
    return best;
  }

  const Chain &updateOf(unsigned arg) {
    return chains.of(returned[*resultOfArg[arg]]);
  }
  /// Returns the index of an argument of the function.
  std::optional<unsigned> argumentIndex(Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument || argument.getOwner() != &func.getBody().front())
      return std::nullopt;
    return argument.getArgNumber();
  }
  static StringRef rootOf(StringRef path) {
    return path.take_front(splitTreePath(path).front().size());
  }
  bool hasLeaf(const Chain &chain) {
    return llvm::any_of(
        chain, [&](auto &entry) { return !isa<BlockArgument>(entry.first); });
  }
  Value argument(unsigned index) { return func.getArgument(index); }

  func::FuncOp func;
  const SignatureOptions &options;
  OperandRange returned;
  Signature signature;
  UpdateChains chains;
  Dependence onArguments;
  Gradients gradients;
  bool argsAreNamed = false, resultsAreNamed = false;
  /// Arguments that some gradient depends on.
  std::vector<bool> feeding;
  /// Which arguments are in trees of which results could replace all leaves.
  std::vector<bool> replaceable;
  /// Results that gradients are added to (findUpdates).
  ValueSet gradientUpdates;
  /// For each result: the arguments whose gradients its update chain ends at.
  SmallVector<SmallVector<unsigned, 2>> learnedBy;
  /// Arguments with a gradient in some result.
  llvm::SmallDenseSet<unsigned> learned;
  /// For each argument that is added unscaled to what may be a gradient: the
  /// results of it.
  DenseMap<unsigned, SmallVector<unsigned, 2>> stepping;
  /// For each argument with a gradient: the results that add both unscaled.
  DenseMap<unsigned, SmallVector<unsigned, 2>> steppedBy;
  /// For each argument that only updates of other state read: results that may
  /// replace it.
  DenseMap<unsigned, SmallVector<unsigned>> replacements;
  /// Arguments that are returned unchanged, probably as the next value of other
  /// ones in a shift register (addShifts); true if an update reads them like
  /// one.
  DenseMap<unsigned, bool> shifted;
  /// Pairs of trained and idle arrays, which may change places (addSwaps).
  DenseSet<std::pair<unsigned, unsigned>> swaps;
  /// Whether donated buffers may break ties.
  bool useHints = true;
  /// Pairs of an argument and a result that a loop over whole steps carries.
  DenseSet<std::pair<unsigned, unsigned>> carries;
  /// Arguments whose gradient is in the value that replaces them, and these
  /// gradients.
  llvm::SmallDenseSet<unsigned> learning;
  SmallVector<Value> gradientValues;
  /// What looked like gradients before the loss was looked for.
  ValueSet inForwardPass;
  /// The next values of learned state, and flags that follow from gradients.
  ValueSet updated;
  /// The loop-carried state of loops over whole steps.
  ValueSet carried;
  /// The values that the loss is computed from.
  ValueSet forward;
  /// For each argument the result that replaces it, and vice versa.
  SmallVector<std::optional<unsigned>> resultOfArg, argOfResult;
  SmallVector<std::string> pairedBy;
  SmallVector<std::string> ambiguities;
  DenseMap<unsigned, ArgRole> forcedRoles;
  /// Arguments that are frozen only for lack of evidence.
  llvm::SmallDenseSet<unsigned> undecided;
  /// Arguments that are data for the model but have a named initial value.
  llvm::SmallDenseSet<unsigned> dataSetOnce;
  std::optional<unsigned> loss;
  /// Whether the loss is looked for among state that nothing reads, too.
  bool unreadMayBeLoss = false;
  std::string lossWhy;
  /// Other scalar results that gradients could flow from.
  std::set<unsigned> otherLosses;
};
} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_ANALYSIS_SIGNATUREANALYZER_H
