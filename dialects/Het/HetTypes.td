//===- HetTypes.td - the model's tensors --------------------*- tablegen -*-===//
//
// What ops of het and dist work on. The bounds are here, so that no pass has to
// ask whether a shape is known or a size overflows.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_HET_TYPES
#define AUTOHET_HET_TYPES

include "mlir/IR/CommonTypeConstraints.td"

def Het_Float : AnyTypeOf<[F16, BF16, F32, F64], "f16, bf16, f32 or f64">;
// Numbers as files store them; only casts and what moves elements know them.
def Het_SmallFloat : AnyTypeOf<[F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F4E2M1FN]>;
def Het_Int : AnyTypeOf<[I1, I<2>, I<4>, I8, I16, I32, I64, UI<2>, UI<4>, UI8, UI16, UI32, UI64],
    "1- to 64-bit integer">;
def Het_Element : AnyTypeOf<[Het_Float, Het_SmallFloat, Het_Int], "number">;

class Het_TensorOf<list<Type> elements>
    : RankedTensorOf<elements, [
        CPred<"::autohet::het::hasKnownSize(::llvm::cast<::mlir::RankedTensorType>($_self))">],
      "static tensor (2^40 elements at most)">;

def Het_Tensor : Het_TensorOf<[Het_Element]>;
def Het_FloatTensor : Het_TensorOf<[Het_Float]>;
def Het_IntTensor : Het_TensorOf<[Het_Int]>;
def Het_BoolTensor : Het_TensorOf<[I1]>;
def Het_ScalarTensor : 0DTensorOf<[F32]>;

#endif
