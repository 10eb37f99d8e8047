//===- OnnxToHet.h - giving nodes their meaning ----------------*- C++ -*-===//
//
// Private to `onnx-to-het`. A handler turns one node into het ops; handlers
// live in files by family and are found by the node's op type. Adding an
// operator is adding a handler to its family's table, and its attributes to
// OnnxFields.inc by scripts/onnx-fields.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PASSES_MODEL_ONNXTOHET_H
#define AUTOHET_PASSES_MODEL_ONNXTOHET_H

#include "OnnxParameters.h"
#include "autohet/Dialect/Het/Het.h"
#include "autohet/Dialect/Onnx/Onnx.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"

namespace autohet {

class OnnxNode;

/// The state of one conversion: what each value of the graph has become.
class OnnxConversion {
public:
  OnnxConversion(mlir::OpBuilder &builder, OnnxParameters &parameters)
      : builder(builder), parameters(parameters) {}

  /// The het value of a graph value; null for `onnx.none`. Each call for a
  /// parameter is one use of it, unless `asNumbers` asks for its elements.
  mlir::Value lookup(mlir::Value value, mlir::Location loc,
                     bool asNumbers = false);

  /// Shapes, and constants that were computed from them. Floats that meet them
  /// are numbers of that arithmetic, not weights.
  bool isFromShape(mlir::Value value) const {
    return fromShape.contains(value);
  }
  void setFromShape(mlir::Value value) { fromShape.insert(value); }

  void bind(mlir::Value value, mlir::Value converted) {
    values[value] = converted;
  }

  /// Converts the nodes of a subgraph, whose arguments are `arguments`, and
  /// appends its outputs.
  mlir::LogicalResult convertBody(mlir::Region &body,
                                  llvm::SmallVectorImpl<mlir::Value> &outputs,
                                  llvm::ArrayRef<mlir::Value> arguments = {});

  mlir::OpBuilder &builder;
  const llvm::StringMap<mlir::LogicalResult (*)(
      OnnxNode &, llvm::SmallVectorImpl<mlir::Value> &)> *handlers = nullptr;
  /// Nothing is trained: any element type, no gradients, dropout keeps all.
  bool inference = false;
  /// The id of the next dropout: the order of nodes fixes it, before any plan.
  int64_t nextDropoutId = 0;
  /// Nodes of subgraphs that were converted, each as often as it was.
  int64_t nodesOfBodies = 0;

  /// That a value has the elements that the file declares. Other shapes are
  /// counted, for one warning.
  mlir::LogicalResult checkDeclared(const llvm::Twine &what,
                                    mlir::Attribute declared, mlir::Value value,
                                    mlir::Location loc, bool isRepeated);
  void warnOfShapes();

  /// Converts one node, and binds its results.
  mlir::LogicalResult convertNode(onnx::NodeOp node);

private:
  OnnxParameters &parameters;
  llvm::DenseMap<mlir::Value, mlir::Value> values;
  llvm::DenseSet<mlir::Value> fromShape;
  std::optional<mlir::InFlightDiagnostic> otherShape; // the first
  unsigned otherShapes = 0;
};

/// One node under conversion, with what handlers ask of it. Everything that
/// returns a FailureOr has said what is wrong.
class OnnxNode {
public:
  OnnxNode(onnx::NodeOp op, OnnxConversion &conversion);

  llvm::StringRef opType() const {
    return const_cast<onnx::NodeOp &>(op).getOpType();
  }
  bool inference() const { return conversion.inference; }
  int64_t opset() const { return const_cast<onnx::NodeOp &>(op).getOpset(); }
  mlir::Location loc() const { return location; }
  /// An error that begins with the node's name and op type.
  mlir::InFlightDiagnostic error() const;

  unsigned numOperands() const { return operands.size(); }
  bool has(unsigned index) const {
    return index < operands.size() && operands[index];
  }
  mlir::Value operand(unsigned index) const { return operands[index]; }
  /// The subgraph that is the field `name`; null where there is none.
  mlir::Region *body(llvm::StringRef name) const;
  mlir::RankedTensorType type(unsigned index) const;
  llvm::ArrayRef<int64_t> shape(unsigned index) const {
    return type(index).getShape();
  }
  int64_t rank(unsigned index) const { return type(index).getRank(); }
  /// Whether there are the operands that the op cannot do without.
  mlir::LogicalResult needOperands(unsigned count) const;
  mlir::LogicalResult needFloats(unsigned index) const;

  unsigned numResults() const {
    return const_cast<onnx::NodeOp &>(op).getNumResults();
  }
  bool isUsed(unsigned result) const;

  /// Computes in float32 what is all of one half type: `round` undoes it for
  /// the results.
  void widenHalves();
  void round(llvm::MutableArrayRef<mlir::Value> results) const;

  bool hasField(llvm::StringRef name) const { return fields.contains(name); }
  int64_t intField(llvm::StringRef name, int64_t otherwise) const;
  double floatField(llvm::StringRef name, double otherwise) const;
  llvm::StringRef stringField(llvm::StringRef name,
                              llvm::StringRef otherwise) const;
  std::optional<llvm::SmallVector<int64_t>>
  intsField(llvm::StringRef name) const;
  template <typename AttrT>
  AttrT fieldOfType(llvm::StringRef name) const {
    return fields.getAs<AttrT>(name);
  }

