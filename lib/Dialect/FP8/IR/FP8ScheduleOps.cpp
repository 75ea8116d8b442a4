//===- FP8ScheduleOps.cpp - Kernels, launches, schedules ------------------===//
//
// Verifiers, interfaces and syntax of the ops of a schedule.
//
//===----------------------------------------------------------------------===//

#include "AccessSyntax.h"
#include "Integers.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/FP8/IR/Irregular.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionImplementation.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// The attributes that a kernel or schedule prints in its own syntax, not in
/// the attribute dictionary.
constexpr StringRef kSpokenAttrs[] = {"sym_name",  "function_type", "accesses",
                                      "domain",    "block",         "plan",
                                      "copy",      "arena_bytes",   "arg_attrs",
                                      "res_attrs", "sym_visibility"};

/// Checks that a type is a static tensor, or a static buffer with identity
/// layout.
LogicalResult verifyStatic(Operation *op, unsigned index, Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  auto memref = dyn_cast<MemRefType>(type);
  if (shaped && shaped.hasStaticShape() &&
      (!memref || memref.getLayout().isIdentity()))
    return success();
  return op->emitOpError("expected argument ")
         << index
         << " to be a static tensor or a static memref with identity layout "
            "but got "
         << type;
}

/// Every argument of a kernel has an access; one of a schedule has none.
ParseResult parseArguments(OpAsmParser &parser, bool withAccess,
                           SmallVectorImpl<OpAsmParser::Argument> &arguments,
                           SmallVectorImpl<Attribute> &accesses) {
  return parser.parseCommaSeparatedList(
      OpAsmParser::Delimiter::Paren, [&]() -> ParseResult {
        if (withAccess && parseAccess(parser, accesses))
          return failure();
        OpAsmParser::Argument argument;
        OptionalParseResult named = parser.parseOptionalArgument(
            argument, /*allowType=*/true, /*allowAttrs=*/true);
        if (named.has_value() && failed(*named))
          return failure();
        NamedAttrList attrs;
        // A declaration has types without names.
        if (!named.has_value() && (parser.parseType(argument.type) ||
                                   parser.parseOptionalAttrDict(attrs)))
          return failure();
        if (!named.has_value())
          argument.attrs = attrs.getDictionary(parser.getContext());
        arguments.push_back(argument);
        return success();
      });
}

void printArguments(OpAsmPrinter &printer, FunctionOpInterface func,
                    ArrayAttr accesses) {
  printer << '(';
  for (auto [index, type] : llvm::enumerate(func.getArgumentTypes())) {
    if (index > 0)
      printer << ", ";
    if (accesses)
      printer << stringifyAccess(cast<AccessAttr>(accesses[index]).getValue())
              << ' ';
    ArrayRef<NamedAttribute> attrs =
        mlir::function_interface_impl::getArgAttrs(func, index);
    if (func.isExternal()) {
      printer << type;
      printer.printOptionalAttrDict(attrs);
    } else {
      printer.printRegionArgument(func.getArgument(index), attrs);
    }
  }
  printer << ')';
}

void addFunctionAttrs(Builder &builder, OperationState &state, StringRef name,
                      FunctionType type) {
  state.addAttribute(SymbolTable::getSymbolAttrName(),
                     builder.getStringAttr(name));
  state.addAttribute("function_type", TypeAttr::get(type));
  state.addRegion();
}

/// Adds the types and attributes of parsed arguments.
void addArguments(Builder &builder, OperationState &state,
                  ArrayRef<OpAsmParser::Argument> arguments,
                  ArrayRef<Type> results) {
  SmallVector<Type> types;
  SmallVector<Attribute> attrs;
  bool hasAttrs = false;
  for (const OpAsmParser::Argument &argument : arguments) {
    types.push_back(argument.type);
    attrs.push_back(argument.attrs ? argument.attrs
                                   : builder.getDictionaryAttr({}));
    hasAttrs |= argument.attrs && !argument.attrs.empty();
  }
  state.addAttribute("function_type",
                     TypeAttr::get(builder.getFunctionType(types, results)));
  if (hasAttrs)
    state.addAttribute("arg_attrs", builder.getArrayAttr(attrs));
}

} // namespace

