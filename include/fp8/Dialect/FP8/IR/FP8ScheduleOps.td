//===- FP8ScheduleOps.td - Kernels, launches, schedules ----*- tablegen -*-===//
//
// The ops that a step consists of from stage 4 (kernels) on.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_DIALECT_FP8_IR_FP8SCHEDULEOPS_TD
#define FP8_DIALECT_FP8_IR_FP8SCHEDULEOPS_TD

include "fp8/Dialect/FP8/IR/FP8Attrs.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ViewLikeInterface.td"

def FP8_Access : I32EnumAttr<"Access", "What a kernel does with an argument", [
    I32EnumAttrCase<"Read", 0, "read">,
    I32EnumAttrCase<"Write", 1, "write">,
    I32EnumAttrCase<"Update", 2, "update">
  ]> {
  let cppNamespace = "::mlir::fp8";
  let genSpecializedAttr = 0;
}

def FP8_AccessAttr : EnumAttr<FP8_Dialect, FP8_Access, "access"> {
  let summary = "What a kernel does with an argument";
  let description = [{
    `read`: the kernel reads the argument and writes none of it. `write`: the
    kernel writes all or part of the argument, and reads only what it wrote
    itself. `update`: the kernel reads the old contents of the argument and
    writes it.

    Example:

    ```mlir
    fp8.kernel @scale(read %x: memref<8xf32>, write %y: memref<8xf32>) domain = []
    func.func @launch(%x: memref<8xf32>, %y: memref<8xf32>) {
      fp8.launch @scale(read %x, write %y) : (memref<8xf32>, memref<8xf32>) -> ()
      return
    }
    ```
  }];
  let assemblyFormat = "`<` $value `>`";
}

def FP8_AccessArrayAttr
    : TypedArrayAttrBase<FP8_AccessAttr, "an access for each argument">;

class FP8_OpOfSchedule<string mnemonic, list<Trait> traits = []>
    : Op<FP8_Dialect, mnemonic, traits>;

def FP8_KernelOp : FP8_OpOfSchedule<"kernel",
    [IsolatedFromAbove, FunctionOpInterface]> {
  let summary = "A computation that runs as a grid of independent tasks";
  let description = [{
    A function of its arguments alone, which a schedule launches. Each argument
    is read, written or updated (`#fp8.access`). The `domain` holds the extents
    of the loops that all ops of the body share. On each op, the attribute
    `fp8.task_dims` gives the op's loop for each loop of the domain, which has
    the same number of iterations, or -1 if it has none; the loops of a nest of
    `scf.for` count in the order of the text. What writes an argument
    has a parallel loop for each. Tasks divide the domain among them so that each
    reads only what it wrote itself. An empty domain is one task. The target's codegen decides how
    to divide the domain and records it as `plan` (see `#fp8.cpu_plan`,
    `#fp8.gpu_plan`, `#fp8.cublaslt_plan`).

    With a `block`, the last loop of the domain is not divided among tasks: each
    task runs all of it in order, in blocks of `block` iterations. Ops may sum
    over this loop, each block adding to the sums of the blocks before it, if
    nothing in the kernel reads the sum.

    On tensors a kernel returns one result for each argument that it writes or
    updates, in order: these arguments are destinations. On buffers it returns
    nothing. A `copy` has two arguments and copies the first to the second. A
    kernel without a body is defined elsewhere.

    Example:

    ```mlir
    fp8.kernel @negate(read %x: memref<8x16xf32>, write %y: memref<8x16xf32>) domain = [8] {
      linalg.generic {
          indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
          iterator_types = ["parallel", "parallel"]}
          ins(%x : memref<8x16xf32>) outs(%y : memref<8x16xf32>)
          attrs = {fp8.task_dims = array<i64: 0>} {
      ^bb0(%a: f32, %o: f32):
        %n = arith.negf %a : f32
        linalg.yield %n : f32
      }
      fp8.return
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       TypeAttrOf<FunctionType>:$function_type,
                       FP8_AccessArrayAttr:$accesses,
                       DenseI64ArrayAttr:$domain,
                       OptionalAttr<I64Attr>:$block,
                       OptionalAttr<AnyAttrOf<[FP8_CPUPlanAttr, FP8_GPUPlanAttr, FP8_CublasLtPlanAttr]>>:$plan,
                       UnitAttr:$copy,
                       OptionalAttr<StrAttr>:$sym_visibility,
                       OptionalAttr<DictArrayAttr>:$arg_attrs,
                       OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region AnyRegion:$body);
  let builders = [
    OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::FunctionType":$type,
                   "::llvm::ArrayRef<::mlir::fp8::Access>":$accesses,
                   "::llvm::ArrayRef<int64_t>":$domain)>
  ];
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() {
      return getFunctionType().getInputs();
    }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() {
      return getFunctionType().getResults();
    }
    ::mlir::Region *getCallableRegion() {
      return isExternal() ? nullptr : &getBody();
    }
    ::mlir::fp8::Access getAccess(unsigned argument) {
      return ::llvm::cast<::mlir::fp8::AccessAttr>(getAccesses()[argument]).getValue();
    }
    void setAccess(unsigned argument, ::mlir::fp8::Access access);
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def FP8_ReturnOp : FP8_OpOfSchedule<"return",
    [Pure, ReturnLike, Terminator, ParentOneOf<["KernelOp", "ScheduleOp"]>]> {
  let summary = "End of a kernel or a schedule";
  let description = [{
    Ends the body of a kernel or of a schedule. A kernel on tensors returns the
    new values of its destinations.

    Example:

    ```mlir
    fp8.kernel @same(update %x: tensor<8xf32>) -> tensor<8xf32> domain = [] {
      fp8.return %x : tensor<8xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$operands);
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::ValueRange()); }]>];
  let assemblyFormat = "attr-dict ($operands^ `:` type($operands))?";
}

