//===- MemoryReport.cpp - What a step keeps in memory, and why ------------===//
//
// The order of work:
//  1. every kernel is summed up once: which arguments each of its outputs is
//     made of, elementwise or through a dot (KernelFlow);
//  2. along the schedule this gives for every buffer whether data, parameters
//     or the update have a part in it, to a fixed point through loops;
//  3. what the loss depends on is the forward pass; the first dot beyond it is
//     where the step turns to the backward pass: what was made before and is
//     read from there on is saved;
//  4. from what is written to parameters and moments, elementwise steps lead
//     back to the gradients;
//  5. the dots of the forward pass repeat once a layer.
//
//===----------------------------------------------------------------------===//

#include "fp8/Kernels/MemoryReport.h"

#include "fp8/Analysis/Signature.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Kernels/ContractionDims.h"
#include "fp8/Kernels/Structure.h"
#include "fp8/Support/Locations.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <map>

using namespace mlir;
using namespace mlir::fp8;

namespace {

int64_t numElements(Value buffer) {
  return cast<MemRefType>(buffer.getType()).getNumElements();
}

std::string printed(Type type) {
  auto buffer = cast<MemRefType>(type);
  std::string text;
  llvm::raw_string_ostream os(text);
  for (int64_t dim : buffer.getShape())
    os << dim << "x";
  os << buffer.getElementType();
  return text;
}

//===----------------------------------------------------------------------===//
// One kernel
//===----------------------------------------------------------------------===//

/// What the outputs of a kernel are made of, by argument number.
struct KernelFlow {
  struct Output {
    /// The arguments that have a part in it; those that have one without the
    /// kernel's dot, and elementwise.
    llvm::BitVector any, withoutDot, elementwise;
    bool fromDot = false;
  };
  struct Dot {
    llvm::BitVector lhs, rhs;
    int64_t batch = 1, m = 1, n = 1, k = 1;
  };
  SmallVector<std::optional<Output>> outputs; // by argument
  std::optional<Dot> dot;

  explicit KernelFlow(KernelOp kernel);

private:
  Output empty() const {
    Output output;
    output.any.resize(outputs.size());
    output.withoutDot.resize(outputs.size());
    output.elementwise.resize(outputs.size());
    return output;
  }
};

/// What an op of a kernel reads and writes.
void collectAccesses(Operation *top, SetVector<Value> &reads,
                     SetVector<Value> &writes) {
  top->walk([&](Operation *op) {
    if (auto dps = dyn_cast<DestinationStyleOpInterface>(op)) {
      auto generic = dyn_cast<linalg::GenericOp>(op);
      for (OpOperand &operand : op->getOpOperands()) {
        if (!isa<MemRefType>(operand.get().getType()))
          continue;
        Value memory = memoryOf(operand.get());
        if (dps.isDpsInit(&operand)) {
          writes.insert(memory);
          if (generic && generic.payloadUsesValueFromOperand(&operand))
            reads.insert(memory);
        } else {
          reads.insert(memory);
        }
      }
    } else if (auto load = dyn_cast<memref::LoadOp>(op)) {
      reads.insert(memoryOf(load.getMemRef()));
    } else if (auto store = dyn_cast<memref::StoreOp>(op)) {
      writes.insert(memoryOf(store.getMemRef()));
    } else if (auto copy = dyn_cast<memref::CopyOp>(op)) {
      reads.insert(memoryOf(copy.getSource()));
      writes.insert(memoryOf(copy.getTarget()));
    }
  });
}

KernelFlow::KernelFlow(KernelOp kernel) {
  outputs.resize(kernel.getNumArguments());
  // In a kernel that is defined elsewhere, all that is read may be in all that
  // is written.
  if (kernel.isExternal()) {
    Output all = empty();
    for (unsigned i = 0; i < outputs.size(); ++i)
      if (kernel.getAccess(i) != Access::Write)
        all.any.set(i);
    all.withoutDot = all.any;
    for (unsigned i = 0; i < outputs.size(); ++i)
      if (kernel.getAccess(i) != Access::Read)
        outputs[i] = all;
    return;
  }
  DenseMap<Value, Output> flows;
  for (BlockArgument arg : kernel.getArguments()) {
    Output flow = empty();
    flow.any.set(arg.getArgNumber());
    flow.withoutDot.set(arg.getArgNumber());
    flow.elementwise.set(arg.getArgNumber());
    flows[arg] = flow;
  }
  DenseSet<Value> written;
  for (Operation &op : kernel.getBody().front()) {
    SetVector<Value> reads, writes;
    collectAccesses(&op, reads, writes);
    auto generic = dyn_cast<linalg::GenericOp>(op);
    bool isElementwise = generic && allParallel(generic);
    int64_t volume = generic ? iterationVolume(generic) : 0;
    Output flow = empty();
    for (Value read : reads) {
      auto it = flows.find(read);
      if (it == flows.end())
        continue;
      flow.any |= it->second.any;
      flow.withoutDot |= it->second.withoutDot;
      flow.fromDot |= it->second.fromDot;
      if (isElementwise && numElements(read) == volume)
        flow.elementwise |= it->second.elementwise;
    }
    if (generic && isDot(generic)) {
      dot.emplace();
      dot->lhs.resize(outputs.size());
      dot->rhs.resize(outputs.size());
      ContractionDims dims = *inferContractionDims(generic);
      SmallVector<int64_t> extents = generic.getStaticLoopRanges();
      auto product = [&](ArrayRef<unsigned> loops) {
        int64_t result = 1;
        for (unsigned loop : loops)
          result *= extents[loop];
        return result;
      };
      dot->batch = product(dims.batch);
      dot->m = product(dims.m);
      dot->n = product(dims.n);
      dot->k = product(dims.k);
      for (OpOperand *input : generic.getDpsInputOperands()) {
        auto it = flows.find(memoryOf(input->get()));
        if (it == flows.end())
          continue;
        AffineMap map = generic.getMatchingIndexingMap(input);
        auto reads = [&](ArrayRef<unsigned> loops) {
          return llvm::any_of(
              loops, [&](unsigned loop) { return map.isFunctionOfDim(loop); });
        };
        if (reads(dims.m))
          dot->lhs |= it->second.any;
        if (reads(dims.n))
          dot->rhs |= it->second.any;
      }
      flow.withoutDot.reset();
      flow.fromDot = true;
    }
    for (Value write : writes) {
      // Parts of a result may be written one after another.
      Output &old = flows[write];
      if (!written.insert(write).second && !old.any.empty()) {
        old.any |= flow.any;
        old.withoutDot |= flow.withoutDot;
        old.elementwise |= flow.elementwise;
        old.fromDot |= flow.fromDot;
      } else {
        old = flow;
      }
      if (auto arg = dyn_cast<BlockArgument>(write);
          arg && arg.getOwner()->getParentOp() == kernel)
        outputs[arg.getArgNumber()] = old;
    }
  }
}

//===----------------------------------------------------------------------===//
// The schedule
//===----------------------------------------------------------------------===//

/// What has a part in a buffer.
enum Part : unsigned { Data = 1, Parameter = 2, Update = 4 };

/// A write of a schedule's op to a buffer. `operand` is that of a call.
struct Write {
  Operation *op;
  unsigned operand;
};

/// A dot of the forward pass.
struct ForwardDot {
  LaunchOp call;
  const KernelFlow::Dot *dot;
  /// Which sides depend on data.
  bool lhs, rhs;
  bool ofActivations() const { return lhs && rhs; }
  bool ofWeight() const { return lhs != rhs; }
  int64_t numElements() const { return dot->batch * dot->m * dot->n; }
  /// What makes two dots the same in two layers.
  auto signature() const {
    return std::tuple(lhs, rhs, dot->batch, dot->m, dot->n, dot->k);
  }
};

struct BufferState {
  unsigned parts = 0;
  /// Numbers of forward dots of two activations with no dot in between.
  llvm::BitVector scores;
  /// The last forward dot that has a part in it.
  int lastDot = -1;
  /// The parameters that it is made of, by argument number.
  llvm::BitVector parameters;
};

class Analyzer {
public:
  Analyzer(ScheduleOp schedule, MemoryReport &report,
           llvm::function_ref<unsigned(Operation *)> positionOf)
      : schedule(schedule), report(report), positionOf(positionOf),
        symbols(schedule->getParentOfType<ModuleOp>()) {}

