//===- HetInterfaces.td - what a het op must answer ---------*- tablegen -*-===//
//
// Passes ask these; they never ask `isa`. A new op answers them and no pass is
// touched.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_HET_INTERFACES
#define AUTOHET_HET_INTERFACES

include "mlir/IR/OpBase.td"

def Het_DifferentiableInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::autohet::het";
  let description = [{
    The op knows its adjoint: given the gradient of the loss by each result, it
    builds the gradient by each operand.
  }];
  let methods = [InterfaceMethod<[{
      Builds the gradients of the operands.

      `resultGradients[i]` is the gradient by result i, of that result's type,
      or null where the loss does not depend on the result. `wanted[j]` says
      whether operand j's gradient is needed; `operandGradients` has one entry
      an operand, null at entry, and receives values of the operands' own types
      (broadcasting is undone here). A wanted gradient that is identically zero
      stays null. Fails, after emitting a diagnostic, where no adjoint exists.
    }],
    "::llvm::LogicalResult", "buildAdjoint",
    (ins "::mlir::OpBuilder &":$builder,
         "::llvm::ArrayRef<::mlir::Value>":$resultGradients,
         "::llvm::ArrayRef<bool>":$wanted,
         "::llvm::SmallVectorImpl<::mlir::Value> &":$operandGradients)>];
}

def Het_ShardableInterface : OpInterface<"ShardableOpInterface"> {
  let cppNamespace = "::autohet::het";
  let description = [{
    The op says which of its dims may be split and what that costs, in terms of
    *factors* (see ShardingRule in Het/ShardingRule.h), and becomes one op a
    rank (Het/Shards.h). For most ops the rule says all; those that have more
    to say override a step: `chooseShards` where ranks share what no factor
    describes, `becomeShard` where an attribute spells out a shape or place,
    `buildShards` where ranks must talk to each other.
  }];
  let methods = [
    InterfaceMethod<"The op's factors, of this very instance.",
      "::autohet::het::ShardingRule", "getShardingRule">,
    InterfaceMethod<[{
        How the op runs on ranks that hold its operands in these layouts.
        `wanted` is what its results' readers would like best. Nothing: every
        rank does all of it.
      }],
      "std::optional<::autohet::het::ShardLayouts>", "chooseShards",
      (ins "::llvm::ArrayRef<::autohet::het::Layout>":$operands,
           "::llvm::ArrayRef<::autohet::het::Layout>":$wanted),
      "", [{
        return ::autohet::het::chooseShardsByRule($_op, operands, wanted);
      }]>,
    InterfaceMethod<[{
        Called on a rank's copy of `whole`, which has the rank's operands and
        result types already: corrects the attributes that spell them out.
      }],
      "void", "becomeShard",
      (ins "::mlir::Operation *":$whole,
           "const ::autohet::het::ShardLayouts &":$layouts,
           "unsigned":$rank),
      "", "return;">,
    InterfaceMethod<[{
        Builds what each rank does, from the operands in the chosen layouts
        (entries are [operand][rank]); returns the results ([result][rank]).
      }],
      "::llvm::SmallVector<::autohet::het::RankValues>", "buildShards",
      (ins "::autohet::het::ShardBuilder &":$builder,
           "::llvm::ArrayRef<::autohet::het::RankValues>":$operands,
           "const ::autohet::het::ShardLayouts &":$layouts),
      "", [{
        return ::autohet::het::cloneShards($_op, builder, operands, layouts);
      }]>];
}

def Het_CostedInterface : OpInterface<"CostedOpInterface"> {
  let cppNamespace = "::autohet::het";
  let description = "The op knows what it costs: arithmetic and traffic.";
  let methods = [InterfaceMethod<"Cost of one execution of this very instance.",
    "::autohet::het::OpCost", "getCost">];
}

def Het_ElementwiseInterface : OpInterface<"ElementwiseOpInterface"> {
  let cppNamespace = "::autohet::het";
  let description = [{
    One result; each of its elements depends only on the elements at its own
    (broadcast) position. Fusion builds one loop from any DAG of these.
  }];
  let methods = [InterfaceMethod<[{
      Builds the scalar form with arith and math ops from scalars of the
      operands' element types.
    }],
    "::mlir::Value", "buildScalar",
    (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc,
         "::mlir::ValueRange":$scalars)>];
}

#endif
