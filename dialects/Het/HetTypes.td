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
def Het_Int : AnyTypeOf<[I1, I8, I16, I32, I64, UI8], "i1, i8, i16, i32, i64 or ui8">;
def Het_Element : AnyTypeOf<[Het_Float, Het_Int], "f16 to f64 or i1 to i64">;

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
