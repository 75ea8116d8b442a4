//===- fp8-reduce.cpp - Reduction of a module for a check -----------------===//
//
// Delta debugging: removes parts of a module, in chunks that shrink from all
// parts to single ones, as long as the user's program says that the rest still
// shows the problem. Parts are results of public functions, ops (whose results
// become an operand of the same type, zeros, or the results of a region), ops
// without results, and arguments without uses.
//
//===----------------------------------------------------------------------===//

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"
#include "fp8/Init.h"
#include "fp8/Support/OutputFile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Iterators.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Program.h"

using namespace mlir;
using namespace mlir::fp8;
namespace cl = llvm::cl;

namespace {

cl::OptionCategory category("fp8-reduce options");
cl::opt<std::string> input(cl::Positional, cl::desc("MODULE.mlir"),
                           cl::Required, cl::cat(category));
cl::opt<std::string> output("o", cl::init("-"),
                            cl::desc("File for the reduced module"),
                            cl::value_desc("FILE"), cl::cat(category));
cl::opt<std::string>
    test("test", cl::Required,
         cl::desc("Program that is called with the path of a module and exits "
                  "with status 0 if the module shows the problem"),
         cl::value_desc("PROGRAM"), cl::cat(category));
cl::list<std::string> testArgs("test-arg",
                               cl::desc("Argument of the program, before the "
                                        "path"),
                               cl::value_desc("TEXT"), cl::cat(category));
cl::opt<unsigned> timeout("timeout", cl::init(0),
                          cl::desc("Seconds after which the program is killed "
                                   "and its module is rejected (0: never)"),
                          cl::value_desc("N"), cl::cat(category));
cl::opt<bool> quiet("quiet", cl::desc("Print no progress"), cl::cat(category));

/// Runs the user's program on modules, each in the same file of a directory.
class Check {
public:
  explicit Check(std::string directory) : directory(std::move(directory)) {}
  ~Check() { (void)llvm::sys::fs::remove_directories(directory); }

  /// Returns 1 if the module shows the problem, 0 if not, -1 if the program
  /// cannot be run.
  int run(StringRef module) {
    if (!seen.insert(module).second)
      return 0;
    ++count;
    std::string path = directory + "/module.mlir";
    if (llvm::Error error = writeFile(path, module)) {
      why = llvm::toString(std::move(error));
      return -1;
    }
    auto program = llvm::sys::findProgramByName(test);
    SmallVector<StringRef> arguments{program ? StringRef(*program)
                                             : StringRef(test)};
    arguments.append(testArgs.begin(), testArgs.end());
    arguments.push_back(path);
    // Discard its output for each of hundreds of modules.
    std::optional<StringRef> streams[] = {StringRef(""), StringRef(""),
                                          StringRef("")};
    bool isMissing = false;
    int status =
        llvm::sys::ExecuteAndWait(arguments[0], arguments, std::nullopt,
                                  streams, timeout, 0, &why, &isMissing);
    return isMissing || status == -1 ? -1 : status == 0;
  }

  int64_t count = 0;
  std::string why; // why it cannot be run

private:
  std::string directory;
  llvm::StringSet<> seen; // adopted modules are not checked again
};

/// Whether modules are printed with locations: those of JAX hold the names of
/// arguments and results; those of the parser are not part of the module.
bool hasLocations = false;

std::string textOf(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os, OpPrintingFlags().enableDebugInfo(hasLocations));
  return text;
}

