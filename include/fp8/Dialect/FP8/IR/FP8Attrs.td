//===- FP8Attrs.td - Attributes of the fp8 dialect ---------*- tablegen -*-===//

#ifndef FP8_DIALECT_FP8_IR_FP8ATTRS_TD
#define FP8_DIALECT_FP8_IR_FP8ATTRS_TD

include "fp8/Dialect/FP8/IR/FP8Dialect.td"
include "fp8/Dialect/FP8/IR/FP8Enums.td"
include "mlir/IR/AttrTypeBase.td"

def FP8_ScaleRuleAttr : EnumAttr<FP8_Dialect, FP8_ScaleRule, "scale_rule"> {
  let summary = "How a scale follows from an amax";
  let description = [{
    With `max` the largest finite value of the format and `emax` its exponent:

    - `exact`: the quantizer is `max / amax` in f32, the scale its reciprocal
      (Transformer Engine's arithmetic, bit for bit);
    - `pow2`: the scale is `2^ceil(log2(amax / max))`, the smallest power of two
      with which nothing saturates (MXFP8's round-up);
    - `ocp_floor`: the scale is `2^(floor(log2(amax)) - emax)`, as OCP MX
      defines it; the largest elements of a tile may saturate.

    Example:

    ```mlir
    func.func @scale(%amax: tensor<f32>) -> tensor<f32> {
      %scale, %q = fp8.compute_scale %amax {rule = #fp8.scale_rule<pow2>, format = f8E4M3FN} : tensor<f32> -> tensor<f32>
      return %scale : tensor<f32>
    }
    ```
  }];
  let assemblyFormat = "`<` $value `>`";
}

def FP8_RoundingAttr : EnumAttr<FP8_Dialect, FP8_Rounding, "rounding"> {
  let summary = "How a value is rounded to a code";
  let description = [{
    `nearest_even` takes the nearest code, or the even one of two equally near
    codes. `stochastic` takes one of the two neighbours, the nearer one with the
    higher probability, so that the expected value is exact.

    Example:

    ```mlir
    module attributes {example.rounding = #fp8<rounding nearest_even>} {}
    ```
  }];
}

def FP8_OverflowAttr : EnumAttr<FP8_Dialect, FP8_Overflow, "overflow"> {
  let summary = "What becomes of a finite value out of range";
  let description = [{
    `saturate` clamps finite values to the largest finite code. With `nan`, a
    value that rounds beyond it becomes NaN (infinity in formats that have one).
    Non-finite inputs stay non-finite either way.

    Example:

    ```mlir
    module attributes {example.overflow = #fp8<overflow saturate>} {}
    ```
  }];
}

//===----------------------------------------------------------------------===//
// Decisions of the fp8 stage
//===----------------------------------------------------------------------===//

def FP8_RecipeAttr : AttrDef<FP8_Dialect, "Recipe"> {
  let mnemonic = "recipe";
  let summary = "The effective recipe of a step";
  let description = [{
    The effective recipe of a step is the attribute `fp8.recipe` of its module.
    `fp8-resolve-recipe` makes it from a name or a file and from the settings on
    the command line; every other pass of the fp8 stage reads it.

    The settings are those of recipe files (docs/Recipes.md), with every default
    filled in, as `--print-recipe` prints them: mappings are dictionaries, lists
    are arrays, and a value that is neither a word nor a number has quotes. They
    are checked as strictly as a file: an unknown key or value is an error. A
    missing key has its default.

    `rules at` lists the locations of the rules in the recipe's file, for
    messages.

    Example:

    ```mlir
    module attributes {fp8.recipe = #fp8.recipe<{
        name = mine,
        forward = {activation = {format = f8E4M3FN, tile = row},
                   weight = {format = f8E4M3FN, tile = "128x128", scale = pow2}},
        rules = [{keep = {part = head}}, {keep = {path = "*['wq']"}}],
        compute = {unquantized_dots = bf16}
      }, rules at ["mine.yaml":9:5, "mine.yaml":10:5]>} {}
    ```
  }];
  let parameters = (ins "::mlir::DictionaryAttr":$settings,
                        ArrayRefParameter<"::mlir::FileLineColLoc">:$ruleLocations);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static RecipeAttr get(::mlir::MLIRContext *context, const ::mlir::fp8::Recipe &recipe);

    /// Returns the recipe that these settings describe.
    ::llvm::FailureOr<::mlir::fp8::Recipe> getRecipe() const;
  }];
}

