//===- Passes.td - Lowering of kernels and schedule to LLVM ---------------===//

#ifndef FP8_CODEGEN_PASSES
#define FP8_CODEGEN_PASSES

include "mlir/Pass/PassBase.td"

def SetTarget : Pass<"fp8-target", "::mlir::ModuleOp"> {
  let summary = "Set the target that code is generated for";
  let description = [{
    Sets `fp8.target` of the module. All passes of codegen read it; none
    inspects the machine that it runs on. Without an option, an existing target
    stays, and a module without one gets the machine that the compiler runs on.

    Example output, with `cpu=znver4`:

    ```mlir
    module attributes {fp8.target = #fp8.cpu_target<
        triple = "x86_64-unknown-linux-gnu", cpu = "znver4", features = "", vector_bits = 512>} {}
    ```

    and with `nvptx=sm_90a`:

    ```mlir
    module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84">} {}
    ```
  }];
  let options = [
    Option<"cpu", "cpu", "std::string", "",
           "native, or LLVM's name of an x86-64 or AArch64 CPU">,
    Option<"nvptx", "nvptx", "std::string", "",
           "an NVIDIA GPU: sm_89, sm_90a, sm_100a or sm_120a; with ',cublaslt' "
           "cuBLASLt computes dots, with ',cublaslt=all' all that it can">
  ];
  let dependentDialects = ["::mlir::fp8::FP8Dialect"];
}

def DivideScatters : Pass<"fp8-divide-scatters", "::mlir::fp8::KernelOp"> {
  let summary = "Divide the loops of a scatter among the tasks of a CPU";
  let description = [{
    A kernel with a loop nest that is no structured op is one task: its rows are
    added at places that are data, one after another. If a loop's counter is an
    index, in the same dimension, of everything that the nest writes (that of a
    batch, or of the columns of rows), that loop becomes the domain of the
    kernel. Each element still gets its terms in the same order.

    Example: the gradient of an embedding, whose tasks will be some columns each.

    ```mlir
    fp8.kernel @embedding_gradient(read %tokens: memref<64xindex>, read %rows: memref<64x256xf32>, write %out: memref<1000x256xf32>) domain = [] {
      %zero = arith.constant 0.0 : f32
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c64 = arith.constant 64 : index
      %c256 = arith.constant 256 : index
      linalg.fill ins(%zero : f32) outs(%out : memref<1000x256xf32>)
      scf.for %i = %c0 to %c64 step %c1 {
        %token = memref.load %tokens[%i] : memref<64xindex>
        scf.for %j = %c0 to %c256 step %c1 {
          %sum = memref.load %out[%token, %j] : memref<1000x256xf32>
          %row = memref.load %rows[%i, %j] : memref<64x256xf32>
          %next = arith.addf %sum, %row : f32
          memref.store %next, %out[%token, %j] : memref<1000x256xf32>
        } {fp8.irregular}
      } {fp8.irregular, fp8.task_dims = array<i64>}
      fp8.return  // the domain becomes [256], the loop 1 of the nest
    }
    ```
  }];
  let statistics = [
    Statistic<"numDivided", "num-divided", "Number of kernels that may have several tasks">
  ];
}