def FP8_LaunchOp : FP8_OpOfSchedule<"launch", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Run a kernel";
  let description = [{
    Runs all tasks of a kernel on buffers, or computes the new values of its
    destinations from tensors. The accesses are the kernel's; on buffers they
    are the op's memory effects. The `label` says what the launch does and for
    which part of the step: it names the launch in profiles and errors. The
    `number` identifies the launch in its schedule; the last pass of stage 4
    assigns it.

    A launch on buffers may have several sets of operands: it runs the kernel
    once for each, in any order, so no set may write what another one accesses.
    The types are those of one set.

    Example:

    ```mlir
    fp8.kernel @sum(read %x: memref<8xf32>, update %y: memref<f32>) domain = []
    fp8.schedule @step(%x: memref<8xf32>, %y: memref<f32>, %z: memref<f32>) {
      fp8.launch @sum(read %x, update %y) label = "sum" number = 0 : (memref<8xf32>, memref<f32>) -> ()
      fp8.launch @sum(read %x, update %y)(read %x, update %z) number = 1 : (memref<8xf32>, memref<f32>) -> ()
      fp8.return
    }
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel,
                       Variadic<AnyType>:$operands,
                       FP8_AccessArrayAttr:$accesses,
                       OptionalAttr<StrAttr>:$label,
                       OptionalAttr<I64Attr>:$number);
  let results = (outs Variadic<AnyTensor>:$outputs);
  let assemblyFormat = [{
    $kernel `` custom<AccessedOperands>($operands, $accesses) (`label` `=` $label^)?
    (`number` `=` $number^)? attr-dict `:`
    custom<TypesOfSet>(type($operands), type($outputs), ref($operands), ref($accesses))
  }];
  let builders = [
    // Launches `kernel`, with its result types, on one or more sets of operands.
    OpBuilder<(ins "::mlir::fp8::KernelOp":$kernel, "::mlir::ValueRange":$operands,
                   CArg<"::mlir::StringAttr", "{}">:$label)>
  ];
  let extraClassDeclaration = [{
    /// Returns the argument of the kernel that an operand becomes.
    unsigned getArgument(unsigned operand) { return operand % getAccesses().size(); }
    ::mlir::fp8::Access getAccess(unsigned operand) {
      return ::llvm::cast<::mlir::fp8::AccessAttr>(getAccesses()[getArgument(operand)]).getValue();
    }
    unsigned getNumSets() {
      return getAccesses().empty() ? 1 : getNumOperands() / getAccesses().size();
    }
    ::mlir::OperandRange getSet(unsigned set) {
      return getOperands().slice(set * getAccesses().size(), getAccesses().size());
    }
    /// Returns the first operand of the set that an operand belongs to.
    unsigned getFirstOfSet(unsigned operand) { return operand - getArgument(operand); }
    /// Returns the operands that the kernel writes or updates. On tensors there
    /// is one for each result.
    ::llvm::SmallVector<::mlir::OpOperand *> getDestinations();

  private:
    ::llvm::LogicalResult verifySets();

  public:
  }];
  let hasVerifier = 1;
}

def FP8_ScheduleOp : FP8_OpOfSchedule<"schedule",
    [IsolatedFromAbove, FunctionOpInterface]> {
  let summary = "A step as a tree of launches";
  let description = [{
    The entry of a compiled function: launches of kernels, control flow around
    them, and the scalars that control flow reads. Its arguments are the
    function's arguments and results as buffers. They keep the attributes of the
    import stage (`fp8.path`, ...); `fp8.output` marks a result that replaces no
    argument. Once memory is planned, the first argument is the arena, and
    `arena_bytes` is its size.

    Example:

    ```mlir
    fp8.kernel @k(read %x: memref<8xf32>, write %y: memref<8xf32>) domain = []
    fp8.schedule @step(%arena: memref<64xi8>, %x: memref<8xf32> {fp8.path = "x"}) arena_bytes = 64 {
      %c0 = arith.constant 0 : index
      %t = memref.view %arena[%c0][] : memref<64xi8> to memref<8xf32>
      fp8.launch @k(read %x, write %t) : (memref<8xf32>, memref<8xf32>) -> ()
      fp8.launch @k(read %t, write %x) : (memref<8xf32>, memref<8xf32>) -> ()
      fp8.return
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       TypeAttrOf<FunctionType>:$function_type,
                       OptionalAttr<I64Attr>:$arena_bytes,
                       OptionalAttr<StrAttr>:$sym_visibility,
                       OptionalAttr<DictArrayAttr>:$arg_attrs,
                       OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region AnyRegion:$body);
  let builders = [
    OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::FunctionType":$type)>
  ];
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() {
      return getFunctionType().getInputs();
    }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() {
      return getFunctionType().getResults();
    }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    /// The buffer that holds all intermediate values; null before memory is
    /// planned.
    ::mlir::Value getArena();
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def FP8_SubbufferOp : FP8_OpOfSchedule<"subbuffer",
    [Pure, DeclareOpInterfaceMethods<ViewLikeOpInterface>]> {
  let summary = "A contiguous part of a buffer at a run-time offset";
  let description = [{
    Returns the dense buffer that begins `offset` elements into the source.
    Through it a schedule reads one layer of stacked weights, or writes one
    layer's activations into their stack, without a copy. (A `memref.subview`
    would have another layout, and with it another kernel.) The part must lie
    inside the source; the pass that creates the op has to prove this.

    Example:

    ```mlir
    func.func @layer(%stack: memref<4x64x32xf32>, %offset: index) -> memref<64x32xf32> {
      %0 = fp8.subbuffer %stack[%offset] : memref<4x64x32xf32> to memref<64x32xf32>
      return %0 : memref<64x32xf32>
    }
    ```
  }];
  let arguments = (ins AnyStaticShapeMemRef:$source, Index:$offset);
  let results = (outs AnyStaticShapeMemRef:$result);
  let assemblyFormat = [{
    $source `[` $offset `]` attr-dict `:` type($source) `to` type($result)
  }];
  let hasVerifier = 1;
}

#endif // FP8_DIALECT_FP8_IR_FP8SCHEDULEOPS_TD