  void run();

private:
  void collectWrites();
  void propagate();
  void findForwardPass();
  void findTurn();
  void findGradients();
  void findLayers();
  void categorize();
  void fillState();
  void fillLayers();

  const KernelFlow &flowOf(LaunchOp call);
  bool mayPrecede(Operation *write, Operation *read, Value root);
  BufferState readBy(Operation *op, unsigned operand);
  bool isState(Value root, StateKind &kind);
  Operation *loopAround(Operation *op, Operation *without);
  std::optional<int64_t> tripsOf(Operation *loop);
  SmallVector<Value> operandsOf(Operation *op,
                                llvm::function_ref<bool(unsigned)> wanted);
  double shareOfParameters(int64_t elements) const;

  ScheduleOp schedule;
  MemoryReport &report;
  llvm::function_ref<unsigned(Operation *)> positionOf;
  SymbolTable symbols;
  DenseMap<Operation *, KernelFlow> flows;
  llvm::MapVector<Value, SmallVector<Write>> writesOf;
  DenseMap<Value, BufferState> states;
  DenseSet<std::pair<Operation *, unsigned>> forward;
  SmallVector<ForwardDot> dots;
  DenseMap<Operation *, int> dotOf;
  DenseSet<Value> gradients;
  unsigned lastForwardDot = 0;
  Operation *turn = nullptr, *stepLoop = nullptr, *layerLoop = nullptr;
  /// The dots that repeat: the first, how many a layer has, how many layers.
  int firstRepeated = 0, period = 0, repeats = 0;
  llvm::BitVector layerParameters;
  /// Of parameters by number of elements: the share that layers have.
  std::map<int64_t, std::pair<double, double>> parameterShares;
};

} // namespace

const KernelFlow &Analyzer::flowOf(LaunchOp call) {
  auto kernel = symbols.lookup<KernelOp>(call.getKernel());
  auto it = flows.find(kernel);
  if (it == flows.end())
    it = flows.try_emplace(kernel, kernel).first;
  return it->second;
}

/// Can what `write` leaves in `root` be what `read` finds there?
bool Analyzer::mayPrecede(Operation *write, Operation *read, Value root) {
  if (positionOf(write) < positionOf(read))
    return true;
  // What a loop's body makes anew does not outlive the iteration.
  for (Operation *loop = read->getParentOp(); loop && loop != schedule;
       loop = loop->getParentOp())
    if (isa<LoopLikeOpInterface>(loop) && loop->isAncestor(write) &&
        !loop->isAncestor(root.getParentBlock()->getParentOp()))
      return true;
  return false;
}

bool Analyzer::isState(Value root, StateKind &kind) {
  auto arg = dyn_cast<BlockArgument>(root);
  if (!arg || arg.getOwner() != &schedule.getBody().front())
    return false;
  auto text =
      schedule.getArgAttrOfType<StringAttr>(arg.getArgNumber(), kKindAttr);
  std::optional<StateKind> known =
      text ? symbolizeStateKind(text.getValue()) : std::nullopt;
  if (!known)
    return false;
  kind = *known;
  return true;
}

/// The innermost loop around `op` that does not hold `without`.
Operation *Analyzer::loopAround(Operation *op, Operation *without) {
  for (Operation *loop = op->getParentOp(); loop && loop != schedule;
       loop = loop->getParentOp())
    if (isa<LoopLikeOpInterface>(loop))
      return without && loop->isAncestor(without) ? nullptr : loop;
  return nullptr;
}

std::optional<int64_t> Analyzer::tripsOf(Operation *loop) {
  auto counted = dyn_cast<scf::ForOp>(loop);
  if (!counted)
    return std::nullopt;
  auto lower = getConstantIntValue(counted.getLowerBound());
  auto upper = getConstantIntValue(counted.getUpperBound());
  auto step = getConstantIntValue(counted.getStep());
  if (!lower || !upper || !step || *step <= 0)
    return std::nullopt;
  return std::max<int64_t>(0, llvm::divideCeilSigned(*upper - *lower, *step));
}

/// The buffers that an op of the schedule reads: of a call the wanted operands.
SmallVector<Value>
Analyzer::operandsOf(Operation *op, llvm::function_ref<bool(unsigned)> wanted) {
  SmallVector<Value> buffers;
  if (auto call = dyn_cast<LaunchOp>(op)) {
    for (auto [index, operand] : llvm::enumerate(call.getOperands()))
      if (wanted(index))
        buffers.push_back(memoryOf(operand));
    return buffers;
  }
  // A scalar that is stored: what its computation has loaded.
  SmallVector<Value> worklist(op->getOperands().take_front(1));
  while (!worklist.empty()) {
    Operation *def = worklist.pop_back_val().getDefiningOp();
    if (!def)
      continue;
    if (auto load = dyn_cast<memref::LoadOp>(def))
      buffers.push_back(memoryOf(load.getMemRef()));
    else
      llvm::append_range(worklist, def->getOperands());
  }
  return buffers;
}