def TurnScores : Pass<"fp8-turn-scores", "::mlir::fp8::KernelOp"> {
  let summary = "Let the scores of an attention be columns on a CPU";
  let description = [{
    A task of an attention has some queries and all of their keys. Its buffers of
    scores (masks and weights, too), rows of keys so far, become columns: the
    last two dimensions of the buffers are exchanged. Vectors then run along
    queries. The dots read keys, values and weights where they lie, which they
    would pack otherwise, and maxima and sums over keys need no exchange between
    lanes.

    That is done if all dots of scores are in f32, if the number of queries is a
    multiple of 16, and if no op that accesses scores also accesses another
    buffer with a value for each key, as that of a bias. Otherwise the kernel
    stays as it is.

    Example:

    ```mlir
    fp8.kernel @attend(read %q: memref<16x8xf32>, read %k: memref<32x8xf32>, read %v: memref<32x4xf32>, write %out: memref<16x4xf32>) domain = [16] {
      %scores = memref.alloc() : memref<16x32xf32>  // becomes memref<32x16xf32>
      linalg.generic {indexing_maps = [affine_map<(m, n, c) -> (m, c)>, affine_map<(m, n, c) -> (n, c)>, affine_map<(m, n, c) -> (m, n)>],
                      iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%q, %k : memref<16x8xf32>, memref<32x8xf32>) outs(%scores : memref<16x32xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
      ^bb0(%a: f32, %b: f32, %sum: f32):
        %p = arith.mulf %a, %b : f32
        %s = arith.addf %sum, %p : f32
        linalg.yield %s : f32
      }
      linalg.generic {indexing_maps = [affine_map<(m, n, c) -> (m, c)>, affine_map<(m, n, c) -> (c, n)>, affine_map<(m, n, c) -> (m, n)>],
                      iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%scores, %v : memref<16x32xf32>, memref<32x4xf32>) outs(%out : memref<16x4xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
      ^bb0(%a: f32, %b: f32, %sum: f32):
        %p = arith.mulf %a, %b : f32
        %s = arith.addf %sum, %p : f32
        linalg.yield %s : f32
      }
      fp8.return
    }
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect",
                           "::mlir::memref::MemRefDialect"];
}

def RelaxMaxima : Pass<"fp8-relax-maxima", "::mlir::fp8::KernelOp"> {
  let summary = "Let maxima of a softmax ignore the sign of zeros";
  let description = [{
    A maximum along loops of a kernel gets the flag `nsz` if it is written into a
    local buffer, and if its readers do nothing but subtract it, or subtract from
    it, in the argument of an exponential. The difference is a zero for both
    zeros, and its exponential 1, so no result changes. Ordered zeros take three
    instructions of six on x86.

    Example:

    ```mlir
    fp8.kernel @exps(read %x: memref<16x32xf32>, write %y: memref<16x32xf32>) domain = [16] {
      %low = arith.constant 0xFF800000 : f32
      %max = memref.alloc() : memref<16xf32>
      linalg.fill ins(%low : f32) outs(%max : memref<16xf32>)
      linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>], iterator_types = ["parallel", "reduction"]}
          ins(%x : memref<16x32xf32>) outs(%max : memref<16xf32>) {
      ^bb0(%a: f32, %m: f32):
        %larger = arith.maximumf %m, %a : f32  // gets nsz
        linalg.yield %larger : f32
      }
      linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]}
          ins(%x, %max : memref<16x32xf32>, memref<16xf32>) outs(%y : memref<16x32xf32>) {
      ^bb0(%a: f32, %m: f32, %old: f32):
        %difference = arith.subf %a, %m : f32
        %e = math.exp %difference : f32
        linalg.yield %e : f32
      }
      fp8.return
    }
    ```
  }];
}

def PlanTiles : Pass<"fp8-plan-tiles", "::mlir::ModuleOp"> {
  let summary = "Choose the tile of each kernel that one task computes";
  let description = [{
    Every kernel without a `plan` gets one: elementwise kernels and reductions
    are divided into tasks that are large enough to be worth starting, dots into
    blocks of rows that share a packed panel, one batch at a time, and also into
    columns if there are few rows. Smaller tasks keep many `threads` busy, but
    each packs its operands: the tile is the one whose last task is estimated to
    end first. A kernel whose dot is the smaller part of its work is divided as if
    it had none. The buffers of a task fit into a cache, but tasks of columns stay
    eight lines of the cache wide. A tile does not change any bit of a result,
    because nothing is summed along the loops of the domain.

    Example:

    ```mlir
    fp8.kernel @double(read %x: memref<8xf32>, write %y: memref<8xf32>) domain = [8] {
      linalg.generic {
          indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
          iterator_types = ["parallel"]}
          ins(%x : memref<8xf32>) outs(%y : memref<8xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
      ^bb0(%a: f32, %o: f32):
        %d = arith.addf %a, %a : f32
        linalg.yield %d : f32
      }
      fp8.return
    }
    ```
  }];
  let options = [Option<"threads", "threads", "unsigned", /*default=*/"1",
                        "The number of threads that will run the tasks">];
}

def LowerKernels : Pass<"fp8-lower-kernels", "::mlir::ModuleOp"> {
  let summary = "Turn structured ops of a kernel into the loops of one task";
  let description = [{
    A kernel `@k(operands...)` with a plan becomes a function
    `@k(task, scratch, operands...)`: the task number selects one tile of the
    domain, and every structured op runs over that tile. Elementwise ops and
    reductions with equal loops share one nest: values pass between them in
    registers. The innermost contiguous loop is split into vectors of 16 lanes.
    A reduction over it keeps 16 partial results per accumulator and combines
    them in a fixed tree, so results depend on shapes alone. A maximum of columns
    goes through eight rows of all columns before it reads the next rows. Dots
    use packed panels and a register tile. Intermediates of the kernel live in the task's
    scratch and are as large as one tile.
    `fp8.scratch_bytes` and `fp8.tasks` say what a kernel needs.

    Example input:

    ```mlir
    module attributes {fp8.target = #fp8.cpu_target<
        triple = "x86_64-unknown-linux-gnu", cpu = "x86-64-v3", features = "", vector_bits = 256>} {
      fp8.kernel @double(read %x: memref<8xf32>, write %y: memref<8xf32>) domain = [8]
          plan = #fp8.cpu_plan<tile = [8]> {
        linalg.generic {
            indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
            iterator_types = ["parallel"]}
            ins(%x : memref<8xf32>) outs(%y : memref<8xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
        ^bb0(%a: f32, %o: f32):
          %d = arith.addf %a, %a : f32
          linalg.yield %d : f32
        }
        fp8.return
      }
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::func::FuncDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect",
    "::mlir::x86vector::X86VectorDialect"];
}

