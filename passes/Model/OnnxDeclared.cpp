//===- OnnxDeclared.cpp - types that a file declares ----------------------===//
//
// Nothing is computed from them: what nodes mean gives each value its type. A
// file that declares other elements is refused: its writer meant another model.
// Shapes are declared wrongly in files that people have and that onnxruntime
// runs (sizes of the example that an exporter left behind where dims are free,
// files written by hand): those are warned of, once for all values.
//
//===----------------------------------------------------------------------===//

#include "OnnxToHet.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace autohet;

LogicalResult OnnxConversion::checkDeclared(const Twine &what,
                                            Attribute declared, Value value,
                                            Location loc, bool isRepeated) {
  RankedTensorType found = tensorType(value);
  auto differs = [&](InFlightDiagnostic diagnostic, auto said) {
    diagnostic << what << " is declared as " << said << ", but is " << found;
    return diagnostic;
  };
  if (auto text = dyn_cast_or_null<StringAttr>(declared))
    return differs(emitError(loc), text.getValue());
  auto attribute = dyn_cast_or_null<TypeAttr>(declared);
  auto type =
      attribute ? dyn_cast<TensorType>(attribute.getValue()) : TensorType();
  if (!type)
    return success();
  if (type.getElementType() != found.getElementType())
    return differs(emitError(loc), type);
  // A loop's body is one in the file, and many here.
  if (isRepeated || succeeded(verifyCompatibleShape(type, found)))
    return success();
  if (!otherShapes++)
    otherShape.emplace(differs(emitWarning(loc), type));
  return success();
}

void OnnxConversion::warnOfShapes() {
  if (!otherShape)
    return;
  if (otherShapes > 1)
    *otherShape << " (and " << otherShapes - 1 << " other values likewise)";
  *otherShape << ": shapes are computed, what a file declares decides nothing";
  otherShape.reset();
}