void Analyzer::collectWrites() {
  schedule.walk([&](Operation *op) {
    if (auto call = dyn_cast<LaunchOp>(op)) {
      const KernelFlow &flow = flowOf(call);
      for (auto [index, output] : llvm::enumerate(flow.outputs))
        if (output)
          writesOf[memoryOf(call.getOperand(index))].push_back(
              {op, static_cast<unsigned>(index)});
    } else if (auto store = dyn_cast<memref::StoreOp>(op)) {
      writesOf[memoryOf(store.getMemRef())].push_back({op, 0});
    }
  });
}

/// All that has a part in what `write` leaves.
BufferState Analyzer::readBy(Operation *op, unsigned operand) {
  BufferState state;
  state.scores.resize(dots.size());
  state.parameters.resize(schedule.getNumArguments());
  const KernelFlow::Output *output = nullptr;
  auto call = dyn_cast<LaunchOp>(op);
  if (call)
    output = &*flowOf(call).outputs[operand];
  // Sums and largest values over scores are no scores.
  auto passScores = [&](const llvm::BitVector &scores, int64_t elements) {
    for (unsigned index : scores.set_bits())
      if (elements >= dots[index].numElements())
        state.scores.set(index);
  };
  auto merge = [&](Value root, bool withoutDot, int64_t elements) {
    auto it = states.find(root);
    if (it == states.end())
      return;
    state.parts |= it->second.parts;
    state.lastDot = std::max(state.lastDot, it->second.lastDot);
    if (!it->second.parameters.empty())
      state.parameters |= it->second.parameters;
    if (withoutDot)
      passScores(it->second.scores, elements);
  };
  if (!output) {
    for (Value root : operandsOf(op, [](unsigned) { return true; }))
      merge(root, /*withoutDot=*/false, 0);
    return state;
  }
  for (unsigned index : output->any.set_bits())
    merge(memoryOf(call.getOperand(index)), output->withoutDot.test(index),
          numElements(call.getOperand(index)));
  auto dot = dotOf.find(op);
  if (output->fromDot && dot != dotOf.end()) {
    state.lastDot = std::max(state.lastDot, dot->second);
    if (dots[dot->second].ofActivations())
      state.scores.set(dot->second);
  }
  return state;
}

/// Finds the parts of all buffers; arguments have theirs from the start.
void Analyzer::propagate() {
  states.clear();
  unsigned numArguments = schedule.getNumArguments();
  llvm::DenseSet<Value> fixed;
  for (BlockArgument arg : schedule.getArguments()) {
    unsigned index = arg.getArgNumber();
    if (schedule.getArgAttr(index, FP8Dialect::kOutputAttrName))
      continue;
    BufferState &state = states[arg];
    state.scores.resize(dots.size());
    state.parameters.resize(numArguments);
    fixed.insert(arg);
    auto role = schedule.getArgAttrOfType<StringAttr>(index, kRoleAttr);
    StateKind kind;
    bool isParameter =
        isState(arg, kind) && kind == StateKind::Parameter && role;
    std::optional<ArgRole> known =
        role ? symbolizeArgRole(role.getValue()) : std::nullopt;
    // Integers among the state are keys of a random number generator, as far as
    // they are no step count.
    bool isKey =
        known == ArgRole::State && isState(arg, kind) &&
        kind == StateKind::Other &&
        isa<IntegerType>(cast<MemRefType>(arg.getType()).getElementType());
    if (known == ArgRole::Batch || known == ArgRole::Key || isKey)
      state.parts = Data;
    else if (isParameter || known == ArgRole::Frozen)
      state.parts = Parameter;
    if (state.parts == Parameter)
      state.parameters.set(index);
    if (isState(arg, kind) &&
        (kind == StateKind::Moment1 || kind == StateKind::Moment2))
      state.parts = Update;
  }
  for (Value gradient : gradients)
    states[gradient].parts |= Update;
  for (bool changed = true; changed;) {
    changed = false;
    for (auto &[root, writes] : writesOf) {
      if (fixed.contains(root))
        continue;
      BufferState merged = states[root];
      merged.scores.resize(dots.size());
      merged.parameters.resize(numArguments);
      for (const Write &write : writes) {
        BufferState state = readBy(write.op, write.operand);
        merged.parts |= state.parts;
        merged.scores |= state.scores;
        merged.parameters |= state.parameters;
        merged.lastDot = std::max(merged.lastDot, state.lastDot);
      }
      BufferState &old = states[root];
      if (old.parts != merged.parts || old.lastDot != merged.lastDot ||
          old.scores != merged.scores || old.parameters != merged.parameters) {
        old = merged;
        changed = true;
      }
    }
  }
}

/// The writes that the loss depends on.
void Analyzer::findForwardPass() {
  SmallVector<std::pair<Value, Operation *>> worklist;
  Operation *terminator = schedule.getBody().front().getTerminator();
  for (BlockArgument arg : schedule.getArguments()) {
    auto kind =
        schedule.getArgAttrOfType<StringAttr>(arg.getArgNumber(), kKindAttr);
    if (kind && symbolizeResultKind(kind.getValue()) == ResultKind::Loss &&
        schedule.getArgAttr(arg.getArgNumber(), FP8Dialect::kOutputAttrName))
      worklist.push_back({arg, terminator});
  }
  while (!worklist.empty()) {
    auto [root, reader] = worklist.pop_back_val();
    // How a parameter came to its value is the business of earlier steps.
    StateKind kind;
    if (isState(root, kind) && kind == StateKind::Parameter)
      continue;
    auto it = writesOf.find(root);
    if (it == writesOf.end())
      continue;
    for (const Write &write : it->second) {
      if (!mayPrecede(write.op, reader, root) ||
          !forward.insert({write.op, write.operand}).second)
        continue;
      auto call = dyn_cast<LaunchOp>(write.op);
      for (Value read : operandsOf(write.op, [&](unsigned index) {
             return flowOf(call).outputs[write.operand]->any.test(index);
           }))
        worklist.push_back({read, write.op});
    }
  }
  // Its dots, in the order of the program.
  auto dependsOnData = [&](LaunchOp call, const llvm::BitVector &side) {
    return llvm::any_of(side.set_bits(), [&](unsigned index) {
      return states[memoryOf(call.getOperand(index))].parts & Data;
    });
  };
  schedule.walk([&](LaunchOp call) {
    const KernelFlow &flow = flowOf(call);
    bool isForward =
        llvm::any_of(llvm::seq(call.getNumOperands()), [&](unsigned index) {
          return flow.outputs[index] && flow.outputs[index]->fromDot &&
                 forward.contains({call.getOperation(), index});
        });
    if (!flow.dot || !isForward)
      return;
    dotOf[call] = dots.size();
    dots.push_back({call, &*flow.dot, dependsOnData(call, flow.dot->lhs),
                    dependsOnData(call, flow.dot->rhs)});
  });
}

