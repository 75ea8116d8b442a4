//===- Passes.td - Lowering of kernels to NVIDIA GPUs ------*- tablegen -*-===//

#ifndef FP8_CODEGEN_GPU_PASSES
#define FP8_CODEGEN_GPU_PASSES

include "mlir/Pass/PassBase.td"

def PlanBlocks : Pass<"fp8-plan-blocks", "::mlir::ModuleOp"> {
  let summary = "Choose the tile of each kernel that one block computes";
  let description = [{
    Every kernel without a `plan` gets one for the module's GPU. Elementwise
    kernels and reductions are divided into blocks of some thousand elements,
    dots into blocks of up to 64 rows and 128 columns. A dot has fewer rows per
    block if the intermediates between the dot and the results do not fit into
    shared memory. A block of an attention has all keys and up to 64 queries: as
    many as keep the scores in shared memory, or 32 if even 16 do not. On
    sm_90a, dots of at least 64 rows use `wgmma` if it supports their types,
    with 128 rows per block if that leaves 256 blocks (and 256 columns, if TMA
    brings the operands and they fit). Operands that `cp.async`
    copies have two to four stages in shared memory: as many as leave room for a
    second block on the multiprocessor, if two stages do. Sums over many rows have
    a warp's columns in a block of 1024 threads, which share the rows of a column.
    The rows of the result of a large scatter are dealt to 256 blocks.

    If `wgmma` computes a kernel's only dot, TMA brings its operands if it can:
    both contiguous along k, not converted, not written or computed by the
    kernel itself, aligned to 16 bytes in all launches, with strides that are
    multiples of 16 bytes, rows of a tile that follow one another, and at most
    five dimensions; runs of k with sums of their own must consist of whole
    stages. In an attention whose blocks run keys or queries in order, TMA brings
    the operands of all dots, once for each step, and the dots read them in place
    if they all are of 16 bits, tiles have 64 or 128 rows and divide the domain,
    and a tile's rows follow one another. With `explain`, a remark says for each
    other dot by `wgmma`, or for such a kernel, which condition is not met. A tile
    does not change
    any bit of a result. The split of sums does; the CPU's tile, which
    determines it, is therefore part of the plan.

    Kernels that copy an FP8 payload to another order of dimensions
    (`fp8-assign-layouts`) get a buffer for the payload in shared memory, which
    the copy reads, and tiles with 16 to 64 lines along each of the two
    dimensions that are exchanged.

    Example:

    ```mlir
    module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84">} {
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
    }
    ```
  }];
  let options = [
    Option<"explain", "explain", "bool", "false",
           "remark why TMA does not bring the operands of a dot">
  ];
}

