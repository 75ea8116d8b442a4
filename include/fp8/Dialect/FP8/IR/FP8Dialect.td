//===- FP8Dialect.td - The fp8 dialect ---------------------*- tablegen -*-===//

#ifndef FP8_DIALECT_FP8_IR_FP8DIALECT_TD
#define FP8_DIALECT_FP8_IR_FP8DIALECT_TD

include "mlir/IR/DialectBase.td"

def FP8_Dialect : Dialect {
  let name = "fp8";
  let cppNamespace = "::mlir::fp8";
  let summary = "Scaled 8-bit floating-point tensors and ops on them";
  let description = [{
    A tensor in FP8 is two tensors: a **payload** of 8-bit codes and a
    **scale**, the multiplier that dequantizes, so that
    `real ≈ payload × scale`. The type `!fp8.scaled` holds both, and says in
    which **tiles** of the payload one scale is shared. The ops measure a
    tensor (`fp8.amax`), choose its scale (`fp8.compute_scale`), round
    (`fp8.quantize`), compute (`fp8.dot_general`) and go back
    (`fp8.dequantize`); `fp8.pack` and `fp8.unpack` change between the type and
    the pair of tensors it stands for.

    Example: a matrix product in FP8 with one current scale per tensor.

    ```mlir
    func.func @linear(%x: tensor<1024x256xf32>, %w: tensor<256x512xf32>)
        -> tensor<1024x512xf32> {
      %ax = fp8.amax %x : tensor<1024x256xf32> -> tensor<f32>
      %sx, %qx = fp8.compute_scale %ax {rule = #fp8.scale_rule<exact>, format = f8E4M3FN} : tensor<f32> -> tensor<f32>
      %x8 = fp8.quantize %x, %sx, %qx rounding = nearest_even, overflow = saturate
          : tensor<1024x256xf32> -> !fp8.scaled<1024x256xf8E4M3FN, tile = [*, *], scale = f32>
      %aw = fp8.amax %w : tensor<256x512xf32> -> tensor<f32>
      %sw, %qw = fp8.compute_scale %aw {rule = #fp8.scale_rule<exact>, format = f8E4M3FN} : tensor<f32> -> tensor<f32>
      %w8 = fp8.quantize %w, %sw, %qw rounding = nearest_even, overflow = saturate
          : tensor<256x512xf32> -> !fp8.scaled<256x512xf8E4M3FN, tile = [*, *], scale = f32>
      %y = fp8.dot_general %x8, %w8, contracting_dims = [1] x [0] {accumulator = f32}
          : (!fp8.scaled<1024x256xf8E4M3FN, tile = [*, *], scale = f32>,
             !fp8.scaled<256x512xf8E4M3FN, tile = [*, *], scale = f32>) -> tensor<1024x512xf32>
      return %y : tensor<1024x512xf32>
    }
    ```

    Subnormals are IEEE's everywhere. An attribute says whether finite values
    saturate or overflow. NaN becomes the format's canonical NaN. An infinite
    input never silently becomes the largest finite value: the payload gets a
    NaN, or with `overflow = nan` the result of a plain cast.
  }];

  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;

  let extraClassDeclaration = [{
    /// Registers the types and attributes; called by initialize().
    void registerTypes();
    void registerAttributes();

    /// Names of the discardable attributes on arguments and results of a step
    /// (see docs/Architecture.md): what a value is and which state it replaces.
    static constexpr ::llvm::StringLiteral kPathAttrName = "fp8.path";
    static constexpr ::llvm::StringLiteral kRoleAttrName = "fp8.role";
    static constexpr ::llvm::StringLiteral kKindAttrName = "fp8.kind";
    static constexpr ::llvm::StringLiteral kStateAttrName = "fp8.state";
    static constexpr ::llvm::StringLiteral kVocabularyAttrName = "fp8.vocabulary";
    /// On a batch of integers that only choose among what is computed from data,
    /// as labels do in a loss.
    static constexpr ::llvm::StringLiteral kLabelsAttrName = "fp8.labels";
    /// On a moment, a gradient or a master copy: the path of the parameter that
    /// it belongs to.
    static constexpr ::llvm::StringLiteral kParameterAttrName = "fp8.parameter";
    /// On a metric that gradients could flow from.
    static constexpr ::llvm::StringLiteral kTrainsAttrName = "fp8.trains";
    /// On a state argument that begins as zeros unless a file has a value for it.
    static constexpr ::llvm::StringLiteral kZeroInitAttrName = "fp8.zero_init";
    /// On an argument of a schedule that is a result and replaces no argument.
    static constexpr ::llvm::StringLiteral kOutputAttrName = "fp8.output";

    /// The suffix that a scaled tensor's path gets to name its scale.
    static constexpr ::llvm::StringLiteral kScaleSuffix = ".scale";

    /// On a function beside the step: "store" converts the state to the form in
    /// which the step stores it, "load" converts it back.
    static constexpr ::llvm::StringLiteral kEntryAttrName = "fp8.entry";

    /// On a quantization that is made where it is read, not in the forward
    /// pass.
    static constexpr ::llvm::StringLiteral kRecomputedAttrName = "fp8.recomputed";

    /// On a dot whose operands are to be traced: what they are, and their names.
    static constexpr ::llvm::StringLiteral kTensorsAttrName = "fp8.tensors";
    /// On a quantization that is to be traced and that no dot reads: the name of
    /// its tensor.
    static constexpr ::llvm::StringLiteral kTensorAttrName = "fp8.tensor";

    /// On the module, while the fp8 stage runs: the effective recipe.
    static constexpr ::llvm::StringLiteral kRecipeAttrName = "fp8.recipe";

    /// On the module: the step runs on several ranks, each with its own rows.
    static constexpr ::llvm::StringLiteral kDataParallelAttrName = "fp8.data_parallel";

    /// On the module: which state is divided among the ranks (1: all but the
    /// parameters that others read whole).
    static constexpr ::llvm::StringLiteral kZeroAttrName = "fp8.zero";

    /// On a dot, if amaxes are to be those of all ranks: how it uses the rows of
    /// the batch in each operand ("none", "free", "contracted").
    static constexpr ::llvm::StringLiteral kRowsAttrName = "fp8.rows";

    /// On a collective, until the report is written: why it has its wire
    /// format.
    static constexpr ::llvm::StringLiteral kWireReasonAttrName = "fp8.wire_reason";

    /// On state, and on ops that compute it: the number of its shard, counted
    /// from 1. One rank owns the shard.
    static constexpr ::llvm::StringLiteral kShardAttrName = "fp8.shard";

    /// On a dot, until the report is written: its verdict, with the reason.
    static constexpr ::llvm::StringLiteral kVerdictAttrName = "fp8.verdict";

    /// On an array of the state, until the report is written: how it is stored,
    /// and why.
    static constexpr ::llvm::StringLiteral kStateVerdictAttrName = "fp8.state_verdict";

    /// On an op of attention, or on the dot that makes scores that are stored,
    /// until the report is written.
    static constexpr ::llvm::StringLiteral kSoftmaxVerdictAttrName = "fp8.softmax_verdict";

    /// On a function: what became of its gated units, for the verdict report.
    static constexpr ::llvm::StringLiteral kGatedUnitsAttrName = "fp8.gated_units";

    /// On a module: the target, a #fp8.cpu_target or #fp8.gpu_target.
    static constexpr ::llvm::StringLiteral kTargetAttrName = "fp8.target";

    /// On the loops of a nest that is the code of one task (a scatter, a sort,
    /// ...), at least on the outermost one that has several iterations. A loop
    /// without it is control flow between kernels.
    static constexpr ::llvm::StringLiteral kIrregularAttrName = "fp8.irregular";
    /// On an op that reads values behind an optimization barrier: it recomputes
    /// a value and must not be merged with the op that computed it first.
    static constexpr ::llvm::StringLiteral kRecomputeAttrName = "fp8.recompute";
    /// On an op whose result must be stored, not recomputed where it is read.
    static constexpr ::llvm::StringLiteral kKeptAttrName = "fp8.kept";
    /// On an op that is recomputed for the sweep with this number: it must not
    /// be in the same kernel as the op that computed it first.
    static constexpr ::llvm::StringLiteral kSweepAttrName = "fp8.sweep";

    /// On an op of a kernel: its loop for each loop of the kernel's domain.
    static constexpr ::llvm::StringLiteral kTaskDimsAttrName = "fp8.task_dims";

    /// On the function of one task that codegen makes of a kernel: the number
    /// of tasks, and the bytes of scratch that each needs.
    static constexpr ::llvm::StringLiteral kTasksAttrName = "fp8.tasks";
    static constexpr ::llvm::StringLiteral kScratchBytesAttrName = "fp8.scratch_bytes";

    /// On the function that codegen for GPUs makes of a kernel: a
    /// #fp8.gpu_launch.
    static constexpr ::llvm::StringLiteral kGPULaunchAttrName = "fp8.gpu_launch";
    /// On a module for a GPU with cuBLASLt: what computes each dot, and why (an
    /// array of dictionaries; see fp8-use-cublaslt).
    static constexpr ::llvm::StringLiteral kDotChoicesAttrName = "fp8.dot_choices";

    /// On a constant: its index among the constants of a schedule.
    static constexpr ::llvm::StringLiteral kNumberAttrName = "fp8.number";

    /// On an LLVM function that runs one task of a kernel, with the signature
    /// that the runtime calls.
    static constexpr ::llvm::StringLiteral kTaskAttrName = "fp8.task";

    /// On a contraction in linalg: the largest number of products in a partial
    /// sum.
    static constexpr ::llvm::StringLiteral kPromoteEveryAttrName = "fp8.promote_every";

    /// On state in a shard (fp8.shard): the number of slices along its leading
    /// dimension, each with an owner; 1 if the attribute is missing. On a kernel:
    /// the number of parts along the leading dimension of its domain into which
    /// its tasks divide.
    static constexpr ::llvm::StringLiteral kSlicesAttrName = "fp8.slices";

    /// On a stack of layers whose shard has one owner: the reason.
    static constexpr ::llvm::StringLiteral kWholeReasonAttrName = "fp8.whole_reason";

    /// On a schedule: the GPU evaluates its loops and branches (fp8-plan-graph).
    static constexpr ::llvm::StringLiteral kDeviceControlAttrName = "fp8.device_control";

    /// On an scf.for of such a schedule: the GPU counts its iterations.
    static constexpr ::llvm::StringLiteral kDeviceLoopAttrName = "fp8.device_loop";

    /// On a kernel's module: the number of loops counted by the GPU in which the
    /// addresses of its operands change (fp8_gpu_kernel).
    static constexpr ::llvm::StringLiteral kLoopsAttrName = "fp8.loops";

    /// On a kernel's module: the kernel takes several sets of operands (see
    /// fp8_gpu_kernel); the value is the number of operands of a set.
    static constexpr ::llvm::StringLiteral kSetsAttrName = "fp8.sets";

    /// On a schedule: the nodes of its graph have an order (fp8-order-graph). The
    /// numbers of nodes and edges, and of nodes on the longest path.
    static constexpr ::llvm::StringLiteral kGraphAttrName = "fp8.graph";

    /// On an op of such a schedule that becomes a node: its number, and those of
    /// the nodes that it follows, which are in the same block. On an argument that
    /// is a result: the same for its copy to the host.
    static constexpr ::llvm::StringLiteral kNodeAttrName = "fp8.node";
    static constexpr ::llvm::StringLiteral kAfterAttrName = "fp8.after";
  }];
}

#endif // FP8_DIALECT_FP8_IR_FP8DIALECT_TD