/// The first dot of the backward pass.
void Analyzer::findTurn() {
  if (dots.empty())
    return;
  lastForwardDot = positionOf(dots.back().call);
  schedule.walk([&](LaunchOp call) {
    if (!turn && flowOf(call).dot && !dotOf.contains(call) &&
        positionOf(call) > lastForwardDot)
      turn = call;
  });
  if (!turn)
    return;
  report.turn = positionOf(turn);
  for (Operation *loop = turn->getParentOp(); loop && loop != schedule;
       loop = loop->getParentOp())
    if (isa<LoopLikeOpInterface>(loop) && loop->isAncestor(dots.back().call)) {
      stepLoop = loop;
      return;
    }
}

/// From what is written to parameters and moments back along elementwise steps,
/// as far as no moment has a part.
void Analyzer::findGradients() {
  if (!turn)
    return;
  SmallVector<Value> worklist;
  DenseSet<Value> seen;
  auto follow = [&](const Write &write) {
    auto call = dyn_cast<LaunchOp>(write.op);
    if (!call)
      return;
    const KernelFlow::Output &output = *flowOf(call).outputs[write.operand];
    for (unsigned index : output.elementwise.set_bits()) {
      Value root = memoryOf(call.getOperand(index));
      if (root.getDefiningOp<memref::AllocOp>() &&
          (states[root].parts & Data) && numElements(root) > 1 &&
          seen.insert(root).second)
        worklist.push_back(root);
    }
  };
  for (auto &[root, writes] : writesOf) {
    StateKind kind;
    if (isState(root, kind) &&
        (kind == StateKind::Parameter || kind == StateKind::Moment1 ||
         kind == StateKind::Moment2))
      for (const Write &write : writes)
        follow(write);
  }
  while (!worklist.empty()) {
    Value root = worklist.pop_back_val();
    if (!(states[root].parts & Update))
      gradients.insert(root);
    for (const Write &write : writesOf[root])
      follow(write);
  }
}

/// The part of the forward dots that repeats: the longest run in which each dot
/// is as the one a period before.
static void findRepetition(ArrayRef<ForwardDot> dots, int &first, int &period,
                           int &repeats) {
  int size = dots.size(), best = 0;
  for (int candidate = 1; candidate <= size / 2; ++candidate)
    for (int begin = 0; begin + 2 * candidate <= size;) {
      int end = begin + candidate;
      while (end < size &&
             dots[end].signature() == dots[end - candidate].signature())
        ++end;
      int count = (end - begin) / candidate;
      if (count >= 2 && count * candidate > best) {
        best = count * candidate;
        first = begin;
        period = candidate;
        repeats = count;
      }
      begin = std::max(begin + 1, end - candidate + 1);
    }
}

void Analyzer::findLayers() {
  if (!turn) {
    std::string why = "the function has no backward pass";
    report.tokens.why = report.width.why = report.layers.why = why;
    return;
  }
  // What most weights are multiplied with has the tokens as its rows.
  std::map<int64_t, int> votes;
  const ForwardDot *head = nullptr;
  for (const ForwardDot &dot : dots)
    if (dot.ofWeight()) {
      ++votes[dot.lhs ? dot.dot->m : dot.dot->n];
      head = &dot;
    }
  if (!head) {
    std::string why = "no dot of the forward pass reads a weight";
    report.tokens.why = report.width.why = report.layers.why = why;
    return;
  }
  auto most = llvm::max_element(
      votes, [](auto &a, auto &b) { return a.second < b.second; });
  report.tokens = {most->first, "rows of most dots with a weight"};
  report.width = {head->dot->k, "what the last dot with a weight sums over"};

  // Layers in a loop: the loop with most dots that does not hold the turn.
  llvm::MapVector<Operation *, SmallVector<ForwardDot>> loops;
  for (const ForwardDot &dot : dots)
    if (Operation *loop = loopAround(dot.call, turn))
      loops[loop].push_back(dot);
  auto *biggest = llvm::max_element(loops, [](auto &a, auto &b) {
    return a.second.size() < b.second.size();
  });
  if (biggest != loops.end() && biggest->second.size() * 2 > dots.size()) {
    std::optional<int64_t> trips = tripsOf(biggest->first);
    if (!trips) {
      report.layers.why = "their loop runs an unknown number of times";
      return;
    }
    layerLoop = biggest->first;
    findRepetition(biggest->second, firstRepeated, period, repeats);
    // Some layers in an iteration, or one whose dots are alike.
    if (period * repeats != static_cast<int>(biggest->second.size()))
      repeats = 1;
    report.layers = {*trips * std::max(repeats, 1),
                     "iterations of the loop of the forward dots"};
    return;
  }
  findRepetition(dots, firstRepeated, period, repeats);
  if (2 * period * repeats <= static_cast<int>(dots.size()))
    repeats = 0;
  if (repeats < 2) {
    report.layers.why = "no sequence of forward dots repeats, and none is in a "
                        "loop";
    return;
  }
  report.layers = {repeats, "repetitions of " + std::to_string(period) +
                                " forward dots"};
}

