//===- fp8-reduce.cpp - The smallest module that a check still takes ------===//
//
// Delta debugging: parts of a module go, in chunks that begin with all and end
// with one, as long as a program of the user's says that what is left shows
// what is looked for. Parts are results of public functions, ops (their results
// become an operand of the same type, zeros, or what a region computes), ops
// without results, and
// arguments that nothing uses.
//
//===----------------------------------------------------------------------===//

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"
#include "fp8/Init.h"

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
#include "mlir/Support/FileUtilities.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;
using namespace mlir::fp8;
namespace cl = llvm::cl;

namespace {

cl::OptionCategory category("fp8-reduce options");
cl::opt<std::string> input(cl::Positional, cl::desc("MODULE.mlir"),
                           cl::Required, cl::cat(category));
cl::opt<std::string> output("o", cl::init("-"),
                            cl::desc("Where the reduced module goes"),
                            cl::value_desc("FILE"), cl::cat(category));
cl::opt<std::string>
    test("test", cl::Required,
         cl::desc("Program that is called with the path of a module and ends "
                  "with status 0 if that shows what is looked for"),
         cl::value_desc("PROGRAM"), cl::cat(category));
cl::list<std::string> testArgs("test-arg",
                               cl::desc("Argument of the program, before the "
                                        "path"),
                               cl::value_desc("TEXT"), cl::cat(category));
cl::opt<unsigned> timeout("timeout", cl::init(0),
                          cl::desc("Seconds after which the program is ended "
                                   "and its module is none (0: never)"),
                          cl::value_desc("N"), cl::cat(category));
cl::opt<bool> quiet("quiet", cl::desc("No progress"), cl::cat(category));

/// Asks the user's program.
class Check {
public:
  /// 1 if the module shows what is looked for, 0 if not, -1 if the program
  /// cannot be run.
  int run(StringRef module) {
    if (!seen.insert(module).second)
      return 0;
    ++count;
    SmallString<128> path;
    int file;
    if (llvm::sys::fs::createTemporaryFile("fp8-reduce", "mlir", file, path))
      return -1;
    llvm::FileRemover remover(path);
    llvm::raw_fd_ostream(file, /*shouldClose=*/true) << module;
    auto program = llvm::sys::findProgramByName(test);
    SmallVector<StringRef> arguments{program ? StringRef(*program)
                                             : StringRef(test)};
    arguments.append(testArgs.begin(), testArgs.end());
    arguments.push_back(path);
    // What it says of one module among hundreds is no news.
    std::optional<StringRef> streams[] = {StringRef(""), StringRef(""),
                                          StringRef("")};
    bool isMissing = false;
    int status =
        llvm::sys::ExecuteAndWait(arguments[0], arguments, std::nullopt,
                                  streams, timeout, 0, &why, &isMissing);
    return isMissing || status == -1 ? -1 : status == 0;
  }

  int64_t count = 0;
  std::string why; // it cannot be run

private:
  llvm::StringSet<> seen; // those that were adopted are not asked for again
};

/// Whether modules are printed with locations: JAX's have the names of
/// arguments and results, those of the parser are none of the module's own.
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

/// Removes what nothing uses.
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

/// Zeros of this type as StableHLO or arith has them; null where there are
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

/// Parts of one kind: how many a module has, and how those from `begin` to
/// `end` go. They are numbered in the order of the program.
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
            // Users come first.
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

/// The operand that may stand for a result, or null.
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

/// Whether a region of an op may stand for it: it has one block, and that no
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

/// Moves the ops of a branch to where the branch stands.
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

/// Results, or arguments without a use, of functions that are not called.
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
  /// Adopts what `change` makes of the best module if that is another one, is
  /// valid, and shows what is looked for.
  bool attempt(llvm::function_ref<void(ModuleOp)> change) {
    OwningOpRef<ModuleOp> candidate(best->clone());
    change(*candidate);
    cleanUp(*candidate);
    if (failed(verify(*candidate)) || check.run(textOf(*candidate)) != 1)
      return false;
    best = std::move(candidate);
    return true;
  }

  /// Removes what can go of one kind, in smaller and smaller chunks.
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
  Check check;
  int first = check.run(textOf(*module));
  if (first < 0)
    return fail("cannot run '" + test + "': " + check.why +
                " (expected an executable, a script with its #! line)");
  if (first == 0)
    return fail("expected a module that '" + test +
                "' ends with status 0 for but got another status");
  // Candidates may be wrong in many ways, which is no news either.
  ScopedDiagnosticHandler silence(&context,
                                  [](Diagnostic &) { return success(); });
  Reducer reducer(std::move(module), check);
  reducer.run();
  std::string error;
  auto file = openOutputFile(output, &error);
  if (!file)
    return fail(error);
  file->os() << textOf(*reducer.best);
  file->keep();
  return 0;
}
