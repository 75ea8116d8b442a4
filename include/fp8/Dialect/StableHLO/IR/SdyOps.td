//===- SdyOps.td - Shardy subset --------------------------------*- tablegen -*-===//
//
// Shardy's annotations as JAX prints them. Axis lists are kept as text, which
// only `stablehlo-one-rank` parses; the import drops them.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_DIALECT_STABLEHLO_IR_SDYOPS_TD
#define FP8_DIALECT_STABLEHLO_IR_SDYOPS_TD

include "fp8/Dialect/StableHLO/IR/StableHLOBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"

def Sdy_Dialect : Dialect {
  let name = "sdy";
  let cppNamespace = "::mlir::sdy";
  let summary = "The subset of Shardy that JAX emits";
  let description = [{
    Meshes, sharding annotations and manual computations. Sharding attributes
    are checked for their syntax and kept as text.
  }];
  let useDefaultAttributePrinterParser = 0;
  let extraClassDeclaration = [{
    /// Parses a pretty-form op that is not in the subset: always one error.
    std::optional<::mlir::Dialect::ParseOpHook>
    getParseOperationHook(::llvm::StringRef opName) const override;

    ::mlir::Attribute parseAttribute(::mlir::DialectAsmParser &parser,
                                     ::mlir::Type type) const override;
    void printAttribute(::mlir::Attribute attr,
                        ::mlir::DialectAsmPrinter &printer) const override;
  }];
}

class Sdy_Attr<string name, string attrMnemonic> : AttrDef<Sdy_Dialect, name> {
  let mnemonic = attrMnemonic;
  let parameters = (ins StringRefParameter<"text, delimiters included">:$text);
  let hasCustomAssemblyFormat = 1;
}

def Sdy_MeshAttr : Sdy_Attr<"Mesh", "mesh"> {
  let summary = "Named axes of a device mesh";
  let description = [{
    Example: `#sdy.mesh<["data"=2, "model"=4]>`
  }];
  let extraClassDeclaration = [{
    /// The number of devices: the product of the axis sizes.
    int64_t getNumDevices() const;
  }];
}

def Sdy_TensorShardingAttr : Sdy_Attr<"TensorSharding", "sharding"> {
  let summary = "Sharding of one tensor";
  let description = [{
    Example: `#sdy.sharding<@mesh, [{"data"}, {} ]>`
  }];
}

def Sdy_TensorShardingPerValueAttr : Sdy_Attr<"TensorShardingPerValue", "sharding_per_value"> {
  let summary = "Shardings of a list of tensors";
  let description = [{
    Example: `#sdy.sharding_per_value<[<@mesh, [{"data"}, {} ]>]>`
  }];
}

def Sdy_ManualAxesAttr : Sdy_Attr<"ManualAxes", "manual_axes"> {
  let summary = "Axes that a manual computation is manual over";
  let description = [{
    Example: `#sdy<manual_axes{"data"}>`
  }];
}

class Sdy_Op<string mnemonic, list<Trait> traits = []>
    : Op<Sdy_Dialect, mnemonic, traits>;

def Sdy_MeshOp : Sdy_Op<"mesh", [Symbol]> {
  let summary = "Named mesh";
  let description = [{
    Declares a device mesh.

    Example:

    ```mlir
    sdy.mesh @mesh = <["data"=2, "model"=4]>
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Sdy_MeshAttr:$mesh);
  let assemblyFormat = "$sym_name `=` $mesh attr-dict";
}

def Sdy_ShardingConstraintOp : Sdy_Op<"sharding_constraint", [Pure, SameOperandsAndResultType]> {
  let summary = "Sharding annotation";
  let description = [{
    Its operand, annotated with a sharding. Dropped by the import.

    Example:

    ```mlir
    sdy.mesh @mesh = <["data"=2]>
    func.func @example(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %0 = sdy.sharding_constraint %x <@mesh, [{"data"}, {} ]> : tensor<4x8xf32>
      return %0 : tensor<4x8xf32>
    }
    ```
  }];
  let arguments = (ins HLO_Tensor:$input, Sdy_TensorShardingAttr:$sharding);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = "$input $sharding attr-dict `:` type($result)";
}

def Sdy_ManualComputationOp : Sdy_Op<"manual_computation", [
    IsolatedFromAbove, RecursiveMemoryEffects, SingleBlock]> {
  let summary = "Per-device computation";
  let description = [{
    Runs a body on the shards of its operands (`jax.shard_map`). Body arguments
    have the shapes of one device's shards. The import replaces the op by its
    body.

    Example:

    ```mlir
    sdy.mesh @mesh = <["data"=1]>
    func.func @example(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"data"} ]>] out_shardings=[<@mesh, [{"data"} ]>] manual_axes={"data"} (%a: tensor<8xf32>) {
        %1 = stablehlo.add %a, %a : tensor<8xf32>
        sdy.return %1 : tensor<8xf32>
      } : (tensor<8xf32>) -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<HLO_Tensor>:$tensors,
                       Sdy_TensorShardingPerValueAttr:$in_shardings,
                       Sdy_TensorShardingPerValueAttr:$out_shardings,
                       Sdy_ManualAxesAttr:$manual_axes);
  let results = (outs Variadic<HLO_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `(` operands `)` `in_shardings` `` `=` `` custom<PerValue>($in_shardings)
      `out_shardings` `` `=` `` custom<PerValue>($out_shardings)
      `manual_axes` `` `=` `` custom<Axes>($manual_axes)
      custom<Body>($body) attr-dict `:` functional-type(operands, results)
  }];
  let hasRegionVerifier = 1;
}

def Sdy_ReturnOp : Sdy_Op<"return", [Pure, Terminator]> {
  let summary = "Terminator of a manual computation";
  let description = [{
    Returns the values of a manual computation's body.

    Example:

    ```mlir
    sdy.mesh @mesh = <["data"=1]>
    func.func @example(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{} ]>] out_shardings=[<@mesh, [{} ]>] manual_axes={} (%a: tensor<8xf32>) {
        sdy.return %a : tensor<8xf32>
      } : (tensor<8xf32>) -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<HLO_Tensor>:$results);
  let assemblyFormat = "attr-dict ($results^ `:` type($results))?";
}

#endif // FP8_DIALECT_STABLEHLO_IR_SDYOPS_TD