void Analyzer::categorize() {
  // Scores: dots of two activations whose result reaches another one.
  llvm::BitVector scores(dots.size());
  for (const ForwardDot &dot : dots)
    if (dot.ofActivations())
      for (const llvm::BitVector *side : {&dot.dot->lhs, &dot.dot->rhs})
        for (unsigned index : side->set_bits()) {
          ForwardDot copy = dot;
          scores |= states[memoryOf(copy.call.getOperand(index))].scores;
        }
  unsigned lastDot = 0;
  DenseSet<Value> readByForwardDots, readByLaterDots;
  schedule.walk([&](LaunchOp call) {
    const std::optional<KernelFlow::Dot> &dot = flowOf(call).dot;
    if (!dot)
      return;
    lastDot = std::max(lastDot, positionOf(call));
    bool isLater = turn && positionOf(call) >= *report.turn;
    for (const llvm::BitVector *side : {&dot->lhs, &dot->rhs})
      for (unsigned operand : side->set_bits())
        (isLater ? readByLaterDots : readByForwardDots)
            .insert(memoryOf(call.getOperand(operand)));
  });
  auto isSaved = [&](const PlannedBuffer &buffer) {
    if (!turn || buffer.end < *report.turn || buffer.begin >= *report.turn)
      return false;
    ArrayRef<Write> writes = writesOf[buffer.alloc];
    bool isForward = llvm::any_of(writes, [&](const Write &write) {
      return forward.contains({write.op, write.operand});
    });
    // What the loop over micro-batches carries is not saved for its iteration.
    bool isCarried = stepLoop &&
                     !stepLoop->isAncestor(buffer.alloc.getDefiningOp()) &&
                     llvm::any_of(writes, [&](const Write &write) {
                       return stepLoop->isAncestor(write.op);
                     });
    return !isCarried && (buffer.begin <= lastForwardDot || isForward);
  };
  for (PlannedBuffer &buffer : report.buffers) {
    const BufferState &state = states[buffer.alloc];
    auto type = cast<MemRefType>(buffer.alloc.getType());
    bool isPayload = type.getElementTypeBitWidth() == 8 &&
                     isa<FloatType>(type.getElementType());
    if (gradients.contains(buffer.alloc)) {
      buffer.category = MemoryCategory::Gradient;
    } else if (!(state.parts & (Data | Update))) {
      bool isWeight = (state.parts & Parameter) && buffer.begin <= lastDot;
      buffer.category = !isWeight   ? (state.parts ? MemoryCategory::Temporary
                                                   : MemoryCategory::Table)
                        : isPayload ? MemoryCategory::FP8Weight
                                    : MemoryCategory::OtherWeight;
    } else if (isSaved(buffer)) {
      bool isScore = false;
      for (unsigned index : scores.set_bits())
        if (!state.scores.empty() && state.scores.test(index))
          isScore |= type.getNumElements() >= dots[index].numElements();
      buffer.category =
          isScore ? MemoryCategory::Attention : MemoryCategory::SavedActivation;
      buffer.isWgradCopy = isPayload && !isScore &&
                           readByLaterDots.contains(buffer.alloc) &&
                           !readByForwardDots.contains(buffer.alloc);
    }
  }
}

/// The share of the parameters of this size that belong to layers.
double Analyzer::shareOfParameters(int64_t elements) const {
  auto it = parameterShares.find(elements);
  return it == parameterShares.end() || it->second.second == 0
             ? 0
             : it->second.first / it->second.second;
}

/// The state, by what it is to the update.
void Analyzer::fillState() {
  llvm::StringSet<> paths;
  for (unsigned i = 0; i < schedule.getNumArguments(); ++i)
    if (auto path = schedule.getArgAttrOfType<StringAttr>(i, kPathAttr))
      paths.insert(path.getValue());
  // A leaf of a tree is no prefix of another: what is called so was added by
  // the compiler beside the payload.
  auto isScale = [&](StringRef path) {
    for (StringRef suffix : {".scale", ".center", ".exponent"})
      if (path.ends_with(suffix) &&
          paths.contains(path.drop_back(suffix.size())))
        return true;
    return false;
  };
  for (BlockArgument arg : schedule.getArguments()) {
    unsigned index = arg.getArgNumber();
    auto type = cast<MemRefType>(arg.getType());
    if (schedule.getArgAttr(index, FP8Dialect::kOutputAttrName)) {
      report.resultBytes += byteSize(type);
      continue;
    }
    auto role = schedule.getArgAttrOfType<StringAttr>(index, kRoleAttr);
    std::optional<ArgRole> known =
        role ? symbolizeArgRole(role.getValue()) : std::nullopt;
    if (known != ArgRole::State && known != ArgRole::Frozen) {
      report.inputBytes += byteSize(type);
      continue;
    }
    PlannedState state;
    if (auto path = schedule.getArgAttrOfType<StringAttr>(index, kPathAttr))
      state.path = path.str();
    state.type = printed(type);
    state.bytes = byteSize(type);
    state.elements = type.getNumElements();
    StateKind kind = StateKind::Other;
    bool isFP8 = type.getElementTypeBitWidth() == 8 &&
                 isa<FloatType>(type.getElementType());
    if (isScale(state.path))
      state.category = StateCategory::Scale;
    else if (isState(arg, kind) && kind == StateKind::Parameter)
      state.category = StateCategory::Master;
    else if (kind == StateKind::Moment1)
      state.category = StateCategory::Moment1;
    else if (kind == StateKind::Moment2)
      state.category = StateCategory::Moment2;
    else if (schedule.getArgAttr(index, kZeroInitAttr))
      state.category = isFP8 && type.getRank() > 0 ? StateCategory::FP8Weight
                                                   : StateCategory::Scale;
    state.layerShare =
        layerParameters.empty() ? 0 : layerParameters.test(index);
    report.state.push_back(std::move(state));
  }
  // Parameters that no dot reads: as many of a type as there are layers.
  if (report.layers.value) {
    int64_t layers = *report.layers.value;
    std::map<std::string, SmallVector<PlannedState *>> groups;
    for (PlannedState &state : report.state)
      if (state.category == StateCategory::Master && state.layerShare == 0)
        groups[state.type].push_back(&state);
    for (auto &[type, group] : groups) {
      int64_t size = group.size();
      bool isStack = layerLoop &&
                     StringRef(type).starts_with(std::to_string(layers) + "x");
      for (PlannedState *state : group)
        state->layerShare =
            isStack ? 1 : static_cast<double>(size / layers * layers) / size;
    }
    for (const PlannedState &state : report.state)
      if (state.category == StateCategory::Master) {
        auto &[ofLayers, all] = parameterShares[state.elements];
        ofLayers += state.layerShare;
        all += 1;
      }
    for (PlannedState &state : report.state)
      if (state.category != StateCategory::Master)
        state.layerShare = shareOfParameters(state.elements);
  }
  for (auto global :
       schedule->getParentOfType<ModuleOp>().getOps<memref::GlobalOp>())
    report.constantBytes += byteSize(global.getType());
}