def UseCublasLt : Pass<"fp8-use-cublaslt", "::mlir::ModuleOp"> {
  let summary = "Compute dots with cuBLASLt";
  let description = [{
    If the module's target has `cublaslt`, kernels with one dot are split into a
    part that NVIDIA's library computes, a kernel with `#fp8.cublaslt_plan`, and
    the rest. The library's part includes the scales of FP8 operands and a
    conversion of the sums if these are the first ops on the sums; the ops after
    them form a kernel of their own. FP8 operands that are not contiguous along
    k are transposed first, by another kernel. The buffers between the parts,
    and the library's workspace, lie at the end of the arena, at offsets that
    all dots share.

    Either a table of sizes per GPU chooses the dots (`cublaslt = "table"`), or
    the library computes all that it can (`"all"`): operands both in bf16 or
    both in f16, or in E4M3 and E5M2 but not both in E5M2; for FP8, sizes that
    are multiples of 16; no batches, no scales in blocks, and no explicit
    promotion of partial sums to f32. The module's `fp8.dot_choices` has a row
    for each kernel with a dot: a description, whether the library computes it,
    and why not. Nothing is measured at run time.

    Example:

    ```mlir
    #a = affine_map<(i, j, k) -> (i, k)>
    #b = affine_map<(i, j, k) -> (j, k)>
    #c = affine_map<(i, j, k) -> (i, j)>
    module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84", cublaslt = "all">} {
      fp8.kernel @dot(read %a: memref<32x64xbf16>, read %b: memref<16x64xbf16>, write %c: memref<32x16xf32>) domain = [32, 16] {
        %zero = arith.constant 0.0 : f32
        linalg.fill ins(%zero : f32) outs(%c : memref<32x16xf32>)
        linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
            ins(%a, %b : memref<32x64xbf16>, memref<16x64xbf16>) outs(%c : memref<32x16xf32>)
            attrs = {fp8.task_dims = array<i64: 0, 1>} {
        ^bb0(%x: bf16, %y: bf16, %z: f32):
          %0 = arith.extf %x : bf16 to f32
          %1 = arith.extf %y : bf16 to f32
          %2 = arith.mulf %0, %1 : f32
          %3 = arith.addf %z, %2 : f32
          linalg.yield %3 : f32
        }
        fp8.return
      }
      fp8.schedule @step(%arena: memref<64xi8>, %a: memref<32x64xbf16>, %b: memref<16x64xbf16>,
                         %c: memref<32x16xf32>) arena_bytes = 64 {
        fp8.launch @dot(read %a, read %b, write %c) label = "dot" number = 0
            : (memref<32x64xbf16>, memref<16x64xbf16>, memref<32x16xf32>) -> ()
        fp8.return
      }
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::memref::MemRefDialect"];
}

def LowerBlocks : Pass<"fp8-lower-blocks", "::mlir::ModuleOp"> {
  let summary = "Turn structured ops of a kernel into the code of one block";
  let description = [{
    A kernel `@k(operands...)` with a plan becomes the kernel `@k` of a
    `gpu.module @k`: the block's number selects one tile of the domain, and all
    threads of the block run each structured op over that tile, one op after the
    other, with barriers between them. The points of a nest are distributed over
    the threads, with loads and stores of up to 16 bytes. On the CPU, the
    partial sums of one point are the lanes of a vector; here they belong to
    neighbouring threads and are combined by shuffles in the CPU's order, so
    that sums are bitwise equal to the CPU's. Dots of f8, bf16 and f16 use
    `mma.sync` with tiles in shared memory, those of f32 use FMA. `cp.async`
    copies operands that are multiplied as they lie, some stages ahead; operands
    that are converted or transposed go through registers. If the plan has
    `tma`, a warp of its own, the producer, asks for the operands of the dot by
    `cp.async.bulk.tensor`, and passes stages to the other warps by mbarriers.
    The kernel then has two more parameters, the tensor maps, and there are at
    most as many blocks as run at once: each runs several tiles, and the producer
    begins the next one while the others finish the last. In a kernel with a
    `block` the producer brings the tiles of all dots, a step ahead.

    A payload that is copied to another order of dimensions is transposed by
    words: lines of shared memory have an odd number of them, and each thread
    stores up to 16 bytes to each of four lines of the result.

    The kernel's own buffers lie in shared memory. Those that do not fit lie in
    global memory, a part of it for each block. At most 256 blocks are launched
    then, and each runs several tiles. If the kernel has a `block`, one block
    runs the last loop of the domain tile by tile. `fp8.gpu_launch` holds the
    parameters of a launch.

    For a loop nest that is the code of one task (a scatter), a loop whose
    iterations access disjoint elements is distributed over the threads of one
    block. If there is no such loop (a sort), a single thread runs the nest.

    Example input:

    ```mlir
    module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84">} {
      fp8.kernel @double(read %x: memref<8xf32>, write %y: memref<8xf32>) domain = [8]
          plan = #fp8.gpu_plan<tile = [8], sum_tile = [8], threads = 32> {
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
    "::mlir::func::FuncDialect", "::mlir::gpu::GPUDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::nvgpu::NVGPUDialect",
    "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"];
  let options = [
    Option<"processors", "processors", "int64_t", "0",
           "multiprocessors for which blocks that run several tiles are counted; "
           "0: those of the target's largest card">
  ];
}

def GPUCasts : Pass<"fp8-gpu-casts"> {
  let summary = "Turn f8 and bf16 casts into GPU instructions";
  let description = [{
    `arith.truncf` from f32 to f8E4M3FN and f8E5M2 becomes
    `cvt.rn.satfinite.e4m3x2.f32` (or `e5m2x2`) on pairs of elements, `arith.extf`
    to f32 `cvt.rn.f16x2.e4m3x2`. A plain cast does not saturate: a comparison
    next to the conversion turns values that round beyond the largest number
    into NaN, or infinity in E5M2. Casts between f32 and bf16 stay as they are
    (LLVM supports them). Casts of other formats are left to `fp8-expand-casts`.

    The results are those of `fp8-expand-casts`, except that the NaN of E4M3 and
    bf16 has no sign.

    Example:

    ```mlir
    func.func @encode(%x: vector<4xf32>) -> vector<4xf8E4M3FN> {
      %0 = arith.truncf %x : vector<4xf32> to vector<4xf8E4M3FN>
      return %0 : vector<4xf8E4M3FN>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::vector::VectorDialect"];
}

def ConvertToNVVM : Pass<"fp8-convert-to-nvvm", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Convert GPU kernels to the LLVM and NVVM dialects";
  let description = [{
    Runs upstream's conversions of all dialects in kernels as one conversion,
    because each of them alone does not know the address space of shared memory.
    Memory is passed as bare pointers, one for each buffer. Ops of the `math`
    dialect must be converted before.

    Example:

    ```mlir
    gpu.module @k {
      gpu.func @k(%x: memref<128xf32>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
        %i = gpu.thread_id x
        %0 = memref.load %x[%i] : memref<128xf32>
        %1 = arith.addf %0, %0 : f32
        memref.store %1, %x[%i] : memref<128xf32>
        gpu.return
      }
    }
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect",
                           "::mlir::NVVM::NVVMDialect"];
}

def VerifyGPU : Pass<"fp8-verify-gpu", "::mlir::ModuleOp"> {
  let summary = "Check that GPU kernels only contain NVVM and LLVM";
  let description = [{
    Upstream conversions silently skip ops that they do not know. This check
    reports an error for any op in a `gpu.module` that is of neither dialect,
    any call of a function without a body, any f64 function for which GPUs have
    no instruction, and any value of an f8 type.

    Example:

    ```mlir
    gpu.module @k {
      llvm.func @k(%x: !llvm.ptr) attributes {
          gpu.kernel, nvvm.kernel,
          fp8.gpu_launch = #fp8.gpu_launch<blocks = 1, threads = 32, shared = 0,
                                           dynamic_shared = 0, scratch = 0>} {
        llvm.return
      }
    }
    ```
  }];
}

def TabulateOperands : Pass<"fp8-tabulate-operands", "::mlir::ModuleOp"> {
  let summary = "Let the blocks of one launch work on different operands";
  let description = [{
    A launch with several sets of operands becomes one node of the step's graph.
    Its kernel gets a copy, `@k_of_sets`, whose only parameter is the address of
    a table with the addresses of all operands, set by set. The y index of a
    block is the number of its set. The x index, and all arithmetic, are those
    of `@k`.

    Kernels with further parameters (scratch memory, which blocks have by their x
    index) get no copy; neither do launches with an operand whose address is only
    known at run time. Such launches become one node for each set.

    Runs after `fp8-to-nvvm` and before `fp8-plan-graph`.

    Example:

    ```mlir
    gpu.module @k attributes {fp8.gpu_launch = #fp8.gpu_launch<
        blocks = 1, threads = 32, shared = 0, dynamic_shared = 0, scratch = 0>} {
      llvm.func @k(%x: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
        %0 = llvm.mlir.constant(1.0 : f32) : f32
        llvm.store %0, %x : f32, !llvm.ptr
        llvm.return
      }
    }
    fp8.schedule @main(%arena: memref<64xi8>, %x: memref<f32>, %y: memref<f32>) arena_bytes = 64 {
      fp8.launch @k(write %x)(write %y) number = 0 : (memref<f32>) -> ()
      fp8.return
    }
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect",
                           "::mlir::NVVM::NVVMDialect"];
}

def PlanGraph : Pass<"fp8-plan-graph", "::mlir::ModuleOp"> {
  let summary = "Let the GPU run loops and branches of the schedule";
  let description = [{
    A step is one graph, so the GPU has to read conditions. If every condition
    of a schedule is a scalar that kernels compute, and none controls a
    collective, which the host starts, the schedule gets `fp8.device_control`:
    loops and branches become conditional nodes (`fp8-lower-schedule`).
    Otherwise the host reads conditions, and a remark says so.

    A counted loop is expanded, up to `nodes` launches. A longer one gets
    `fp8.device_loop`: the GPU counts it, and the graph holds its body once. If
    the addresses of operands change in such loops (parts of stacks), their
    kernels get copies that compute addresses from counters: besides the
    parameters of `@k`, `@k_in_1_loop` takes the address of the counters and,
    for each operand, the bytes by which its address changes per iteration. A
    loop stays expanded if an address in it is not a multiple of its counter
    plus a constant, if the address of an operand of cuBLASLt or TMA changes in
    it, if it contains a collective, or if more than four such loops would be nested.

    The kernels that store conditions, count, and call `cudaGraphSetConditional`
    are added as GPU modules. Modules that nothing launches any more are
    removed.

    Runs after `fp8-to-nvvm`.

    Example, with `nodes=4`:

    ```mlir
    gpu.module @k attributes {fp8.gpu_launch = #fp8.gpu_launch<
        blocks = 1, threads = 32, shared = 0, dynamic_shared = 0, scratch = 0>} {
      llvm.func @k(%x: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
        llvm.return
      }
    }
    fp8.schedule @main(%arena: memref<64xi8>, %stack: memref<8x64xi8>) arena_bytes = 64 {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %c64 = arith.constant 64 : index
      scf.for %i = %c0 to %c8 step %c1 {
        %offset = arith.muli %i, %c64 : index
        %layer = fp8.subbuffer %stack[%offset] : memref<8x64xi8> to memref<64xi8>
        fp8.launch @k(update %layer) number = 0 : (memref<64xi8>) -> ()
      }
      fp8.return
    }
    ```
  }];
  let options = [
    Option<"nodes", "nodes", "int64_t", "2048",
           "largest number of launches to which a counted loop is expanded">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::gpu::GPUDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::NVVM::NVVMDialect"];
}

def OrderGraph : Pass<"fp8-order-graph", "::mlir::ModuleOp"> {
  let summary = "Order the nodes of a step's graph by data flow";
  let description = [{
    In a schedule with `fp8.device_control`, everything that becomes a node of
    the step's graph gets a number (`fp8.node`) and the numbers of the nodes
    that it has to follow (`fp8.after`). A node follows an earlier one of its
    block if both access the same bytes and one of them writes: bytes of the
    arena, whose buffers share memory as `fp8-plan-memory` has laid them out, of
    arguments and results, of the scratch memory that all launches share, and
    the counters and conditions of loops and branches. A part of a buffer at a
    place that is not known here counts as the whole buffer. Edges that follow
    from others are left out.

    A loop or branch that the GPU decides is one node, and its body has an order
    of its own. Each result that replaces no argument (`fp8.output`) has a node,
    too, which copies it to the host. Nodes before a loop with a condition, in
    it and after it keep the order of the schedule. The schedule's `fp8.graph`
    has the numbers of nodes and edges, and of the nodes on the longest path.

    Expanded loops are replaced by their iterations, since these differ in what
    they access. A schedule of more than `nodes` nodes stays as it is, and its
    work is one chain.

    Runs after `fp8-plan-graph`.

    Example:

    ```mlir
    gpu.module @k attributes {fp8.gpu_launch = #fp8.gpu_launch<
        blocks = 1, threads = 32, shared = 0, dynamic_shared = 0, scratch = 0>} {
      llvm.func @k(%x: !llvm.ptr, %y: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
        llvm.return
      }
    }
    fp8.schedule @main(%arena: memref<128xi8>, %x: memref<64xi8>, %y: memref<64xi8>)
        arena_bytes = 128 attributes {fp8.device_control} {
      %c0 = arith.constant 0 : index
      %c64 = arith.constant 64 : index
      %a = memref.view %arena[%c0][] : memref<128xi8> to memref<64xi8>
      %b = memref.view %arena[%c64][] : memref<128xi8> to memref<64xi8>
      fp8.launch @k(read %x, write %a) number = 0 : (memref<64xi8>, memref<64xi8>) -> ()
      fp8.launch @k(read %x, write %b) number = 1 : (memref<64xi8>, memref<64xi8>) -> ()
      fp8.launch @k(read %b, write %y) number = 2 : (memref<64xi8>, memref<64xi8>) -> ()
      fp8.return
    }
    ```
  }];
  let options = [
    Option<"nodes", "nodes", "int64_t", "65536",
           "largest number of nodes of a schedule whose nodes are ordered; the "
           "runtime makes no larger graph">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def VerifyGraph : Pass<"fp8-verify-graph", "::mlir::ModuleOp"> {
  let summary = "Check that the order of a step's graph is sufficient";
  let description = [{
    In a schedule with `fp8.graph`, every op that becomes a node of the graph
    has a number of its own (`fp8.node`) and follows earlier nodes of its block
    (`fp8.after`). Between any two nodes of a block that access the same bytes,
    one of them writing, there is a path. Accesses are found as by
    `fp8-order-graph`.

    Example:

    ```mlir
    fp8.kernel @k(update %x: memref<8xf32>) domain = []
    fp8.schedule @main(%arena: memref<64xi8>, %x: memref<8xf32>) arena_bytes = 64
        attributes {fp8.graph = {edges = 1, nodes = 2, path = 2}} {
      fp8.launch @k(update %x) {fp8.node = 0, fp8.after = array<i64>} : (memref<8xf32>) -> ()
      fp8.launch @k(update %x) {fp8.node = 1, fp8.after = array<i64: 0>} : (memref<8xf32>) -> ()
      fp8.return
    }
    ```
  }];
}

def EmitGPUCode : Pass<"fp8-emit-gpu-code", "::mlir::ModuleOp"> {
  let summary = "Write the code of GPU kernels to files";
  let description = [{
    Compiles every `gpu.module` for the module's GPU and writes its code to
    `directory`, one file per kernel: `bitcode` (`.bc`), `ptx` or `cubin`. For
    cubins it also writes `resources.csv`: the parameters of each launch, the
    resources that CUDA's assembler reports for each kernel, and the fraction of
    a multiprocessor's warps that can run at once. The IR stays as it is.

    Example, with `image=ptx directory=out`:

    ```mlir
    module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84">} {
      gpu.module @k {
        llvm.func @k(%x: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
          llvm.return
        }
      }
    }
    ```
  }];
  let options = [
    Option<"image", "image", "std::string", "\"ptx\"", "bitcode, ptx or cubin">,
    Option<"directory", "directory", "std::string", "", "where files are written">
  ];
}

#endif // FP8_CODEGEN_GPU_PASSES