def FP8_VerdictAttr : AttrDef<FP8_Dialect, "Verdict"> {
  let mnemonic = "verdict";
  let summary = "What becomes of a dot, and why";
  let description = [{
    `fp8-decide` puts one on every dot, as `fp8.verdict`. The passes that follow
    do what it says, and the report prints it.

    | | |
    |---|---|
    | first | `fp8`, `high_precision` (as the recipe says), or `fallback`: the recipe quantizes it, but it cannot be converted |
    | `role` | what the dot is to its layer: `forward`, `dgrad`, `wgrad`; else `embedding`, `attention` or `other` |
    | `category` | what the summary counts it as: `linear`, `head`, `attention`, `embedding`, `other` |
    | `layer` | the tree path of the layer's parameter |
    | `lhs`, `rhs` | what the operands are: `activation`, `weight`, `gradient` or `other` |
    | `batch`, `m`, `n`, `k` | the dot's sizes |
    | `lhs_format`, `rhs_format` | the element types of the operands as they are multiplied |
    | `lhs_tile`, `rhs_tile` | which elements of an FP8 dot's operands share a scale, in the recipe's spelling |
    | `current_scale` | the weight has a current scale although the recipe says delayed, because it is smoothed |
    | `loops` | trip counts of the loops around the dot, from the inside out; 0 where unknown |
    | `in_branch`, `recomputed` | the dot is in a branch; it repeats a forward dot for the backward pass |
    | `rule` | the number of the recipe's rule that decided |
    | `number` | the index of the dot in its function, and of its row in the report |
    | `reason`, `notes` | texts for the report |

    Example:

    ```mlir
    func.func @main(%x: tensor<4x32xf32>, %w: tensor<32x16xf32>) -> tensor<4x16xf32> {
      %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
          {fp8.verdict = #fp8.verdict<fp8, role = forward, category = linear, layer = "p['w']",
                                      lhs = activation, rhs = weight, batch = 1, m = 4, n = 16, k = 32,
                                      lhs_format = f8E4M3FN, rhs_format = f8E4M3FN,
                                      lhs_tile = row, rhs_tile = "128x128", reason = "linear layer">}
          : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
      return %0 : tensor<4x16xf32>
    }
    ```
  }];
  let parameters = (ins
    "::mlir::fp8::Verdict":$kind,
    "::mlir::fp8::DotRole":$role,
    "::mlir::fp8::DotCategory":$category,
    OptionalParameter<"::mlir::StringAttr">:$layer,
    DefaultValuedParameter<"::mlir::fp8::OperandKind", "::mlir::fp8::OperandKind::Other">:$lhs,
    DefaultValuedParameter<"::mlir::fp8::OperandKind", "::mlir::fp8::OperandKind::Other">:$rhs,
    "int64_t":$batch, "int64_t":$m, "int64_t":$n, "int64_t":$k,
    "::mlir::Type":$lhs_format, "::mlir::Type":$rhs_format,
    OptionalParameter<"::std::optional<::mlir::fp8::Tiling>">:$lhs_tile,
    OptionalParameter<"::std::optional<::mlir::fp8::Tiling>">:$rhs_tile,
    DefaultValuedParameter<"bool", "false">:$current_scale,
    OptionalParameter<"::mlir::DenseI64ArrayAttr">:$loops,
    DefaultValuedParameter<"bool", "false">:$in_branch,
    DefaultValuedParameter<"bool", "false">:$recomputed,
    DefaultValuedParameter<"int64_t", "0">:$rule,
    DefaultValuedParameter<"int64_t", "0">:$number,
    "::mlir::StringAttr":$reason,
    OptionalParameter<"::mlir::ArrayAttr">:$notes);
  let assemblyFormat = [{
    `<` $kind `,` struct($role, $category, $layer, $lhs, $rhs, $batch, $m, $n, $k,
        $lhs_format, $rhs_format, $lhs_tile, $rhs_tile, $current_scale, $loops,
        $in_branch, $recomputed, $rule, $number, $reason, $notes) `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool isFP8() const { return getKind() == Verdict::FP8; }

    /// Whether a rule of the recipe keeps the dot in high precision.
    bool isKeptByRule() const { return !isFP8() && getRule() != 0; }
  }];
}

def FP8_DotTensorsAttr : AttrDef<FP8_Dialect, "DotTensors"> {
  let mnemonic = "dot_tensors";
  let summary = "What a dot reads, for traces";
  let description = [{
    `fp8-quantize-dots=name-tensors` puts one on every FP8 dot, as `fp8.tensors`:
    the role of the dot, what its operands are (as in its verdict, which is gone
    when `fp8-trace` runs), and how the trace calls them.

    Example:

    ```mlir
    func.func @main(%x: !fp8.scaled<4x32xf8E4M3FN, tile = [*, *], scale = f32>,
                    %w: !fp8.scaled<32x16xf8E4M3FN, tile = [*, *], scale = f32>) -> tensor<4x16xf32> {
      %0 = fp8.dot_general %x, %w, contracting_dims = [1] x [0]
          {accumulator = f32, fp8.tensors = #fp8.dot_tensors<role = forward, lhs = activation, rhs = weight,
                                                             lhs_name = "p['w'].activation", rhs_name = "p['w'].weight">}
          : (!fp8.scaled<4x32xf8E4M3FN, tile = [*, *], scale = f32>,
             !fp8.scaled<32x16xf8E4M3FN, tile = [*, *], scale = f32>) -> tensor<4x16xf32>
      return %0 : tensor<4x16xf32>
    }
    ```
  }];
  let parameters = (ins
    "::mlir::fp8::DotRole":$role,
    "::mlir::fp8::OperandKind":$lhs, "::mlir::fp8::OperandKind":$rhs,
    "::mlir::StringAttr":$lhs_name, "::mlir::StringAttr":$rhs_name);
  let assemblyFormat = "`<` struct(params) `>`";
  let extraClassDeclaration = [{
    OperandKind getKind(unsigned operand) const { return operand == 0 ? getLhs() : getRhs(); }
    StringRef getName(unsigned operand) const {
      return (operand == 0 ? getLhsName() : getRhsName()).getValue();
    }
  }];
}

def FP8_StateVerdictAttr : AttrDef<FP8_Dialect, "StateVerdict"> {
  let mnemonic = "state_verdict";
  let summary = "How an array of the state is stored, and why";
  let description = [{
    `fp8-store-state` puts one on every array of floats in the state, as
    `fp8.state_verdict` of the argument. `kind` is `parameter`, `master`,
    `moment1`, `moment2`, `gradient` or `other`; `parameter` is the path of the
    parameter that the array belongs to; `from` and `to` are element types;
    `tile` says which elements share a scale; `bytes` includes scales.

    Example:

    ```mlir
    func.func private @main(tensor<64x32xbf16> {
      fp8.path = "m", fp8.role = "state",
      fp8.state_verdict = #fp8.state_verdict<kind = "moment1", parameter = "p", elements = 2048,
                                             from = f32, to = bf16, bytes = 4096, changed = true,
                                             reason = "as the recipe says">})
    ```
  }];
  let parameters = (ins
    "::mlir::StringAttr":$kind,
    OptionalParameter<"::mlir::StringAttr">:$parameter,
    "int64_t":$elements,
    "::mlir::Type":$from, "::mlir::Type":$to,
    OptionalParameter<"::std::optional<::mlir::fp8::StorageTiling>">:$tile,
    "int64_t":$bytes,
    DefaultValuedParameter<"bool", "false">:$changed,
    "::mlir::StringAttr":$reason,
    OptionalParameter<"::mlir::ArrayAttr">:$notes);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def FP8_SoftmaxVerdictAttr : AttrDef<FP8_Dialect, "SoftmaxVerdict"> {
  let mnemonic = "softmax_verdict";
  let summary = "Whether the scores of a softmax are stored, and why";
  let description = [{
    `fp8-form-attention` puts one on every attention op that it forms, and one
    on the dot that makes the scores of every softmax that it leaves.

    | | |
    |---|---|
    | first | `tiled`: no array of the scores is stored, or `stored` |
    | `backward` | the softmax is in a backward pass: its ops sum over queries |
    | `batch`, `queries`, `keys` | the sizes of the scores |
    | `loops`, `in_branch`, `recomputed` | as in `#fp8.verdict`, of the dot that makes the scores |
    | `reason` | text for the report |
    | `obstacle` | the location of the op that needs the scores |

    Example:

    ```mlir
    func.func @main(%q: tensor<16x8xf32>, %k: tensor<16x8xf32>) -> tensor<16x16xf32> {
      %0 = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1]
          {fp8.softmax_verdict = #fp8.softmax_verdict<stored, batch = 1, queries = 16, keys = 16,
                                                      reason = "scores are read by func.return",
                                                      obstacle = "f.py:3:1">}
          : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x16xf32>
      return %0 : tensor<16x16xf32>
    }
    ```
  }];
  let parameters = (ins
    "::mlir::fp8::ScoreStorage":$kind,
    DefaultValuedParameter<"bool", "false">:$backward,
    "int64_t":$batch, "int64_t":$queries, "int64_t":$keys,
    OptionalParameter<"::mlir::DenseI64ArrayAttr">:$loops,
    DefaultValuedParameter<"bool", "false">:$in_branch,
    DefaultValuedParameter<"bool", "false">:$recomputed,
    "::mlir::StringAttr":$reason,
    OptionalParameter<"::mlir::StringAttr">:$obstacle);
  let assemblyFormat = [{
    `<` $kind `,` struct($backward, $batch, $queries, $keys, $loops, $in_branch,
        $recomputed, $reason, $obstacle) `>`
  }];
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Attributes of codegen
//===----------------------------------------------------------------------===//

def FP8_CPUTargetAttr : AttrDef<FP8_Dialect, "CPUTarget"> {
  let mnemonic = "cpu_target";
  let summary = "The CPU that code is generated for";
  let description = [{
    `fp8-target` sets it on the module, and codegen reads it: no pass queries
    the machine that it runs on. `triple`, `cpu` and `features` are in LLVM's
    terms; `features` lists the differences from the features that the CPU's
    name implies (`+` or `-` each). `vector_bits` is the width of the vectors
    that kernels compute with.

    Example:

    ```mlir
    module attributes {fp8.target = #fp8.cpu_target<
        triple = "x86_64-unknown-linux-gnu", cpu = "znver4", features = "", vector_bits = 512>} {}
    ```
  }];
  let parameters = (ins StringRefParameter<"LLVM's target triple">:$triple,
                        StringRefParameter<"LLVM's name of the CPU">:$cpu,
                        StringRefParameter<"features beyond the CPU's">:$features,
                        "unsigned":$vector_bits);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def FP8_CPUPlanAttr : AttrDef<FP8_Dialect, "CPUPlan"> {
  let mnemonic = "cpu_plan";
  let summary = "How a kernel's domain is divided into tasks on a CPU";
  let description = [{
    One task of the kernel computes one tile; `tile` is its extent along each
    loop of the domain. The last tile of a loop may be smaller.

    For an attention with a causal mask or a window, `keys` is the number of keys
    that a tile runs over at the most. Tiles run over the keys up to the last one
    that their queries see, in steps of 32. With a window `keys` may be fewer
    than there are, and tiles that see later keys begin with the first key that
    they see. If the domain divides the keys, `keys` are all, and the blocks of
    which no query sees a key are left out.

    Example: tasks of 16 rows.

    ```mlir
    fp8.kernel @k(read %x: memref<64x8xf32>, write %y: memref<64x8xf32>) domain = [64]
        plan = #fp8.cpu_plan<tile = [16]>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"int64_t", "extent along each domain loop">:$tile,
                        OptionalParameter<"::std::optional<int64_t>", "most keys of a tile">:$keys);
  let assemblyFormat = "`<` `tile` `=` custom<Integers>($tile) (`,` `keys` `=` $keys^)? `>`";
  let genVerifyDecl = 1;
}

def FP8_GPUTargetAttr : AttrDef<FP8_Dialect, "GPUTarget"> {
  let mnemonic = "gpu_target";
  let summary = "The NVIDIA GPU that code is generated for";
  let description = [{
    `fp8-target` sets it on the module, and codegen reads it. `chip` is one of
    `sm_89`, `sm_90a`, `sm_100a` and `sm_120a`; `features` are in LLVM's terms
    and include the version of PTX. `cublaslt` says which dots NVIDIA's library
    computes: none (empty), those in a table of shapes (`table`), or all that it
    supports (`all`); see `fp8-use-cublaslt`.

    Example:

    ```mlir
    module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84">} {}
    ```
  }];
  let parameters = (ins StringRefParameter<"the GPU's architecture">:$chip,
                        StringRefParameter<"LLVM's features">:$features,
                        StringRefParameter<"dots of cuBLASLt: none, table or all", "\"\"">:$cublaslt);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def FP8_GPUPlanAttr : AttrDef<FP8_Dialect, "GPUPlan"> {
  let mnemonic = "gpu_plan";
  let summary = "How a kernel's domain is divided into blocks on a GPU";
  let description = [{
    One block of `threads` threads computes one tile; `tile` is its extent along
    each loop of the domain. The last tile of a loop may be smaller. `sum_tile`
    is the tile that decides how sums are cut into partial sums: the CPU's tile,
    so that both targets compute the same bits. With `wgmma`, dots whose
    operands and rows allow it are computed by this instruction of sm_90a;
    `threads` is then a multiple of a warpgroup, 128. The tiles of a dot's
    operands come to shared memory in steps along k. Operands that `cp.async`
    copies have a ring of `stages` such steps, from 2 to 4: one is read while the
    others are in flight. A kernel that is one scatter has no domain; with `rows`,
    each block owns that many rows of the result and skips all updates that land
    elsewhere.
    With `tma`, one more warp brings both operands of the
    kernel's only dot by TMA (`cp.async.bulk.tensor`), for which the kernel has
    tensor maps (`#fp8.gpu_launch`), and a block may run several tiles. If the
    kernel has a `block`, that warp brings the tiles of all its dots, which read
    them in place, and `stages` is the number of steps that have tiles.

    Example: blocks of 16 rows.

    ```mlir
    fp8.kernel @k(read %x: memref<64x8xf32>, write %y: memref<64x8xf32>) domain = [64]
        plan = #fp8.gpu_plan<tile = [16], sum_tile = [64], threads = 128>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"int64_t", "extent along each domain loop">:$tile,
                        ArrayRefParameter<"int64_t", "tile that sums are cut by">:$sumTile,
                        "unsigned":$threads,
                        DefaultValuedParameter<"bool", "false", "dots by wgmma">:$wgmma,
                        DefaultValuedParameter<"unsigned", "2", "of a dot's operands in shared memory">:$stages,
                        DefaultValuedParameter<"int64_t", "0", "of a scatter's result in a block">:$rows,
                        DefaultValuedParameter<"bool", "false", "operands by TMA">:$tma);
  let assemblyFormat = [{
    `<` `tile` `=` custom<Integers>($tile) `,` `sum_tile` `=` custom<Integers>($sumTile) `,`
        `threads` `=` $threads (`,` struct($wgmma, $stages, $rows, $tma)^)? `>`
  }];
  let genVerifyDecl = 1;
}

def FP8_CublasLtPlanAttr : AttrDef<FP8_Dialect, "CublasLtPlan"> {
  let mnemonic = "cublaslt_plan";
  let summary = "How cuBLASLt computes a kernel that is one dot";
  let description = [{
    The kernel's arguments are the two operands, with `scaled` a scale of each
    (one f32), the result, and `workspace` bytes for the library. All are dense
    and row-major. The result is `rows` by `columns`; an operand is `rows` or
    `columns` by `depth`, or transposed if it is not `along_k`. The result is
    the product of the operands and their scales, accumulated in f32: with
    `fast_accumulation` as FP8 hardware accumulates, otherwise with partial sums
    promoted as the library defines it. The body expresses the same computation
    as structured ops, which codegen does not read.

    Example:

    ```mlir
    fp8.kernel @dot(read %a: memref<64x128xf8E4M3FN>, read %b: memref<32x128xf8E4M3FN>,
                    write %c: memref<64x32xf32>, write %w: memref<4096xi8>) domain = [64, 32]
        plan = #fp8.cublaslt_plan<rows = 64, columns = 32, depth = 128, lhs_along_k = true,
                                  rhs_along_k = true, scaled = false, fast_accumulation = false,
                                  workspace = 4096>
    ```
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$columns, "int64_t":$depth,
                        "bool":$lhs_along_k, "bool":$rhs_along_k, "bool":$scaled,
                        "bool":$fast_accumulation, "int64_t":$workspace);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def FP8_TensorMapAttr : AttrDef<FP8_Dialect, "TensorMap"> {
  let mnemonic = "tensor_map";
  let summary = "How TMA addresses an operand of a GPU kernel";
  let description = [{
    A tensor map of the kernel's argument `operand`: a tensor of up to five
    dimensions, the one whose elements are adjacent first. `sizes` counts
    elements, `strides` are the bytes between two elements of each further
    dimension. A copy brings a box of `box` elements, whose rows (along the first
    dimension) have the swizzle that spans `swizzle` bytes in shared memory;
    elements outside of the tensor become zeros. These are the arguments of
    `cuTensorMapEncodeTiled`, whose rules the attribute follows.

    Example: boxes of 64 rows of a matrix of bytes.

    ```mlir
    func.func private @f() attributes {
        fp8.gpu_launch = #fp8.gpu_launch<
            blocks = 1, threads = 160, shared = 0, dynamic_shared = 65536, scratch = 0,
            maps = [#fp8.tensor_map<operand = 0, element = f8E4M3FN, sizes = [512, 64],
                                    strides = [512], box = [128, 64], swizzle = 128>]>}
    ```
  }];
  let parameters = (ins "int64_t":$operand, "Type":$element,
                        ArrayRefParameter<"int64_t">:$sizes,
                        ArrayRefParameter<"int64_t", "in bytes">:$strides,
                        ArrayRefParameter<"int64_t">:$box, "int64_t":$swizzle);
  let assemblyFormat = [{
    `<` `operand` `=` $operand `,` `element` `=` $element `,`
        `sizes` `=` custom<Integers>($sizes) `,` `strides` `=` custom<Integers>($strides) `,`
        `box` `=` custom<Integers>($box) `,` `swizzle` `=` $swizzle `>`
  }];
  let extraClassDeclaration = [{
    /// The most dimensions of a tensor map, and elements of a box along one.
    static constexpr int64_t kMostDims = 5, kMostBox = 256;

    /// Returns why these are no parameters of a tensor map, or an empty string.
    static std::string findMistake(Type element, ArrayRef<int64_t> sizes,
                                   ArrayRef<int64_t> strides, ArrayRef<int64_t> box,
                                   int64_t swizzle);
  }];
  let genVerifyDecl = 1;
}

def FP8_GPULaunchAttr : AttrDef<FP8_Dialect, "GPULaunch"> {
  let mnemonic = "gpu_launch";
  let summary = "What a launch of a GPU kernel asks for";
  let description = [{
    Codegen attaches it to the function that it makes of a kernel, as
    `fp8.gpu_launch`. The grid is one-dimensional, of `blocks` blocks with
    `threads` threads each. `shared` is the number of bytes of shared memory
    that the function declares itself, `dynamic_shared` the number that the
    launch has to request. If `scratch` is not 0, the function has one more
    parameter after those of the kernel: the address of `blocks * scratch` bytes
    of global memory, aligned to 64 and not cleared. The last parameters are
    tensor maps, one for each of `maps`: 128 bytes by value, aligned to 64.

    Example:

    ```mlir
    llvm.func @k(%x: !llvm.ptr) attributes {
        fp8.gpu_launch = #fp8.gpu_launch<blocks = 8, threads = 128, shared = 4096,
                                         dynamic_shared = 0, scratch = 0>} {
      llvm.return
    }
    ```
  }];
  let parameters = (ins "int64_t":$blocks, "int64_t":$threads, "int64_t":$shared,
                        "int64_t":$dynamic_shared, "int64_t":$scratch,
                        OptionalArrayRefParameter<"TensorMapAttr">:$maps);
  let assemblyFormat = [{
    `<` struct($blocks, $threads, $shared, $dynamic_shared, $scratch)
        (`,` `maps` `=` `[` $maps^ `]`)? `>`
  }];
  let genVerifyDecl = 1;
}

#endif // FP8_DIALECT_FP8_IR_FP8ATTRS_TD