/// What grows with tokens and layers, and what one layer saves.
void Analyzer::fillLayers() {
  int64_t tokens = report.tokens.value.value_or(0);
  double saved = 0, attention = 0, wgradCopies = 0;
  int64_t layers = report.layers.value.value_or(0);
  for (PlannedBuffer &buffer : report.buffers) {
    const BufferState &state = states[buffer.alloc];
    bool isActivation = buffer.category == MemoryCategory::SavedActivation ||
                        buffer.category == MemoryCategory::Attention;
    if (isActivation)
      buffer.tokenShare = 1;
    else if (buffer.category == MemoryCategory::Temporary && tokens > 0)
      buffer.tokenShare = (state.parts & Data) && !(state.parts & Update) &&
                          numElements(buffer.alloc) % tokens == 0;
    if (layers == 0)
      continue;
    if (!isActivation) {
      if (buffer.category != MemoryCategory::Temporary &&
          buffer.category != MemoryCategory::Table)
        buffer.layerShare = shareOfParameters(numElements(buffer.alloc));
      continue;
    }
    int layer = -1;
    if (layerLoop) {
      if (llvm::any_of(writesOf[buffer.alloc], [&](const Write &write) {
            return layerLoop->isAncestor(write.op);
          }))
        layer = 0;
    } else if (state.lastDot >= firstRepeated &&
               state.lastDot < firstRepeated + period * repeats) {
      layer = (state.lastDot - firstRepeated) / period;
    }
    if (layer < 0)
      continue;
    buffer.layerShare = 1;
    // What follows the last layer is not what follows the others.
    if (!layerLoop && layer == repeats - 1)
      continue;
    double perLayer =
        static_cast<double>(buffer.bytes) / (layerLoop ? layers : repeats - 1);
    (buffer.category == MemoryCategory::Attention ? attention : saved) +=
        perLayer;
    if (buffer.isWgradCopy)
      wgradCopies += perLayer;
  }
  if (layers > 0) {
    report.savedPerLayer = saved;
    report.wgradCopiesPerLayer = wgradCopies;
    report.attentionPerLayer = attention;
  }
}

void Analyzer::run() {
  collectWrites();
  propagate();
  findForwardPass();
  findTurn();
  findGradients();
  // Anew, with what is known of dots and gradients.
  propagate();
  findLayers();
  layerParameters.resize(schedule.getNumArguments());
  for (auto [index, dot] : llvm::enumerate(dots)) {
    bool inLayer =
        layerLoop
            ? layerLoop->isAncestor(dot.call)
            : report.layers.value && static_cast<int>(index) >= firstRepeated &&
                  static_cast<int>(index) < firstRepeated + period * repeats;
    if (!inLayer || !dot.ofWeight())
      continue;
    for (unsigned operand : (dot.lhs ? dot.dot->rhs : dot.dot->lhs).set_bits())
      layerParameters |=
          states[memoryOf(dot.call.getOperand(operand))].parameters;
  }
  categorize();
  fillState();
  fillLayers();
}

MemoryReport
fp8::makeMemoryReport(ScheduleOp schedule, std::vector<PlannedBuffer> buffers,
                      int64_t arenaBytes,
                      llvm::function_ref<unsigned(Operation *)> positionOf) {
  MemoryReport report;
  report.function = schedule.getName().str();
  report.arenaBytes = arenaBytes;
  report.buffers = std::move(buffers);
  for (PlannedBuffer &buffer : report.buffers) {
    buffer.type = printed(buffer.alloc.getType());
    buffer.location = describeLocation(buffer.alloc.getLoc());
    int64_t alive = 0;
    for (const PlannedBuffer &other : report.buffers)
      if (other.begin <= buffer.begin && buffer.begin <= other.end)
        alive += other.bytes;
    if (alive > report.peakBytes) {
      report.peakBytes = alive;
      report.peak = buffer.begin;
    }
  }
  Analyzer(schedule, report, positionOf).run();
  // The plan replaces them.
  for (PlannedBuffer &buffer : report.buffers)
    buffer.alloc = nullptr;
  return report;
}

//===----------------------------------------------------------------------===//
// The numbers
//===----------------------------------------------------------------------===//

StringRef fp8::stringify(MemoryCategory category) {
  switch (category) {
  case MemoryCategory::SavedActivation:
    return "saved activations";
  case MemoryCategory::Attention:
    return "attention matrix";
  case MemoryCategory::Gradient:
    return "gradients";
  case MemoryCategory::FP8Weight:
    return "FP8 weight copies";
  case MemoryCategory::OtherWeight:
    return "other weight copies";
  case MemoryCategory::Table:
    return "tables";
  case MemoryCategory::Temporary:
    return "temporaries";
  }
  llvm_unreachable("unknown category");
}

StringRef fp8::stringify(StateCategory category) {
  switch (category) {
  case StateCategory::Master:
    return "master";
  case StateCategory::Moment1:
    return "moment1";
  case StateCategory::Moment2:
    return "moment2";
  case StateCategory::Scale:
    return "scales";
  case StateCategory::FP8Weight:
    return "FP8 weight copies";
  case StateCategory::Other:
    return "other state";
  }
  llvm_unreachable("unknown category");
}

int64_t MemoryReport::numParameters() const {
  int64_t count = 0;
  for (const PlannedState &entry : state)
    if (entry.category == StateCategory::Master)
      count += entry.elements;
  return count;
}

int64_t MemoryReport::stateBytes() const {
  int64_t bytes = 0;
  for (const PlannedState &entry : state)
    bytes += entry.bytes;
  return bytes;
}

int64_t MemoryReport::stateBytes(StateCategory category) const {
  int64_t bytes = 0;
  for (const PlannedState &entry : state)
    if (entry.category == category)
      bytes += entry.bytes;
  return bytes;
}

int64_t MemoryReport::bytesAt(unsigned position,
                              MemoryCategory category) const {
  int64_t bytes = 0;
  for (const PlannedBuffer &buffer : buffers)
    if (buffer.category == category && buffer.begin <= position &&
        position <= buffer.end)
      bytes += buffer.bytes;
  return bytes;
}

int64_t MemoryReport::wgradCopyBytes() const {
  int64_t bytes = 0;
  for (const PlannedBuffer &buffer : buffers)
    if (buffer.isWgradCopy && turn && buffer.begin <= *turn &&
        *turn <= buffer.end)
      bytes += buffer.bytes;
  return bytes;
}

int64_t MemoryReport::mostBytes(MemoryCategory category) const {
  int64_t most = 0;
  for (const PlannedBuffer &buffer : buffers)
    if (buffer.category == category)
      most = std::max(most, bytesAt(buffer.begin, category));
  return most;
}

int64_t MemoryReport::totalBytes() const {
  return stateBytes() + inputBytes + resultBytes + constantBytes + arenaBytes;
}

std::optional<double> MemoryReport::unit() const {
  if (!tokens.value || !width.value)
    return std::nullopt;
  return 2.0 * *tokens.value * *width.value;
}