bool hasOwnLocations(ModuleOp module) {
  auto isOwn = [](Location loc) {
    auto at = dyn_cast<FileLineColLoc>(loc);
    return !at || at.getFilename() != input;
  };
  return module
      .walk([&](Operation *op) {
        bool isFound = isOwn(op->getLoc());
        for (Region &region : op->getRegions())
          for (BlockArgument argument : region.getArguments())
            isFound |= isOwn(argument.getLoc());
        return isFound ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Removes everything without uses.
void cleanUp(ModuleOp module) {
  for (bool isChanged = true; isChanged;) {
    isChanged = false;
    SmallVector<Operation *> dead;
    module.walk<WalkOrder::PostOrder, ReverseIterator>([&](Operation *op) {
      if (isOpTriviallyDead(op))
        op->erase();
    });
    for (auto function : module.getOps<func::FuncOp>())
      if (function.isPrivate() &&
          SymbolTable::symbolKnownUseEmpty(function, module))
        dead.push_back(function);
    for (Operation *op : dead) {
      op->erase();
      isChanged = true;
    }
  }
}

/// Creates zeros of this type in StableHLO or arith; returns null if there are
/// none.
Value makeZero(OpBuilder &builder, Location loc, Type type, bool isStableHLO) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (tensor && !tensor.hasStaticShape())
    return nullptr;
  if (!getElementTypeOrSelf(type).isIntOrIndexOrFloat() ||
      (isa<ShapedType>(type) && !tensor))
    return nullptr;
  if (!tensor || !isStableHLO)
    return arith::ConstantOp::create(
        builder, loc, cast<TypedAttr>(builder.getZeroAttr(type)));
  return stablehlo::ConstantOp::create(
      builder, loc,
      DenseElementsAttr::get(tensor,
                             builder.getZeroAttr(tensor.getElementType())));
}

bool isConstant(Operation *op) { return op->hasTrait<OpTrait::ConstantLike>(); }

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

/// Parts of one kind: how many a module has, and a function that removes those
/// from `begin` to `end`. They are numbered in program order.
struct Parts {
  const char *name;
  std::function<void(ModuleOp, size_t begin, size_t end)> remove;
  std::function<size_t(ModuleOp)> count;
};

/// Calls `visit` for each op that `isPart` accepts, with its number.
void forEach(ModuleOp module, llvm::function_ref<bool(Operation *)> isPart,
             llvm::function_ref<void(size_t, Operation *)> visit) {
  SmallVector<Operation *> ops;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isPart(op))
      ops.push_back(op);
  });
  for (auto [index, op] : llvm::enumerate(ops))
    visit(index, op);
}

Parts opsOf(const char *name, bool (*isPart)(Operation *),
            void (*remove)(Operation *)) {
  return {name,
          [=](ModuleOp module, size_t begin, size_t end) {
            SmallVector<Operation *> chosen;
            forEach(module, isPart, [&](size_t index, Operation *op) {
              if (index >= begin && index < end)
                chosen.push_back(op);
            });
            // Remove users first.
            for (Operation *op : llvm::reverse(chosen))
              remove(op);
          },
          [=](ModuleOp module) {
            size_t count = 0;
            forEach(module, isPart, [&](size_t, Operation *) { ++count; });
            return count;
          }};
}

bool hasResults(Operation *op) {
  return op->getNumResults() > 0 && !isConstant(op) && !op->use_empty();
}

/// Returns an operand that may replace a result, or null.
Value operandFor(OpResult result) {
  for (Value operand : result.getOwner()->getOperands())
    if (operand.getType() == result.getType())
      return operand;
  return nullptr;
}

bool hasOperandFor(Operation *op) {
  return hasResults(op) && llvm::any_of(op->getResults(), operandFor);
}

void replaceByOperands(Operation *op) {
  for (OpResult result : op->getResults())
    if (Value operand = operandFor(result))
      result.replaceAllUsesWith(operand);
}

/// Returns true if a region may replace its op: it has one block, without
/// arguments.
bool canBeOpened(Operation *op, Region &region) {
  return op->getNumResults() > 0 && region.hasOneBlock() &&
         region.getNumArguments() == 0 &&
         region.front().getTerminator()->getOperandTypes() ==
             op->getResultTypes();
}

bool hasRegionToOpen(Operation *op) {
  return op->getNumRegions() > 0 &&
         (canBeOpened(op, op->getRegions().front()) ||
          canBeOpened(op, op->getRegions().back()));
}

/// Moves the ops of a region in front of its op, and replaces the op.
void open(Operation *op, Region &region) {
  if (!canBeOpened(op, region))
    return;
  Operation *end = region.front().getTerminator();
  op->replaceAllUsesWith(end->getOperands());
  op->getBlock()->getOperations().splice(
      op->getIterator(), region.front().getOperations(), region.front().begin(),
      end->getIterator());
  op->erase();
}

void replaceByFirstRegion(Operation *op) { open(op, op->getRegions().front()); }
void replaceByLastRegion(Operation *op) { open(op, op->getRegions().back()); }

void replaceByZeros(Operation *op) {
  OpBuilder builder(op);
  bool isStableHLO = isa<stablehlo::StablehloDialect>(op->getDialect()) ||
                     isa<func::CallOp>(op);
  for (OpResult result : op->getResults())
    if (!result.use_empty())
      if (Value zero =
              makeZero(builder, op->getLoc(), result.getType(), isStableHLO))
        result.replaceAllUsesWith(zero);
}

bool isStatement(Operation *op) {
  return op->getNumResults() == 0 && !op->hasTrait<OpTrait::IsTerminator>() &&
         op->getParentOp() && !isa<ModuleOp>(op->getParentOp());
}

void erase(Operation *op) { op->erase(); }

