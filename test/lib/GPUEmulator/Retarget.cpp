//===- Retarget.cpp - NVVM modules for the host ---------------------------===//

#include "Retarget.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/ModuleSlotTracker.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Triple.h"

using llvm::StringRef;

namespace fp8::emulator {

static constexpr unsigned kSharedSpace = 3;

namespace {

class Retargeter {
public:
  Retargeter(llvm::Module &module, uint64_t sharedBase, Retargeted &result)
      : module(module), context(module.getContext()), sharedBase(sharedBase),
        result(result), word(llvm::Type::getInt64Ty(context)),
        pointer(llvm::PointerType::getUnqual(context)) {}

  llvm::Error run(const llvm::DataLayout &layout, const llvm::Triple &triple);

private:
  llvm::Error placeSharedMemory();
  llvm::Error rewrite(llvm::Function &function);
  llvm::Error rewriteCall(llvm::CallInst &call);
  llvm::Error rewriteIntrinsic(llvm::CallInst &call);
  llvm::Error rewriteAssembly(llvm::CallInst &call);
  llvm::Error emit(llvm::CallInst &call, const std::string &opcode,
                   llvm::ArrayRef<llvm::Value *> operands,
                   llvm::ArrayRef<unsigned> resultOrder);
  void check(llvm::Instruction &access, llvm::Value *address, uint64_t bytes,
             unsigned alignment, AccessKind kind);
  void checkRange(llvm::MemIntrinsic &access);
  void checkRegisters(llvm::CallInst &wgmma);
  llvm::Value *asWord(llvm::IRBuilder<> &builder, llvm::Value *value);
  llvm::Value *fromWord(llvm::IRBuilder<> &builder, llvm::Value *value,
                        llvm::Type *type);
  llvm::Value *literal(const void *address) {
    return llvm::ConstantExpr::getIntToPtr(
        llvm::ConstantInt::get(word, reinterpret_cast<uint64_t>(address)),
        pointer);
  }
  /// Returns the text and line of an instruction of the image, for messages.
  const std::string &placeOf(const llvm::Instruction &instruction) const {
    return places.find(&instruction)->second;
  }
  llvm::FunctionCallee helper(StringRef name, unsigned arguments);
  void addEntry(llvm::Function &kernel);