//===----------------------------------------------------------------------===//
// KernelOp
//===----------------------------------------------------------------------===//

void KernelOp::build(OpBuilder &builder, OperationState &state, StringRef name,
                     FunctionType type, ArrayRef<Access> accesses,
                     ArrayRef<int64_t> domain) {
  addFunctionAttrs(builder, state, name, type);
  SmallVector<Attribute> attrs;
  for (Access access : accesses)
    attrs.push_back(AccessAttr::get(builder.getContext(), access));
  state.addAttribute("accesses", builder.getArrayAttr(attrs));
  state.addAttribute("domain", builder.getDenseI64ArrayAttr(domain));
  // Only launches in the same module refer to a kernel.
  state.addAttribute(SymbolTable::getVisibilityAttrName(),
                     builder.getStringAttr("private"));
}

void KernelOp::setAccess(unsigned argument, Access access) {
  SmallVector<Attribute> attrs(getAccesses().getValue());
  attrs[argument] = AccessAttr::get(getContext(), access);
  setAccessesAttr(ArrayAttr::get(getContext(), attrs));
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  StringAttr name;
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<Attribute> accesses;
  SmallVector<Type> results;
  DenseI64ArrayAttr domain;
  if (parser.parseSymbolName(name, getSymNameAttrName(result.name),
                             result.attributes) ||
      parseArguments(parser, /*withAccess=*/true, arguments, accesses) ||
      parser.parseOptionalArrowTypeList(results) ||
      parser.parseKeyword("domain") || parser.parseEqual() ||
      parseIntegers(parser, domain))
    return failure();
  addArguments(builder, result, arguments, results);
  result.addAttribute(getAccessesAttrName(result.name),
                      builder.getArrayAttr(accesses));
  result.addAttribute(getDomainAttrName(result.name), domain);
  result.addAttribute(getSymVisibilityAttrName(result.name),
                      builder.getStringAttr("private"));
  if (succeeded(parser.parseOptionalKeyword("block"))) {
    int64_t block = 0;
    if (parser.parseEqual() || parser.parseInteger(block))
      return failure();
    result.addAttribute(getBlockAttrName(result.name),
                        builder.getI64IntegerAttr(block));
  }
  if (succeeded(parser.parseOptionalKeyword("plan"))) {
    Attribute plan;
    if (parser.parseEqual() || parser.parseAttribute(plan))
      return failure();
    result.addAttribute(getPlanAttrName(result.name), plan);
  }
  if (succeeded(parser.parseOptionalKeyword("copy")))
    result.addAttribute(getCopyAttrName(result.name), builder.getUnitAttr());
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  Region *body = result.addRegion();
  OptionalParseResult parsed = parser.parseOptionalRegion(*body, arguments);
  return failure(parsed.has_value() && failed(*parsed));
}

void KernelOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  printArguments(printer, *this, getAccesses());
  printer.printOptionalArrowTypeList(getResultTypes());
  printer << " domain = [" << getDomain() << ']';
  if (std::optional<uint64_t> block = getBlock())
    printer << " block = " << *block;
  if (Attribute plan = getPlanAttr())
    printer << " plan = " << plan;
  if (getCopy())
    printer << " copy";
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), kSpokenAttrs);
  if (isExternal())
    return;
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

/// Returns the tiles of a plan.
static SmallVector<ArrayRef<int64_t>> tilesOf(Attribute plan) {
  if (auto cpu = dyn_cast_or_null<CPUPlanAttr>(plan))
    return {cpu.getTile()};
  if (auto gpu = dyn_cast_or_null<GPUPlanAttr>(plan))
    return {gpu.getTile(), gpu.getSumTile()};
  return {};
}

