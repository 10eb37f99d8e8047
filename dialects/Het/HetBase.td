//===- HetBase.td - the het dialect and its enums -----------*- tablegen -*-===//
//
// The first of the files that HetOps.td includes.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_HET_BASE
#define AUTOHET_HET_BASE

include "mlir/IR/OpBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "Het/HetTypes.td"

def Het_Dialect : Dialect {
  let name = "het";
  let cppNamespace = "::autohet::het";
  let summary = "The model: what a transformer computes, on one device";
  let description = [{
    Pure operations on statically shaped tensors at the granularity that
    planning and kernels want. Weights never live in the IR: `het.parameter`
    names one. Nothing here says where an operation runs.

    A training step is one function whose arguments carry their role
    (`het.role`: `input`, `labels`, `inverse_label_count`) and their name
    (`het.name`), whose results are the loss and the model's outputs, and whose
    gradients end in `het.gradient`.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let hasCanonicalizer = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
}

def Het_ComparePredicate : I32EnumAttr<"ComparePredicate", "how two elements are compared", [
    I32EnumAttrCase<"eq", 0>, I32EnumAttrCase<"ne", 1>, I32EnumAttrCase<"lt", 2>,
    I32EnumAttrCase<"le", 3>, I32EnumAttrCase<"gt", 4>, I32EnumAttrCase<"ge", 5>]> {
  let cppNamespace = "::autohet::het";
  let genSpecializedAttr = 0;
}
def Het_ComparePredicateAttr : EnumAttr<Het_Dialect, Het_ComparePredicate, "predicate"> {
  let assemblyFormat = "$value";
}

def Het_ReduceKind : I32EnumAttr<"ReduceKind", "how a dim is folded away", [
    I32EnumAttrCase<"sum", 0>, I32EnumAttrCase<"mean", 1>, I32EnumAttrCase<"max", 2>,
    I32EnumAttrCase<"min", 3>, I32EnumAttrCase<"prod", 4>]> {
  let cppNamespace = "::autohet::het";
  let genSpecializedAttr = 0;
}
def Het_ReduceKindAttr : EnumAttr<Het_Dialect, Het_ReduceKind, "reduce_kind"> {
  let assemblyFormat = "$value";
}

def Het_GeluForm : I32EnumAttr<"GeluForm", "which formula of gelu", [
    I32EnumAttrCase<"erf", 0>, I32EnumAttrCase<"tanh", 1>]> {
  let cppNamespace = "::autohet::het";
  let genSpecializedAttr = 0;
}
def Het_GeluFormAttr : EnumAttr<Het_Dialect, Het_GeluForm, "gelu_form"> {
  let assemblyFormat = "$value";
}

#endif