  /// The elements of an operand, which must have become a constant by now.
  mlir::FailureOr<llvm::SmallVector<int64_t>>
  constantInts(unsigned index, llvm::StringRef what) const;
  mlir::FailureOr<double> constantFloat(unsigned index,
                                        llvm::StringRef what) const;
  /// The error that an operand is not one, and how it could become one.
  mlir::LogicalResult notConstant(unsigned index, llvm::StringRef what) const;
  /// Old operator sets have a field where new ones have an operand.
  mlir::FailureOr<std::optional<llvm::SmallVector<int64_t>>>
  fieldOrOperand(llvm::StringRef field, unsigned index) const;
  /// An axis in [-rank, rank), counted from the front.
  mlir::FailureOr<int64_t> normalizeAxis(int64_t axis, int64_t rank) const;
  mlir::FailureOr<llvm::SmallVector<int64_t>>
  normalizeAxes(llvm::ArrayRef<int64_t> axes, int64_t rank) const;

  //===-- Building --------------------------------------------------------===//

  mlir::OpBuilder &builder() const { return conversion.builder; }
  OnnxConversion &state() const { return conversion; }

  /// Creates an op, or what it folds to.
  template <typename OpT, typename... Args>
  mlir::Value create(Args &&...args) const {
    return builder().createOrFold<OpT>(location, std::forward<Args>(args)...);
  }
  mlir::Value reshape(mlir::Value value, llvm::ArrayRef<int64_t> shape) const;
  mlir::Value transpose(mlir::Value value,
                        llvm::ArrayRef<int64_t> permutation) const;
  mlir::Value broadcast(mlir::Value value, llvm::ArrayRef<int64_t> shape) const;
  mlir::Value constantInts(llvm::ArrayRef<int64_t> values) const;
  /// A scalar of a tensor's element type.
  mlir::Value scalarLike(mlir::Value value, double number) const;
  /// Fails where the shapes do not broadcast, or the element types differ.
  mlir::LogicalResult needBroadcast(mlir::Value lhs, mlir::Value rhs) const;

private:
  onnx::NodeOp op;
  OnnxConversion &conversion;
  mlir::Location location;
  mlir::DictionaryAttr fields;
  llvm::SmallVector<mlir::Value> operands;
  mlir::Type half; // what `widenHalves` widened, or null
};

/// Converts a node: appends one value for each result (null where unused).
using OnnxHandler = mlir::LogicalResult (*)(
    OnnxNode &node, llvm::SmallVectorImpl<mlir::Value> &results);
using OnnxHandlers = llvm::StringMap<OnnxHandler>;

void addElementwiseHandlers(OnnxHandlers &handlers); // OnnxElementwise.cpp
void addActivationHandlers(OnnxHandlers &handlers);  // OnnxActivations.cpp
void addLossHandlers(OnnxHandlers &handlers);        // OnnxLosses.cpp
void addOrderHandlers(OnnxHandlers &handlers);       // OnnxOrder.cpp
void addScatterHandlers(OnnxHandlers &handlers);     // OnnxScatter.cpp
void addControlHandlers(OnnxHandlers &handlers);     // OnnxControl.cpp
void addConvHandlers(OnnxHandlers &handlers);        // OnnxConv.cpp
void addFunctionHandlers(OnnxHandlers &handlers);    // OnnxFunctions.cpp
void addEinsumHandlers(OnnxHandlers &handlers);      // OnnxEinsum.cpp
void addContribHandlers(OnnxHandlers &handlers);     // OnnxContrib.cpp
// OnnxContribAttention.cpp
void addContribAttentionHandlers(OnnxHandlers &handlers);
void addPadHandlers(OnnxHandlers &handlers);       // OnnxPad.cpp
void addReductionHandlers(OnnxHandlers &handlers); // OnnxReductions.cpp
void addUpdateHandlers(OnnxHandlers &handlers);    // OnnxUpdates.cpp
void addShapeHandlers(OnnxHandlers &handlers);     // OnnxShapes.cpp
void addIndexHandlers(OnnxHandlers &handlers);     // OnnxIndexing.cpp
void addProductHandlers(OnnxHandlers &handlers);   // OnnxProducts.cpp
void addNormHandlers(OnnxHandlers &handlers);      // OnnxNorms.cpp
void addAttentionHandlers(OnnxHandlers &handlers); // OnnxAttention.cpp

/// "node 'name' (OpType)", as errors begin. In OnnxNode.cpp.
std::string describeNode(onnx::NodeOp node);
/// "Add", or "com.microsoft::FastGelu" of another domain than ai.onnx. In
/// OnnxUnsupported.cpp.
std::string qualifiedName(onnx::NodeOp node);
/// That each node has a handler, or one error that lists all that have none.
mlir::LogicalResult findUnsupported(mlir::func::FuncOp graph,
                                    const OnnxHandlers &handlers);

/// The product that ONNX MatMul gives, for handlers of nodes that are more than
/// that. In OnnxProducts.cpp.
mlir::FailureOr<mlir::Value> matrixProduct(OnnxNode &node, mlir::Value lhs,
                                           mlir::Value rhs);

/// An attribute that a node has, though not in its opset, and in which it would
/// be: "from opset 12 on"; empty where there is none. In OnnxFields.cpp.
std::pair<llvm::StringRef, std::string> fieldOfOtherOpset(onnx::NodeOp node);
/// That each attribute of each node is one of its operator's, of the right
/// type, and that those are there that must be.
mlir::LogicalResult verifyFields(mlir::func::FuncOp graph);

/// That each node of a graph exists in the opset that the file declares, in the
/// form that it has there.
mlir::LogicalResult verifyOpsets(mlir::func::FuncOp graph); // OnnxVersions.cpp

inline mlir::RankedTensorType tensorType(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}
inline bool isFloatTensor(mlir::Value value) {
  return llvm::isa<mlir::FloatType>(tensorType(value).getElementType());
}
/// The MLIR type of an ONNX element type number; null where there is none.
mlir::Type onnxElementType(int64_t number, mlir::MLIRContext *context);

} // namespace autohet

#endif