LogicalResult KernelOp::verify() {
  if (getAccesses().size() != getNumArguments())
    return emitOpError("expected an access for each of ")
           << getNumArguments() << " arguments but got "
           << getAccesses().size();
  for (auto [index, type] : llvm::enumerate(getArgumentTypes()))
    if (failed(verifyStatic(*this, index, type)))
      return failure();
  SmallVector<Type> destinations;
  for (auto [index, type] : llvm::enumerate(getArgumentTypes()))
    if (getAccess(index) != Access::Read && isa<TensorType>(type))
      destinations.push_back(type);
  if (ArrayRef(destinations) != getResultTypes())
    return emitOpError("expected one result for each tensor that it writes (")
           << destinations << ") but got (" << getResultTypes() << ")";
  for (int64_t extent : getDomain())
    if (extent <= 0)
      return emitOpError("expected a domain of positive extents but got ")
             << extent;
  if (std::optional<uint64_t> block = getBlock();
      block && (getDomain().empty() || *block == 0 ||
                *block > static_cast<uint64_t>(getDomain().back())))
    return emitOpError("expected a block of 1 to all iterations of the last "
                       "loop of the domain but got ")
           << *block;
  for (ArrayRef<int64_t> tile : tilesOf(getPlanAttr()))
    if (tile.size() != getDomain().size())
      return emitOpError("expected a tile of ")
             << getDomain().size() << " extents but got " << tile.size();
  if (getCopy() && (getNumArguments() != 2 || getAccess(0) != Access::Read ||
                    getAccess(1) != Access::Write ||
                    getArgumentTypes()[0] != getArgumentTypes()[1]))
    return emitOpError("expected a copy to read its first argument and to "
                       "write its second, of the same type");
  return success();
}

/// Checks that an op has a loop of its own, with the same iterations, for each
/// loop of the kernel's domain that it has at all.
static LogicalResult verifyLoops(KernelOp kernel, Operation *op) {
  auto attr =
      op->getAttrOfType<DenseI64ArrayAttr>(FP8Dialect::kTaskDimsAttrName);
  if (!attr)
    return success();
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  SmallVector<int64_t> extents;
  if (linalgOp)
    extents = linalgOp.getStaticLoopRanges();
  else
    for (scf::ForOp loop : loopsOfNest(op)) {
      std::optional<APInt> count = loop.getStaticTripCount();
      extents.push_back(count ? count->getSExtValue() : -1);
    }
  llvm::SmallBitVector taken(extents.size());
  // (Other verifiers check the number of loops.)
  for (auto [loop, extent] : llvm::zip(attr.asArrayRef(), kernel.getDomain())) {
    if (loop == -1)
      continue;
    auto error = [&] {
      return op->emitOpError("expected '") << FP8Dialect::kTaskDimsAttrName;
    };
    if (loop < 0 || loop >= static_cast<int64_t>(extents.size()))
      return error() << "' to name one of its " << extents.size()
                     << " loops or to be -1 but got " << loop;
    if (taken.test(loop))
      return error() << "' to name each loop once but got " << loop << " again";
    taken.set(loop);
    if (extents[loop] != extent)
      return error() << "' to name a loop of " << extent
                     << " iterations, as the domain has, but got loop " << loop
                     << " of " << extents[loop];
  }
  return success();
}

