//===- HetOpBase.td - the classes of the model's ops --------*- tablegen -*-===//
//
// Which interfaces a kind of op answers. Every op infers its result types.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_HET_OP_BASE
#define AUTOHET_HET_OP_BASE

include "Het/HetBase.td"
include "Het/HetInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Het_Op<string mnemonic, list<Trait> traits = []>
    : Op<Het_Dialect, mnemonic, traits # [
        DeclareOpInterfaceMethods<Het_ShardableInterface>,
        DeclareOpInterfaceMethods<Het_CostedInterface>]> {
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

// What an op overrides of ShardableOpInterface, for its extraClassDeclaration.
defvar Het_ChoosesShards = [{
    std::optional<ShardLayouts> chooseShards(::llvm::ArrayRef<Layout> operands,
                                             ::llvm::ArrayRef<Layout> wanted);
}];
defvar Het_BecomesShard = [{
    void becomeShard(::mlir::Operation *whole, const ShardLayouts &layouts,
                     unsigned rank);
}];
defvar Het_BuildsShards = [{
    ::llvm::SmallVector<RankValues>
    buildShards(ShardBuilder &builder, ::llvm::ArrayRef<RankValues> operands,
                const ShardLayouts &layouts);
}];

// Types are inferred by the op's own `inferReturnTypes`, in HetInference.cpp.
class Het_PureOp<string mnemonic, list<Trait> traits = []>
    : Het_Op<mnemonic, traits # [Pure, InferTypeOpAdaptor]>;

class Het_DifferentiableOp<string mnemonic, list<Trait> traits = []>
    : Het_PureOp<mnemonic, traits # [DeclareOpInterfaceMethods<Het_DifferentiableInterface>]>;

// Elementwise: inference, sharding and cost are shared, see HetElementwise.cpp.
class Het_ElementwiseOp<string mnemonic, list<Trait> traits = []>
    : Het_PureOp<mnemonic, traits # [DeclareOpInterfaceMethods<Het_ElementwiseInterface>]> {
  let hasFolder = 1;
}
class Het_DifferentiableElementwiseOp<string mnemonic, list<Trait> traits = []>
    : Het_ElementwiseOp<mnemonic, traits # [DeclareOpInterfaceMethods<Het_DifferentiableInterface>]>;

class Het_UnaryOp<string mnemonic, string formula>
    : Het_DifferentiableElementwiseOp<mnemonic> {
  let summary = "Elementwise " # formula;
  let description = "`result[i] = " # formula # "`, of the operand's type.\n\n"
    # "Constraints: (C1) operand and result have one type.\n\n"
    # "Example:\n```mlir\n%y = het." # mnemonic # " %x : (tensor<2x3xf32>) -> tensor<2x3xf32>\n```";
  let arguments = (ins Het_Tensor:$operand);
  let results = (outs Het_Tensor:$result);
}

class Het_BinaryOp<string mnemonic, string formula>
    : Het_DifferentiableElementwiseOp<mnemonic> {
  let summary = "Elementwise " # formula # ", with broadcasting";
  let description = "`result[i] = " # formula # "`, where lhs and rhs are broadcast against each other.\n\n"
    # "Constraints:\n- (C1) both have one element type;\n- (C2) their shapes broadcast (NumPy's rule).\n\n"
    # "Example:\n```mlir\n%y = het." # mnemonic # " %a, %b : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>\n```";
  let arguments = (ins Het_Tensor:$lhs, Het_Tensor:$rhs);
  let results = (outs Het_Tensor:$result);
}

// Constant almost everywhere: no gradient.
class Het_RoundingOp<string mnemonic, string formula>
    : Het_ElementwiseOp<mnemonic> {
  let summary = "Elementwise " # formula;
  let description = "`result[i] = " # formula # "`.\n\n"
    # "Constraints: (C1) operand and result have one type.\n\n"
    # "Example:\n```mlir\n%y = het." # mnemonic # " %x : (tensor<2x3xf32>) -> tensor<2x3xf32>\n```";
  let arguments = (ins Het_FloatTensor:$operand);
  let results = (outs Het_FloatTensor:$result);
}

class Het_IntegerLikeOp<string mnemonic, string formula>
    : Het_ElementwiseOp<mnemonic> {
  let summary = "Elementwise " # formula # ", with broadcasting";
  let description = "`result[i] = " # formula # "`.\n\n"
    # "Constraints:\n- (C1) both have one element type;\n- (C2) their shapes broadcast (NumPy's rule).\n\n"
    # "Example:\n```mlir\n%y = het." # mnemonic # " %a, %b : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>\n```";
  let arguments = (ins Het_Tensor:$lhs, Het_Tensor:$rhs);
  let results = (outs Het_Tensor:$result);
}

class Het_LogicalOp<string mnemonic, string formula>
    : Het_ElementwiseOp<mnemonic> {
  let summary = "Elementwise " # formula # " of booleans, with broadcasting";
  let description = "`result[i] = " # formula # "` on i1.\n\n"
    # "Constraints: (C1) the shapes broadcast.\n\n"
    # "Example:\n```mlir\n%y = het." # mnemonic # " %a, %b : (tensor<2x1xi1>, tensor<3xi1>) -> tensor<2x3xi1>\n```";
  let arguments = (ins Het_BoolTensor:$lhs, Het_BoolTensor:$rhs);
  let results = (outs Het_BoolTensor:$result);
}

#endif