  llvm::Module &module;
  llvm::LLVMContext &context;
  uint64_t sharedBase;
  Retargeted &result;
  llvm::Type *word, *pointer;
  /// The places of the current function's instructions.
  llvm::DenseMap<const llvm::Instruction *, std::string> places;
  /// For each call of wgmma, the uses of its results.
  llvm::DenseMap<llvm::CallInst *, std::vector<RegisterUse *>> uses;
};

} // namespace

/// Returns the text and line of an instruction.
static std::string describe(const llvm::Instruction &instruction,
                            llvm::ModuleSlotTracker &slots) {
  std::string text;
  llvm::raw_string_ostream os(text);
  instruction.print(os, slots);
  StringRef shown = StringRef(text).trim();
  shown = shown.take_until([](char c) { return c == '\n'; });
  size_t metadata = shown.find(", !");
  shown = shown.take_front(std::min<size_t>(metadata, 160));
  std::string place = " '" + shown.str() + "'";
  if (const llvm::DebugLoc &location = instruction.getDebugLoc())
    place += " (line " + std::to_string(location.getLine()) + ")";
  return place;
}

/// Returns true if only one thread can have the address of the memory, which
/// then needs no check.
static bool isPrivate(const llvm::Value *address) {
  const llvm::Value *object = llvm::getUnderlyingObject(address, 0);
  if (const auto *argument = llvm::dyn_cast<llvm::Argument>(object))
    return argument->hasByValAttr();
  return llvm::isa<llvm::AllocaInst>(object);
}

llvm::FunctionCallee Retargeter::helper(StringRef name, unsigned arguments) {
  llvm::SmallVector<llvm::Type *> types(arguments, word);
  types.back() = pointer;
  return module.getOrInsertFunction(
      name, llvm::FunctionType::get(llvm::Type::getVoidTy(context), types,
                                    /*isVarArg=*/false));
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

/// Assigns addresses to shared arrays: static ones one after another, then all
/// dynamic ones at the same address.
llvm::Error Retargeter::placeSharedMemory() {
  const llvm::DataLayout &layout = module.getDataLayout();
  llvm::SmallVector<llvm::GlobalVariable *> fixed, dynamic;
  for (llvm::GlobalVariable &global : module.globals()) {
    if (global.getAddressSpace() != kSharedSpace)
      continue;
    if (global.hasInitializer() &&
        !llvm::isa<llvm::UndefValue>(global.getInitializer()))
      return llvm::createStringError("shared array '" + global.getName() +
                                     "' has an initial value");
    bool isEmpty = layout.getTypeAllocSize(global.getValueType()) == 0;
    (isEmpty ? dynamic : fixed).push_back(&global);
  }
  uint64_t offset = 0;
  auto place = [&](llvm::GlobalVariable *global) {
    global->replaceAllUsesWith(llvm::ConstantExpr::getIntToPtr(
        llvm::ConstantInt::get(word, sharedBase + offset), global->getType()));
    global->eraseFromParent();
  };
  auto align = [&](llvm::GlobalVariable *global) {
    offset = llvm::alignTo(offset, layout.getPreferredAlign(global));
  };
  for (llvm::GlobalVariable *global : fixed) {
    align(global);
    uint64_t bytes = layout.getTypeAllocSize(global->getValueType());
    place(global);
    offset += bytes;
  }
  for (llvm::GlobalVariable *global : dynamic)
    align(global);
  offset = llvm::alignTo(offset, 16);
  for (llvm::GlobalVariable *global : dynamic)
    place(global);
  result.staticShared = offset;
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

void Retargeter::check(llvm::Instruction &access, llvm::Value *address,
                       uint64_t bytes, unsigned alignment, AccessKind kind) {
  if (isPrivate(address))
    return;
  result.accesses.push_back(
      {static_cast<uint32_t>(bytes), alignment, kind, placeOf(access)});
  llvm::IRBuilder<> builder(&access);
  builder.CreateCall(
      helper("fp8_emulator_access", 2),
      {asWord(builder, address), literal(&result.accesses.back())});
}

/// Adds the checks of memcpy, memmove and memset.
void Retargeter::checkRange(llvm::MemIntrinsic &access) {
  auto add = [&](llvm::Value *address, unsigned alignment, AccessKind kind) {
    if (isPrivate(address))
      return;
    result.accesses.push_back({0, alignment, kind, placeOf(access)});
    llvm::IRBuilder<> builder(&access);
    builder.CreateCall(helper("fp8_emulator_range", 3),
                       {asWord(builder, address),
                        asWord(builder, access.getLength()),
                        literal(&result.accesses.back())});
  };
  if (auto *transfer = llvm::dyn_cast<llvm::MemTransferInst>(&access))
    add(transfer->getRawSource(),
        transfer->getSourceAlign().valueOrOne().value(), AccessKind::Read);
  add(access.getRawDest(), access.getDestAlign().valueOrOne().value(),
      AccessKind::Write);
}

static bool isWgmma(const llvm::Value *value) {
  const auto *call = llvm::dyn_cast<llvm::CallInst>(value);
  return call && call->isInlineAsm() &&
         llvm::cast<llvm::InlineAsm>(call->getCalledOperand())
             ->getAsmString()
             .contains("wgmma.mma_async");
}

/// Adds checks that the results of a wgmma are not used before a wait, which
/// SSA values do not show. Another wgmma may add to them.
void Retargeter::checkRegisters(llvm::CallInst &wgmma) {
  llvm::SetVector<llvm::Value *> made;
  llvm::SetVector<llvm::Instruction *> users;
  made.insert(&wgmma);
  for (size_t i = 0; i < made.size(); ++i)
    for (llvm::User *user : made[i]->users()) {
      if (llvm::isa<llvm::ExtractValueInst, llvm::InsertValueInst,
                    llvm::PHINode, llvm::SelectInst, llvm::FreezeInst>(user))
        made.insert(user);
      else if (!isWgmma(user))
        users.insert(llvm::cast<llvm::Instruction>(user));
    }
  for (llvm::Instruction *user : users) {
    result.registerUses.push_back({nullptr, placeOf(*user)});
    uses[&wgmma].push_back(&result.registerUses.back());
    llvm::IRBuilder<> builder(user);
    builder.CreateCall(helper("fp8_emulator_register", 1),
                       {literal(&result.registerUses.back())});
  }
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

llvm::Value *Retargeter::asWord(llvm::IRBuilder<> &builder,
                                llvm::Value *value) {
  llvm::Type *type = value->getType();
  if (type->isPointerTy())
    return builder.CreatePtrToInt(value, word);
  unsigned bits = type->getPrimitiveSizeInBits();
  if (bits == 0 || bits > 64)
    return nullptr;
  return builder.CreateZExt(
      builder.CreateBitCast(value, builder.getIntNTy(bits)), word);
}

llvm::Value *Retargeter::fromWord(llvm::IRBuilder<> &builder,
                                  llvm::Value *value, llvm::Type *type) {
  unsigned bits = type->getPrimitiveSizeInBits();
  if (bits == 0 || bits > 64)
    return nullptr;
  return builder.CreateBitCast(
      builder.CreateTrunc(value, builder.getIntNTy(bits)), type);
}

/// Replaces `call` by a call of the emulator's instruction `opcode`. Result i
/// of the call is result `resultOrder[i]` of the instruction.
llvm::Error Retargeter::emit(llvm::CallInst &call, const std::string &opcode,
                             llvm::ArrayRef<llvm::Value *> operands,
                             llvm::ArrayRef<unsigned> resultOrder) {
  Form form = findInstruction(opcode);
  if (operands.size() != form.operands || resultOrder.size() != form.results)
    return llvm::createStringError(
        "expected '" + opcode + "' to have " + llvm::Twine(form.operands) +
        " operands and " + llvm::Twine(form.results) + " results but got " +
        llvm::Twine(operands.size()) + " and " +
        llvm::Twine(resultOrder.size()) + ", in" + placeOf(call));
  Instruction instruction;
  instruction.handler = form.handler;
  instruction.opcode = opcode;
  instruction.place = placeOf(call);
  std::copy(std::begin(form.detail), std::end(form.detail),
            std::begin(instruction.detail));
  result.instructions.push_back(instruction);
  if (auto found = uses.find(&call); found != uses.end())
    for (RegisterUse *use : found->second)
      use->maker = &result.instructions.back();

  // Allocate in the entry block, so that loops do not grow the stack.
  llvm::IRBuilder<> entry(&*call.getFunction()->getEntryBlock().begin());
  auto array = [&](size_t size) {
    return entry.CreateAlloca(word, entry.getInt32(std::max<size_t>(size, 1)));
  };
  llvm::Value *operandArray = array(operands.size());
  llvm::Value *resultArray = array(form.results);
  llvm::IRBuilder<> builder(&call);
  for (auto [index, operand] : llvm::enumerate(operands)) {
    llvm::Value *value = asWord(builder, operand);
    if (!value)
      return llvm::createStringError("expected operands of at most 64 bits in" +
                                     placeOf(call));
    builder.CreateStore(value,
                        builder.CreateConstGEP1_32(word, operandArray, index));
  }
  auto function = module.getOrInsertFunction(
      "fp8_emulator_instruction",
      llvm::FunctionType::get(builder.getVoidTy(), {pointer, pointer, pointer},
                              /*isVarArg=*/false));
  llvm::CallInst *made =
      builder.CreateCall(function, {literal(&result.instructions.back()),
                                    operandArray, resultArray});
  made->setConvergent();
  if (form.results > 0) {
    auto load = [&](unsigned index, llvm::Type *type) {
      return fromWord(builder,
                      builder.CreateLoad(word, builder.CreateConstGEP1_32(
                                                   word, resultArray, index)),
                      type);
    };
    llvm::Value *value = nullptr;
    if (auto *type = llvm::dyn_cast<llvm::StructType>(call.getType())) {
      value = llvm::PoisonValue::get(type);
      for (auto [index, from] : llvm::enumerate(resultOrder))
        value = builder.CreateInsertValue(
            value, load(from, type->getElementType(index)), index);
    } else {
      value = load(resultOrder[0], call.getType());
    }
    call.replaceAllUsesWith(value);
  }
  call.eraseFromParent();
  return llvm::Error::success();
}

static unsigned countResults(llvm::Type *type) {
  if (type->isVoidTy())
    return 0;
  auto *fields = llvm::dyn_cast<llvm::StructType>(type);
  return fields ? fields->getNumElements() : 1;
}

/// Returns true for a TMA copy to several blocks of a cluster. Its last
/// arguments are whether it is one, whether it has a cache hint, and the group.
static bool hasMulticast(const llvm::CallInst &call) {
  return call.getCalledFunction()->getName().starts_with(
             "llvm.nvvm.cp.async.bulk.tensor.g2s.tile.") &&
         !llvm::cast<llvm::ConstantInt>(call.getArgOperand(call.arg_size() - 3))
              ->isZero();
}

llvm::Error Retargeter::rewriteIntrinsic(llvm::CallInst &call) {
  StringRef name = call.getCalledFunction()->getName();
  name.consume_front("llvm.nvvm.");
  Spelling spelling = spellIntrinsic(name);
  llvm::SmallVector<llvm::Value *> operands(call.args());
  if (!spelling.order.empty()) {
    operands.clear();
    for (unsigned index : spelling.order)
      if (index < call.arg_size())
        operands.push_back(call.getArgOperand(index));
  }
  llvm::SmallVector<unsigned> order;
  for (unsigned i = 0; i < countResults(call.getType()); ++i)
    order.push_back(i);
  if (spelling.opcode.empty() || !findInstruction(spelling.opcode).handler)
    return llvm::createStringError(
        "the emulator does not know the intrinsic '" +
        call.getCalledFunction()->getName() + "'");
  if (hasMulticast(call))
    return llvm::createStringError("the emulator has no multicast:" +
                                   placeOf(call));
  return emit(call, spelling.opcode, operands, order);
}

/// Returns true for assembly whose only output is tied to its only input.
static bool isIdentity(const llvm::CallInst &call,
                       const llvm::InlineAsm &assembly) {
  StringRef constraints = assembly.getConstraintString();
  return call.arg_size() == 1 && constraints.starts_with("=") &&
         constraints.ends_with(",0") &&
         call.getArgOperand(0)->getType() == call.getType();
}

llvm::Error Retargeter::rewriteAssembly(llvm::CallInst &call) {
  auto *text = llvm::cast<llvm::InlineAsm>(call.getCalledOperand());
  // Empty assembly only keeps the compiler from moving code, or a value.
  if (StringRef(text->getAsmString()).trim().empty() &&
      (call.getType()->isVoidTy() || isIdentity(call, *text))) {
    if (!call.getType()->isVoidTy())
      call.replaceAllUsesWith(call.getArgOperand(0));
    call.eraseFromParent();
    return llvm::Error::success();
  }
  auto assembly =
      parseAssembly(text->getAsmString(), text->getConstraintString());
  if (!assembly)
    return assembly.takeError();
  if (!findInstruction(assembly->opcode).handler)
    return llvm::createStringError("the emulator does not know '" +
                                   assembly->opcode + "', in" + placeOf(call));
  llvm::SmallVector<llvm::Value *> operands;
  for (const AssemblyOperand &operand : assembly->operands) {
    if (operand.kind == AssemblyOperand::Literal)
      operands.push_back(llvm::ConstantInt::get(word, operand.literal));
    else if (operand.number < call.arg_size())
      operands.push_back(call.getArgOperand(operand.number));
    else
      return llvm::createStringError("an operand is missing in" +
                                     placeOf(call));
  }
  std::vector<unsigned> order(assembly->results.size());
  if (order.size() != countResults(call.getType()))
    return llvm::createStringError(
        "expected all outputs to be results of the instruction in" +
        placeOf(call));
  for (auto [index, target] : llvm::enumerate(assembly->results)) {
    if (target.kind != AssemblyOperand::Output || target.number >= order.size())
      return llvm::createStringError("expected a result to be an output in" +
                                     placeOf(call));
    order[target.number] = index;
  }
  return emit(call, assembly->opcode, operands, order);
}

llvm::Error Retargeter::rewriteCall(llvm::CallInst &call) {
  if (call.isInlineAsm())
    return rewriteAssembly(call);
  if (auto *memory = llvm::dyn_cast<llvm::MemIntrinsic>(&call)) {
    checkRange(*memory);
    return llvm::Error::success();
  }
  llvm::Function *callee = call.getCalledFunction();
  if (!callee)
    return llvm::createStringError("the emulator knows no calls of pointers:" +
                                   placeOf(call));
  call.setCallingConv(llvm::CallingConv::C);
  if (callee->getName().starts_with("llvm.nvvm."))
    return rewriteIntrinsic(call);
  if (callee->isIntrinsic() || !callee->isDeclaration())
    return llvm::Error::success();
  if (callee->getName() == "cudaGraphSetConditional")
    return emit(call, callee->getName().str(),
                llvm::SmallVector<llvm::Value *>(call.args()), {});
  return llvm::createStringError("the emulator does not know the function '" +
                                 callee->getName() + "'");
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// Makes the NaNs that a conversion to bf16 reads canonical, as a GPU's are:
/// the host keeps their signs.
static void canonicalizeNaNs(llvm::FPTruncInst &conversion) {
  llvm::IRBuilder<> builder(&conversion);
  llvm::Value *value = conversion.getOperand(0);
  llvm::Value *nan = llvm::ConstantFP::get(
      value->getType(),
      llvm::APFloat(llvm::APFloat::IEEEsingle(), llvm::APInt(32, 0x7fffffff)));
  conversion.setOperand(
      0, builder.CreateSelect(builder.CreateFCmpUNO(value, value), nan, value));
}

llvm::Error Retargeter::rewrite(llvm::Function &function) {
  const llvm::DataLayout &layout = module.getDataLayout();
  llvm::SmallVector<llvm::Instruction *> work;
  llvm::ModuleSlotTracker slots(&module);
  slots.incorporateFunction(function);
  places.clear();
  for (llvm::BasicBlock &block : function)
    for (llvm::Instruction &instruction : block) {
      work.push_back(&instruction);
      places[&instruction] = describe(instruction, slots);
    }
  for (llvm::Instruction *instruction : work)
    if (isWgmma(instruction))
      checkRegisters(*llvm::cast<llvm::CallInst>(instruction));
  for (llvm::Instruction *instruction : work) {
    if (auto *load = llvm::dyn_cast<llvm::LoadInst>(instruction)) {
      check(*load, load->getPointerOperand(),
            layout.getTypeStoreSize(load->getType()), load->getAlign().value(),
            load->isAtomic() ? AccessKind::Atomic : AccessKind::Read);
    } else if (auto *store = llvm::dyn_cast<llvm::StoreInst>(instruction)) {
      check(*store, store->getPointerOperand(),
            layout.getTypeStoreSize(store->getValueOperand()->getType()),
            store->getAlign().value(),
            store->isAtomic() ? AccessKind::Atomic : AccessKind::Write);
    } else if (auto *update =
                   llvm::dyn_cast<llvm::AtomicRMWInst>(instruction)) {
      check(*update, update->getPointerOperand(),
            layout.getTypeStoreSize(update->getValOperand()->getType()),
            update->getAlign().value(), AccessKind::Atomic);
    } else if (auto *exchange =
                   llvm::dyn_cast<llvm::AtomicCmpXchgInst>(instruction)) {
      check(*exchange, exchange->getPointerOperand(),
            layout.getTypeStoreSize(exchange->getNewValOperand()->getType()),
            exchange->getAlign().value(), AccessKind::Atomic);
    } else if (auto *call = llvm::dyn_cast<llvm::CallInst>(instruction)) {
      if (llvm::Error error = rewriteCall(*call))
        return error;
    } else if (auto *conversion =
                   llvm::dyn_cast<llvm::FPTruncInst>(instruction)) {
      if (conversion->getSrcTy()->getScalarType()->isFloatTy() &&
          conversion->getDestTy()->getScalarType()->isBFloatTy())
        canonicalizeNaNs(*conversion);
    }
  }
  return llvm::Error::success();
}

/// Adds a function that takes the addresses of the arguments, as cuLaunchKernel
/// does.
void Retargeter::addEntry(llvm::Function &kernel) {
  const llvm::DataLayout &layout = module.getDataLayout();
  RetargetedKernel described;
  described.name = kernel.getName().str();
  described.entry = "emulator.entry." + described.name;
  auto *entry = llvm::Function::Create(
      llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer},
                              /*isVarArg=*/false),
      llvm::GlobalValue::ExternalLinkage, described.entry, module);
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(context, "", entry));
  llvm::SmallVector<llvm::Value *> arguments;
  for (llvm::Argument &argument : kernel.args()) {
    llvm::Value *address = builder.CreateLoad(
        pointer, builder.CreateConstGEP1_32(pointer, entry->getArg(0),
                                            argument.getArgNo()));
    int64_t reach = -1;
    llvm::Type *type = argument.getType();
    if (argument.hasByValAttr()) {
      type = argument.getParamByValType();
      arguments.push_back(address);
    } else {
      if (type->isPointerTy() && argument.getDereferenceableBytes() > 0)
        reach = static_cast<int64_t>(argument.getDereferenceableBytes());
      arguments.push_back(builder.CreateLoad(type, address));
    }
    described.parameters.push_back(layout.getTypeAllocSize(type));
    described.reach.push_back(type->isPointerTy() ? reach : -2);
  }
  builder.CreateCall(&kernel, arguments);
  builder.CreateRetVoid();
  result.kernels.push_back(std::move(described));
}

/// Removes what only has a meaning for a GPU from a function. Fails if it
/// flushes subnormals.
static llvm::Error clearAttributes(llvm::Function &function) {
  llvm::DenormalMode mode = function.getDenormalModeF32Raw();
  if (mode.isValid() && mode != llvm::DenormalMode::getIEEE())
    return llvm::createStringError("function '" + function.getName() +
                                   "' flushes subnormals, which the emulator "
                                   "does not");
  for (StringRef name : {"target-cpu", "target-features", "tune-cpu"})
    function.removeFnAttr(name);
  function.setCallingConv(llvm::CallingConv::C);
  for (llvm::Argument &argument : function.args())
    if (argument.hasByValAttr())
      argument.removeAttr(llvm::Attribute::ByVal);
  return llvm::Error::success();
}

llvm::Error Retargeter::run(const llvm::DataLayout &layout,
                            const llvm::Triple &triple) {
  if (module.getTargetTriple().getArch() != llvm::Triple::nvptx64)
    return llvm::createStringError("expected a module for nvptx64 but got '" +
                                   module.getTargetTriple().str() + "'");
  if (llvm::Error error = placeSharedMemory())
    return error;
  llvm::SmallVector<llvm::Function *> functions, kernels;
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    functions.push_back(&function);
    if (function.getCallingConv() == llvm::CallingConv::PTX_Kernel)
      kernels.push_back(&function);
  }
  for (llvm::Function *function : functions)
    if (llvm::Error error = rewrite(*function))
      return error;
  for (llvm::Function *kernel : kernels)
    addEntry(*kernel);
  for (llvm::Function *function : functions)
    if (llvm::Error error = clearAttributes(*function))
      return error;
  for (llvm::GlobalVariable &global : module.globals()) {
    if (global.isDeclaration() || global.getName().starts_with("llvm."))
      continue;
    global.setLinkage(llvm::GlobalValue::ExternalLinkage);
    if (!global.hasName())
      global.setName("emulator.global");
    result.globals.push_back(global.getName().str());
  }
  module.setDataLayout(layout);
  module.setTargetTriple(triple);
  module.setModuleInlineAsm("");
  std::string message;
  llvm::raw_string_ostream os(message);
  if (llvm::verifyModule(module, &os))
    return llvm::createStringError("the emulator made a module that is not "
                                   "valid: " +
                                   message);
  return llvm::Error::success();
}

llvm::Error retarget(llvm::Module &module, const llvm::DataLayout &layout,
                     const llvm::Triple &triple, uint64_t sharedBase,
                     Retargeted &result) {
  return Retargeter(module, sharedBase, result).run(layout, triple);
}

} // namespace fp8::emulator