double MemoryReport::predict(double tokenFactor, double layerFactor) const {
  auto grow = [](double bytes, double share, double factor) {
    return bytes * (1 + share * (factor - 1));
  };
  double total = inputBytes * tokenFactor + resultBytes + constantBytes;
  for (const PlannedState &entry : state)
    total += grow(entry.bytes, entry.layerShare, layerFactor);
  // What is alive changes where a buffer begins and after it ends.
  std::map<unsigned, double> changes;
  for (const PlannedBuffer &buffer : buffers) {
    double bytes = grow(grow(buffer.bytes, buffer.layerShare, layerFactor),
                        buffer.tokenShare, tokenFactor);
    changes[buffer.begin] += bytes;
    changes[buffer.end + 1] -= bytes;
  }
  double alive = 0, most = 0;
  for (auto &[position, change] : changes)
    most = std::max(most, alive += change);
  // As much is lost between buffers as in the plan.
  return total + (peakBytes ? most * arenaBytes / peakBytes : 0);
}

double MemoryReport::largestFactor(double budget, bool ofLayers) const {
  auto fits = [&](double factor) {
    return (ofLayers ? predict(1, factor) : predict(factor, 1)) <= budget;
  };
  double low = 0, high = 1;
  if (!fits(low))
    return 0;
  while (fits(high) && high < 1e12)
    high *= 2;
  while (high - low > 1e-6 * high) {
    double middle = (low + high) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

std::optional<double> fp8::parseBytes(StringRef text) {
  static constexpr std::pair<StringLiteral, double> units[] = {
      {"", 1},         {"B", 1},       {"KB", 1e3},     {"MB", 1e6},
      {"GB", 1e9},     {"TB", 1e12},   {"KiB", 1024.0}, {"MiB", 1048576.0},
      {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  size_t end = text.find_last_of("0123456789.");
  double number;
  if (end == StringRef::npos || text.take_front(end + 1).getAsDouble(number) ||
      number <= 0)
    return std::nullopt;
  StringRef unit = text.drop_front(end + 1).trim();
  for (auto &[name, factor] : units)
    if (unit == name)
      return number * factor;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

static std::string bytesText(double bytes) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  for (; bytes >= 1024 && unit < 4; ++unit)
    bytes /= 1024;
  std::string text;
  llvm::raw_string_ostream os(text);
  os << llvm::format(unit ? "%.2f %s" : "%.0f %s", bytes, units[unit]);
  return text;
}

static std::string fixedText(double value, const char *format = "%.2f") {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << llvm::format(format, value);
  return text;
}

/// A row of a table: what, and numbers.
static void printRow(llvm::raw_ostream &os, StringRef what,
                     ArrayRef<std::string> cells) {
  os << "  " << llvm::left_justify(what, 22);
  for (const std::string &cell : cells)
    os << llvm::right_justify(cell, 16);
  os << "\n";
}

static constexpr StateCategory kStateCategories[] = {
    StateCategory::Master, StateCategory::Moment1,   StateCategory::Moment2,
    StateCategory::Scale,  StateCategory::FP8Weight, StateCategory::Other};
static constexpr MemoryCategory kMemoryCategories[] = {
    MemoryCategory::SavedActivation, MemoryCategory::Attention,
    MemoryCategory::Gradient,        MemoryCategory::FP8Weight,
    MemoryCategory::OtherWeight,     MemoryCategory::Table,
    MemoryCategory::Temporary};

void MemoryReport::print(llvm::raw_ostream &os, double budget) const {
  int64_t parameters = numParameters();
  auto perParameter = [&](int64_t bytes) {
    return parameters ? fixedText(static_cast<double>(bytes) / parameters)
                      : std::string("-");
  };
  os << "memory plan of '" << function << "'\n";
  printRow(os, "", {"bytes/parameter", "bytes"});
  for (StateCategory category : kStateCategories)
    if (int64_t bytes = stateBytes(category))
      printRow(os, stringify(category),
               {perParameter(bytes), bytesText(bytes)});
  printRow(os, "state, in all",
           {perParameter(stateBytes()), bytesText(stateBytes())});
  for (MemoryCategory category :
       {MemoryCategory::FP8Weight, MemoryCategory::OtherWeight,
        MemoryCategory::Gradient})
    if (int64_t bytes = mostBytes(category))
      printRow(os, (stringify(category) + " *").str(),
               {perParameter(bytes), bytesText(bytes)});
  os << "  " << parameters << " parameters; * in the arena, most at once\n";

  int64_t saved = 0, attention = 0;
  if (turn) {
    saved = bytesAt(*turn, MemoryCategory::SavedActivation);
    attention = bytesAt(*turn, MemoryCategory::Attention);
  }
  os << "saved for the backward pass\n";
  auto say = [&](StringRef what, const Found &found) {
    os << what << " ";
    if (found.value)
      os << *found.value << " (" << found.why << ")";
    else
      os << "unknown: " << found.why;
  };
  say("  tokens at once", tokens);
  say(", width", width);
  say(",\n  layers", layers);
  os << "\n";
  std::optional<double> unitBytes = unit();
  if (turn) {
    printRow(os, "", {"B/token/layer", "U/layer", "of layers", "in all"});
    auto row = [&](StringRef what, std::optional<double> perLayer,
                   int64_t total) {
      bool known = perLayer && unitBytes;
      printRow(
          os, what,
          {known ? fixedText(*perLayer / *tokens.value, "%.1f") : "unknown",
           known ? fixedText(*perLayer / *unitBytes) : "unknown",
           perLayer ? bytesText(*perLayer * *layers.value) : "unknown",
           bytesText(total)});
    };
    row("saved activations", savedPerLayer, saved);
    if (int64_t copies = wgradCopyBytes())
      row("of these, for wgrad alone", wgradCopiesPerLayer, copies);
    row("attention matrix", attentionPerLayer, attention);
    if (unitBytes)
      os << "  U = tokens x width x 2 bytes = " << bytesText(*unitBytes)
         << "\n";
  }

  os << "arena " << bytesText(arenaBytes) << ", where most is alive:\n";
  for (MemoryCategory category : kMemoryCategories)
    if (int64_t bytes = bytesAt(peak, category))
      printRow(os, stringify(category), {"", bytesText(bytes)});
  printRow(os, "between buffers", {"", bytesText(arenaBytes - peakBytes)});
  if (scratchBytes)
    os << "scratch of each thread " << bytesText(*scratchBytes) << "\n";
  os << "in all " << bytesText(totalBytes()) << ": state "
     << bytesText(stateBytes()) << ", arena " << bytesText(arenaBytes)
     << ", inputs and results " << bytesText(inputBytes + resultBytes)
     << ", constants " << bytesText(constantBytes) << "\n";

  if (budget <= 0)
    return;
  os << "budget " << bytesText(budget) << ": this step "
     << (totalBytes() <= budget ? "fits" : "does not fit")
     << " (exact: the plan"
     << ", without code and the rest of the process)\n";
  os << "  by the linear model (at every point of the schedule a buffer grows "
        "with tokens,\n  layers or neither; as much is lost between buffers as "
        "here; the length of the\n  sequence stays, so that more tokens are "
        "more rows):\n";
  auto largest = [&](StringRef what, const Found &found, bool ofLayers) {
    os << "  " << what << ": ";
    if (!found.value) {
      os << "unknown: " << found.why << "\n";
      return;
    }
    double factor = largestFactor(budget, ofLayers);
    int64_t count = static_cast<int64_t>(*found.value * factor);
    os << count << " " << (ofLayers ? "layers" : "tokens at once") << " ("
       << fixedText(factor) << " x this step's)";
    if (ofLayers) {
      double grown = 0;
      for (const PlannedState &entry : state)
        if (entry.category == StateCategory::Master)
          grown += entry.elements *
                   (1 + entry.layerShare *
                            (static_cast<double>(count) / *found.value - 1));
      os << ", " << fixedText(grown / 1e6) << " million parameters";
    }
    os << "\n";
  };
  largest("largest batch", tokens, /*ofLayers=*/false);
  largest("largest model", layers, /*ofLayers=*/true);
}

static std::string keyOf(StringRef name) {
  std::string key = name.lower();
  llvm::replace(key, ' ', '_');
  return key;
}

void MemoryReport::printJSON(llvm::raw_ostream &os, double budget) const {
  llvm::json::OStream json(os, /*IndentSize=*/2);
  auto found = [&](StringRef name, const Found &value) {
    json.attribute(name, value.value ? llvm::json::Value(*value.value)
                                     : llvm::json::Value(nullptr));
    json.attribute((name + "_why").str(), value.why);
  };
  auto number = [&](StringRef name, std::optional<double> value) {
    json.attribute(name, value ? llvm::json::Value(*value)
                               : llvm::json::Value(nullptr));
  };
  json.object([&] {
    json.attribute("function", function);
    json.attribute("parameters", numParameters());
    json.attributeObject("state_bytes", [&] {
      for (StateCategory category : kStateCategories)
        json.attribute(keyOf(stringify(category)), stateBytes(category));
    });
    json.attribute("input_bytes", inputBytes);
    json.attribute("result_bytes", resultBytes);
    json.attribute("constant_bytes", constantBytes);
    json.attribute("arena_bytes", arenaBytes);
    if (scratchBytes)
      json.attribute("scratch_bytes_per_thread", *scratchBytes);
    json.attribute("total_bytes", totalBytes());
    found("tokens", tokens);
    found("width", width);
    found("layers", layers);
    number("unit_bytes", unit());
    number("saved_bytes_per_layer", savedPerLayer);
    number("attention_bytes_per_layer", attentionPerLayer);
    number("wgrad_copy_bytes_per_layer", wgradCopiesPerLayer);
    if (turn)
      json.attribute("wgrad_copy_bytes_at_turn", wgradCopyBytes());
    auto perUnit = [&](std::optional<double> bytes) -> std::optional<double> {
      if (!bytes || !unit())
        return std::nullopt;
      return *bytes / *unit();
    };
    number("saved_units_per_layer", perUnit(savedPerLayer));
    number("attention_units_per_layer", perUnit(attentionPerLayer));
    json.attributeObject("most_bytes", [&] {
      for (MemoryCategory category : kMemoryCategories)
        json.attribute(keyOf(stringify(category)), mostBytes(category));
    });
    if (turn)
      json.attributeObject("bytes_at_turn", [&] {
        for (MemoryCategory category : kMemoryCategories)
          json.attribute(keyOf(stringify(category)), bytesAt(*turn, category));
      });
    json.attributeObject("bytes_at_peak", [&] {
      for (MemoryCategory category : kMemoryCategories)
        json.attribute(keyOf(stringify(category)), bytesAt(peak, category));
      json.attribute("between_buffers", arenaBytes - peakBytes);
    });
    if (budget > 0)
      json.attributeObject("budget", [&] {
        json.attribute("bytes", budget);
        json.attribute("fits", totalBytes() <= budget);
        auto largest = [&](std::string name, const Found &value,
                           bool ofLayers) {
          std::optional<double> factor, count;
          if (value.value) {
            factor = largestFactor(budget, ofLayers);
            count = std::floor(*value.value * *factor);
          }
          number("largest_" + name, count);
          number(name + "_factor", factor);
        };
        largest("tokens", tokens, /*ofLayers=*/false);
        largest("layers", layers, /*ofLayers=*/true);
      });
    json.attributeArray("state", [&] {
      for (const PlannedState &entry : state)
        json.object([&] {
          json.attribute("path", entry.path);
          json.attribute("type", entry.type);
          json.attribute("category", keyOf(stringify(entry.category)));
          json.attribute("bytes", entry.bytes);
        });
    });
    json.attributeArray("buffers", [&] {
      for (const PlannedBuffer &buffer : buffers)
        json.object([&] {
          json.attribute("type", buffer.type);
          json.attribute("category", keyOf(stringify(buffer.category)));
          json.attribute("bytes", buffer.bytes);
          json.attribute("begin", static_cast<int64_t>(buffer.begin));
          json.attribute("end", static_cast<int64_t>(buffer.end));
          json.attribute("at_turn",
                         turn && buffer.begin <= *turn && *turn <= buffer.end);
          json.attribute("at_peak", buffer.begin <= peak && peak <= buffer.end);
          json.attribute("token_share", buffer.tokenShare);
          json.attribute("layer_share", buffer.layerShare);
          json.attribute("wgrad_copy", buffer.isWgradCopy);
          json.attribute("location", buffer.location);
        });
    });
  });
  os << "\n";
}

void MemoryReport::printBuffers(llvm::raw_ostream &os) const {
  SmallVector<const PlannedBuffer *> order;
  for (const PlannedBuffer &buffer : buffers)
    order.push_back(&buffer);
  llvm::sort(order, [](const PlannedBuffer *a, const PlannedBuffer *b) {
    return std::tuple(-a->bytes, a->begin, a->offset) <
           std::tuple(-b->bytes, b->begin, b->offset);
  });
  for (const PlannedBuffer *buffer : order)
    os << llvm::right_justify(bytesText(buffer->bytes), 12) << "  "
       << (turn && buffer->begin <= *turn && *turn <= buffer->end ? "turn "
                                                                  : "     ")
       << (buffer->begin <= peak && peak <= buffer->end ? "peak " : "     ")
       << llvm::left_justify(stringify(buffer->category), 20) << "  "
       << llvm::left_justify(buffer->type, 20) << "  [" << buffer->begin << ", "
       << buffer->end << "]  " << buffer->location << "\n";
}