def LowerSchedule : Pass<"fp8-lower-schedule", "::mlir::ModuleOp"> {
  let summary = "Turn the schedule into launches through the runtime's C ABI";
  let description = [{
    The schedule becomes the function `@fp8_entry(%step: !llvm.ptr)`, with one
    call of the runtime's `fp8_launch` per launch, which passes the launch's
    number, or of `fp8_launch_sets` for a launch with several sets of operands
    (on a GPU, if `fp8-tabulate-operands` has given it a kernel for them).
    Consecutive launches whose operands have static addresses become one loop
    that reads the calls from constant tables. Operands are 64-bit codes:
    an offset into the arena, or the complement of an external buffer's number
    (arguments, outputs, constants by `fp8.number`). Each kernel gets a wrapper
    with the runtime's calling convention, marked `fp8.task`. A kernel that has
    been compiled before is declared as such a wrapper, an `llvm.func` with
    `fp8.tasks`, and is launched as it is. A schedule with the attribute
    `fp8.entry` becomes `@fp8_entry_<value>`.

    In a schedule for a GPU, `fp8_read` reads conditions, and waits for them.
    With `fp8.device_control` (`fp8-plan-graph`) the GPU decides: loaded scalars
    are kept (`fp8_keep`); each side of a branch queries them (`fp8_branch`),
    and so do loops (`fp8_while`). Loops with `fp8.device_loop` query how many
    iterations the entry has to run (`fp8_loop`). With `fp8.graph`
    (`fp8-order-graph`) calls of `fp8_order` name the nodes that the following
    work has to follow, and at the end calls of `fp8_fetch` name the results.

    Example input:

    ```mlir
    fp8.schedule @step(%arena: memref<64xi8>, %x: memref<8xf32>) arena_bytes = 64 {
      fp8.launch @k(update %x) number = 0 : (memref<8xf32>) -> ()
      fp8.return
    }
    func.func private @k(index, memref<0xi8>, memref<8xf32>)
        attributes {fp8.tasks = 4 : i64, fp8.scratch_bytes = 0 : i64}
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::scf::SCFDialect"];
}

def IntegerMaxima : Pass<"fp8-integer-maxima", "::mlir::func::FuncOp"> {
  let summary = "Compute maxima of absolute values as integers";
  let description = [{
    `arith.maximumf` propagates NaN and puts -0 before 0; x86 needs six
    instructions for it. If the sign bit of one operand is clear, as after
    `math.absf`, and the other one is no NaN with a sign, the order of their bits
    as integers is the order that it needs, and NaN is the largest. The maximum
    of the bits then has the same result but for the payloads of NaNs.

    What is known of signs follows through loops with carried values, slices of
    vectors and constants. Other maxima, and those of other types than f16, bf16
    and f32, stay as they are.

    Example:

    ```mlir
    func.func @amax(%x: vector<16xf32>) -> vector<16xf32> {
      %zero = arith.constant dense<0.0> : vector<16xf32>
      %abs = math.absf %x : vector<16xf32>
      %max = arith.maximumf %zero, %abs : vector<16xf32>
      return %max : vector<16xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def IntegerMemory : Pass<"fp8-integer-memory", "::mlir::ModuleOp"> {
  let summary = "Load, store and select bf16 as integers";
  let description = [{
    LLVM 22 cannot split every load and store of bf16 vectors if the CPU has
    avx512_bf16. Such a vector is loaded and stored as one of i16, with a
    bitcast between the access and the ops on bf16. If the CPU does not have it,
    LLVM selects values of bf16 in f32, and rounds with a call of a library
    function that does not exist. So they are selected as i16, too.

    Example:

    ```mlir
    llvm.func @copy(%from: !llvm.ptr, %to: !llvm.ptr) {
      %0 = llvm.load %from : !llvm.ptr -> vector<9xbf16>
      llvm.store %0, %to : vector<9xbf16>, !llvm.ptr
      llvm.return
    }
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def VerifyLowered : Pass<"fp8-verify-lowered", "::mlir::ModuleOp"> {
  let summary = "Check that only the LLVM dialect is left";
  let description = [{
    Upstream conversions silently skip ops that they do not know (f8 casts among
    them). This check reports an error for any op that is not in the LLVM
    dialect, and for any value of an f8 type.

    Example:

    ```mlir
    llvm.func @f(%x: f32) -> f32 {
      %0 = llvm.fneg %x : f32
      llvm.return %0 : f32
    }
    ```
  }];
}

#endif // FP8_CODEGEN_PASSES