/// Returns the results, or the unused arguments, of functions that are not
/// called.
Parts signaturesOf(bool results) {
  auto visit = [results](ModuleOp module, size_t begin, size_t end) {
    size_t number = 0;
    for (auto function : module.getOps<func::FuncOp>()) {
      if (function.isExternal() ||
          !SymbolTable::symbolKnownUseEmpty(function, module))
        continue;
      unsigned size =
          results ? function.getNumResults() : function.getNumArguments();
      BitVector chosen(size);
      for (unsigned i = 0; i < size; ++i)
        if (results || function.getArgument(i).use_empty()) {
          chosen[i] = number >= begin && number < end;
          ++number;
        }
      if (chosen.none())
        continue;
      if (!results) {
        (void)function.eraseArguments(chosen);
        continue;
      }
      function.getBody().back().getTerminator()->eraseOperands(chosen);
      (void)function.eraseResults(chosen);
    }
    return number;
  };
  return {results ? "results" : "arguments",
          [=](ModuleOp module, size_t begin, size_t end) {
            visit(module, begin, end);
          },
          [=](ModuleOp module) { return visit(module, 0, 0); }};
}

//===----------------------------------------------------------------------===//
// The search
//===----------------------------------------------------------------------===//

class Reducer {
public:
  Reducer(OwningOpRef<ModuleOp> module, Check &check)
      : best(std::move(module)), check(check) {}

  void run() {
    attempt([](ModuleOp module) {
      PassManager passes(module.getContext());
      passes.addPass(createInlinerPass());
      (void)passes.run(module);
    });
    const Parts kinds[] = {
        signaturesOf(/*results=*/true),
        opsOf("ops by their operands", hasOperandFor, replaceByOperands),
        opsOf("ops by zeros", hasResults, replaceByZeros),
        opsOf("ops by their first region", hasRegionToOpen,
              replaceByFirstRegion),
        opsOf("ops by their last region", hasRegionToOpen, replaceByLastRegion),
        opsOf("ops without results", isStatement, erase),
        signaturesOf(/*results=*/false)};
    for (bool isSmaller = true; isSmaller;) {
      isSmaller = false;
      for (const Parts &parts : kinds)
        isSmaller |= reduce(parts);
    }
  }

  OwningOpRef<ModuleOp> best;

private:
  /// Adopts the best module with `change` applied if the result is valid, new,
  /// and shows the problem.
  bool attempt(llvm::function_ref<void(ModuleOp)> change) {
    OwningOpRef<ModuleOp> candidate(best->clone());
    change(*candidate);
    cleanUp(*candidate);
    if (failed(verify(*candidate)) || check.run(textOf(*candidate)) != 1)
      return false;
    best = std::move(candidate);
    return true;
  }

  /// Removes parts of one kind as far as possible, in smaller and smaller
  /// chunks.
  bool reduce(const Parts &parts) {
    bool isSmaller = false;
    for (size_t chunk = parts.count(*best); chunk > 0; chunk /= 2)
      for (size_t at = 0; at < parts.count(*best);) {
        if (attempt(
                [&](ModuleOp module) { parts.remove(module, at, at + chunk); }))
          isSmaller = true;
        else
          at += chunk;
      }
    if (!quiet)
      llvm::errs() << "fp8-reduce: " << parts.name << ": " << parts.count(*best)
                   << " left, " << check.count << " checks\n";
    return isSmaller;
  }

  Check &check;
};

int fail(const llvm::Twine &message) {
  llvm::errs() << "fp8-reduce: error: " << message << "\n";
  return 1;
}

} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv, "Reduces a module for a check\n");
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry);
  context.loadDialect<arith::ArithDialect, stablehlo::StablehloDialect>();
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(input, &context);
  if (!module)
    return 1;
  hasLocations = hasOwnLocations(*module);
  llvm::Expected<std::string> directory =
      createTemporaryDirectory("fp8-reduce-");
  if (!directory)
    return fail(llvm::toString(directory.takeError()));
  Check check(*directory);
  int first = check.run(textOf(*module));
  if (first < 0)
    return fail("cannot run '" + test + "': " + check.why +
                " (expected an executable, a script with its #! line)");
  if (first == 0)
    return fail("expected a module that '" + test +
                "' ends with status 0 for but got another status");
  // Candidates may be invalid in many ways; do not report that.
  ScopedDiagnosticHandler silence(&context,
                                  [](Diagnostic &) { return success(); });
  Reducer reducer(std::move(module), check);
  reducer.run();
  if (llvm::Error error = writeFile(output, textOf(*reducer.best)))
    return fail(llvm::toString(std::move(error)));
  return 0;
}