/// Returns whether an op or nest writes an argument of its kernel.
static bool writesArgument(Operation *op) {
  auto isArgument = [](Value value) {
    return isa<BlockArgument>(value) && isa<MemRefType>(value.getType());
  };
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return llvm::any_of(linalgOp.getDpsInits(), isArgument);
  return op
      ->walk([&](memref::StoreOp store) {
        return isArgument(store.getMemRef()) ? WalkResult::interrupt()
                                             : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Checks that no two tasks write the same part of an argument: what writes it
/// has a parallel loop for each loop that tasks divide. (The loops of a nest
/// have no kinds; fp8-divide-scatters has looked at what they write.)
static LogicalResult verifyWrites(KernelOp kernel, Operation *op) {
  auto attr =
      op->getAttrOfType<DenseI64ArrayAttr>(FP8Dialect::kTaskDimsAttrName);
  if (!attr)
    return success();
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  bool writes = writesArgument(op);
  ArrayRef<int64_t> divided = kernel.getDomain();
  if (kernel.getBlock())
    divided = divided.drop_back();
  for (auto [i, extent] : llvm::enumerate(divided)) {
    if (!writes || extent == 1)
      continue;
    int64_t loop = attr.empty() ? -1 : attr[i];
    if (loop < 0 || (linalgOp && linalgOp.getIteratorTypesArray()[loop] !=
                                     utils::IteratorType::parallel))
      return op->emitOpError("expected a parallel loop for loop ")
             << i << " of the domain, since it writes an argument";
  }
  return success();
}

/// Checks that the accesses allow what the body does.
LogicalResult KernelOp::verifyRegions() {
  if (isExternal())
    return success();
  auto end = dyn_cast<ReturnOp>(getBody().front().getTerminator());
  if (!end || end.getOperandTypes() != TypeRange(getResultTypes()))
    return emitOpError("expected the body to end with fp8.return of (")
           << getResultTypes() << ")";
  for (Operation &op : getBody().front())
    if (failed(verifyLoops(*this, &op)) || failed(verifyWrites(*this, &op)))
      return failure();
  for (BlockArgument arg : getArguments()) {
    if (getAccess(arg.getArgNumber()) != Access::Read)
      continue;
    for (Operation *user : arg.getUsers())
      if (auto effects = dyn_cast<MemoryEffectOpInterface>(user);
          effects &&
          effects.getEffectOnValue<MemoryEffects::Write>(arg).has_value())
        return user->emitOpError("expected argument ")
               << arg.getArgNumber() << " of kernel '" << getSymName()
               << "' not to be written: its access is 'read'";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// LaunchOp
//===----------------------------------------------------------------------===//

void LaunchOp::build(OpBuilder &builder, OperationState &state, KernelOp kernel,
                     ValueRange operands, StringAttr label) {
  build(builder, state, kernel.getResultTypes(),
        FlatSymbolRefAttr::get(kernel.getSymNameAttr()), operands,
        kernel.getAccesses(), label, /*number=*/IntegerAttr());
}

SmallVector<OpOperand *> LaunchOp::getDestinations() {
  SmallVector<OpOperand *> destinations;
  for (OpOperand &operand : (*this)->getOpOperands())
    if (getAccess(operand.getOperandNumber()) != Access::Read)
      destinations.push_back(&operand);
  return destinations;
}

LogicalResult LaunchOp::verify() {
  size_t arguments = getAccesses().size(), operands = getNumOperands();
  if (arguments == 0 ? operands > 0
                     : operands == 0 || operands % arguments != 0)
    return emitOpError("expected one or more sets of ")
           << arguments << " operands, one for each access, but got "
           << operands << " operands";
  if (std::optional<int64_t> number = getNumber(); number && *number < 0)
    return emitOpError("expected a number that is not negative but got ")
           << *number;
  if (getNumSets() == 1)
    return success();
  if (getNumResults() > 0)
    return emitOpError("expected one set of operands on tensors but got ")
           << getNumSets();
  return verifySets();
}

/// Checks that no set of operands writes a buffer of another one.
LogicalResult LaunchOp::verifySets() {
  DenseMap<Value, unsigned> writers; // the first operand of the writing set
  for (OpOperand *destination : getDestinations())
    writers.try_emplace(destination->get(),
                        getFirstOfSet(destination->getOperandNumber()));
  for (OpOperand &operand : (*this)->getOpOperands()) {
    auto writer = writers.find(operand.get());
    if (writer != writers.end() &&
        writer->second != getFirstOfSet(operand.getOperandNumber()))
      return emitOpError("expected no set of operands to access what another "
                         "set writes but got operand ")
             << operand.getOperandNumber();
  }
  return success();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  Operation *callee = symbols.lookupNearestSymbolFrom(*this, getKernelAttr());
  auto kernel = dyn_cast_or_null<KernelOp>(callee);
  // Codegen replaces a kernel by the function that runs one of its tasks.
  if (callee && !kernel &&
      (callee->hasAttr(FP8Dialect::kTasksAttrName) ||
       callee->hasAttr(FP8Dialect::kGPULaunchAttrName)))
    return success();
  if (!kernel)
    return emitOpError("expected '")
           << getKernel() << "' to be a kernel of the module";
  bool fits = TypeRange(kernel.getResultTypes()) == TypeRange(getResultTypes());
  for (unsigned set = 0; set < getNumSets(); ++set)
    fits &= getSet(set).getTypes() == TypeRange(kernel.getArgumentTypes());
  if (!fits)
    return emitOpError("expected operands and results of kernel '")
           << getKernel() << "', " << kernel.getFunctionType() << ", but got "
           << FunctionType::get(getContext(), getOperandTypes(),
                                getResultTypes());
  if (kernel.getAccesses() != getAccesses())
    return emitOpError("expected the accesses of kernel '")
           << getKernel() << "', " << kernel.getAccesses() << ", but got "
           << getAccesses();
  return success();
}

void LaunchOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  for (OpOperand &operand : (*this)->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    Access access = getAccess(operand.getOperandNumber());
    if (access != Access::Write)
      effects.emplace_back(MemoryEffects::Read::get(), &operand);
    if (access != Access::Read)
      effects.emplace_back(MemoryEffects::Write::get(), &operand);
  }
}

//===----------------------------------------------------------------------===//
// ScheduleOp
//===----------------------------------------------------------------------===//

void ScheduleOp::build(OpBuilder &builder, OperationState &state,
                       StringRef name, FunctionType type) {
  addFunctionAttrs(builder, state, name, type);
}

Value ScheduleOp::getArena() {
  return getArenaBytes() ? getArgument(0) : Value();
}

ParseResult ScheduleOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  StringAttr name;
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<Attribute> accesses;
  if (parser.parseSymbolName(name, getSymNameAttrName(result.name),
                             result.attributes) ||
      parseArguments(parser, /*withAccess=*/false, arguments, accesses))
    return failure();
  addArguments(builder, result, arguments, /*results=*/{});
  if (succeeded(parser.parseOptionalKeyword("arena_bytes"))) {
    int64_t bytes = 0;
    if (parser.parseEqual() || parser.parseInteger(bytes))
      return failure();
    result.addAttribute(getArenaBytesAttrName(result.name),
                        builder.getI64IntegerAttr(bytes));
  }
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  return parser.parseRegion(*result.addRegion(), arguments);
}

void ScheduleOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  printArguments(printer, *this, /*accesses=*/nullptr);
  if (std::optional<int64_t> bytes = getArenaBytes())
    printer << " arena_bytes = " << *bytes;
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), kSpokenAttrs);
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult ScheduleOp::verify() {
  if (getNumResults() != 0)
    return emitOpError("expected no results: a schedule writes into its "
                       "arguments");
  std::optional<int64_t> bytes = getArenaBytes();
  if (!bytes)
    return success();
  auto arena = getNumArguments() == 0
                   ? MemRefType()
                   : dyn_cast<MemRefType>(getArgumentTypes()[0]);
  if (!arena || !arena.getElementType().isInteger(8) || arena.getRank() != 1 ||
      arena.getDimSize(0) != *bytes)
    return emitOpError("expected the arena, memref<")
           << *bytes << "xi8>, as first argument";
  return success();
}

//===----------------------------------------------------------------------===//
// SubbufferOp
//===----------------------------------------------------------------------===//

LogicalResult SubbufferOp::verify() {
  MemRefType source = getSource().getType(), result = getResult().getType();
  for (MemRefType type : {source, result})
    if (!type.getLayout().isIdentity())
      return emitOpError() << "expected buffers with identity layout but got "
                           << type;
  if (source.getElementType() != result.getElementType())
    return emitOpError() << "expected a part of element type "
                         << source.getElementType() << " but got "
                         << result.getElementType();
  if (result.getNumElements() > source.getNumElements())
    return emitOpError() << "expected a part of at most "
                         << source.getNumElements() << " elements but got "
                         << result.getNumElements();
  return success();
}

Value SubbufferOp::getViewSource() { return getSource(); }
