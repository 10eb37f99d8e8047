//===- Inputs.cpp - what feeds a model, and where its samples lie -----------===//

#include "Inputs.h"

#include "autohet/Dialect/Het/Het.h"
#include "autohet/Dialect/Onnx/Onnx.h"

#include "autohet/runtime/program.h"
#include "data/TensorFile.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace autohet;

bool autohet::isValueFile(StringRef kind) {
  return kind.ends_with(".npy") || kind.ends_with(".pb");
}

static Type elementType(uint8_t dtype, MLIRContext *context) {
  auto integer = [&](unsigned width, bool isUnsigned = false) -> Type {
    return IntegerType::get(context, width,
                            isUnsigned ? IntegerType::Unsigned
                                       : IntegerType::Signless);
  };
  switch (dtype) {
  case AH_F32:
    return Float32Type::get(context);
  case AH_F64:
    return Float64Type::get(context);
  case AH_F16:
    return Float16Type::get(context);
  case AH_BF16:
    return BFloat16Type::get(context);
  case AH_I8:
    return integer(8);
  case AH_I16:
    return integer(16);
  case AH_I32:
    return integer(32);
  case AH_I64:
    return integer(64);
  case AH_U8:
    return integer(8, true);
  case AH_U16:
    return integer(16, true);
  case AH_U32:
    return integer(32, true);
  case AH_U64:
    return integer(64, true);
  default:
    return integer(1);
  }
}

/// The number of the argument called `name`; nothing where there is none.
static std::optional<unsigned> findArgument(func::FuncOp graph,
                                            StringRef name) {
  for (unsigned i = 0; i < graph.getNumArguments(); ++i) {
    auto known = graph.getArgAttrOfType<StringAttr>(i, onnx::kNameAttr);
    if (known && known.getValue() == name)
      return i;
  }
  return std::nullopt;
}

LogicalResult autohet::bindValues(func::FuncOp graph,
                                  ArrayRef<std::string> binds) {
  for (StringRef bind : binds) {
    auto [name, path] = bind.split('=');
    if (!isValueFile(path))
      continue;
    std::optional<unsigned> index = findArgument(graph, name);
    if (!index)
      return emitError(graph.getLoc())
             << "--bind " << bind << ": the model has no input '" << name
             << "'";
    runtime::TensorInfo info;
    std::vector<char> bytes;
    std::string problem = runtime::readTensorFile(path.str(), info, bytes);
    if (!problem.empty())
      return emitError(graph.getLoc()) << "--bind " << name << ": " << problem;
    auto type = RankedTensorType::get(
        info.shape, elementType(info.dtype, graph.getContext()));
    auto declared =
        dyn_cast<RankedTensorType>(graph.getArgument(*index).getType());
    if (!declared || failed(verifyCompatibleShape(declared, type)) ||
        declared.getElementType() != type.getElementType())
      return emitError(graph.getLoc())
             << "--bind " << bind << ": the file holds " << type
             << ", but the input is " << graph.getArgument(*index).getType();
    DenseElementsAttr value;
    if (type.getNumElements() == 0)
      value = DenseElementsAttr::get(type, ArrayRef<Attribute>());
    else if (type.getElementType().isInteger(1))
      value = DenseElementsAttr::get(
          type, llvm::map_to_vector(bytes, [](char c) { return c != 0; }));
    else
      value = DenseElementsAttr::getFromRawBuffer(type, bytes);
    graph.setArgAttr(*index, onnx::kValueAttr, value);
  }
  return success();
}

/// The name of an argument that data may be for.
static StringAttr inputName(func::FuncOp model, unsigned argument) {
  auto role = model.getArgAttrOfType<StringAttr>(argument, het::kRoleAttr);
  if (!role || role.getValue() == "inverse_label_count")
    return {};
  return model.getArgAttrOfType<StringAttr>(argument, het::kNameAttr);
}

LogicalResult autohet::bindInputs(func::FuncOp model,
                                  ArrayRef<std::string> binds) {
  MLIRContext *context = model.getContext();
  llvm::StringMap<std::string> bound;
  for (StringRef bind : binds) {
    auto [name, kind] = bind.split('=');
    if (!isValueFile(kind)) // those are no inputs any more
      bound[name] = kind.str();
  }
  SmallVector<StringRef> names;
  for (unsigned i = 0; i < model.getNumArguments(); ++i) {
    StringAttr name = inputName(model, i);
    if (!name)
      continue;
    names.push_back(name);
    auto role = model.getArgAttrOfType<StringAttr>(i, het::kRoleAttr);
    StringRef kind =
        llvm::StringSwitch<StringRef>(name.getValue())
            .Cases({"input_ids", "ids", "idx", "tokens", "input"}, "tokens")
            .Case("labels", "labels")
            .Case("attention_mask", "ones")
            .Case("token_type_ids", "zeros")
            .Case("position_ids", "arange")
            .Default("file");
    if (role.getValue() == "labels")
      kind = "labels";
    if (auto it = bound.find(name.getValue()); it != bound.end())
      kind = it->second;
    model.setArgAttr(i, het::kKindAttr, StringAttr::get(context, kind));
  }
  for (const auto &[name, kind] : bound)
    if (!llvm::is_contained(names, name))
      return emitError(model.getLoc())
             << "--bind " << name << "=" << kind
             << ": the model has no such input; it has "
             << llvm::join(names, ", ");
  // Ids are below the table that they index, labels below the classes.
  model.walk([&](het::EmbeddingOp op) {
    if (auto argument = dyn_cast<BlockArgument>(op.getIds()))
      model.setArgAttr(argument.getArgNumber(), het::kVocabularyAttr,
                       IntegerAttr::get(IntegerType::get(context, 64),
                                        op.getTable().getType().getDimSize(0)));
  });
  model.walk([&](het::CrossEntropyOp op) {
    if (auto argument = dyn_cast<BlockArgument>(op.getLabels()))
      model.setArgAttr(
          argument.getArgNumber(), het::kVocabularyAttr,
          IntegerAttr::get(IntegerType::get(context, 64),
                           op.getLogits().getType().getShape().back()));
  });
  return success();
}

std::string autohet::formatInputs(func::FuncOp model) {
  std::string text = "inputs:";
  for (unsigned i = 0; i < model.getNumArguments(); ++i)
    if (StringAttr name = inputName(model, i))
      if (auto kind = model.getArgAttrOfType<StringAttr>(i, het::kKindAttr))
        text += (" " + name.getValue() + "=" + kind.getValue()).str();
  return text + "\n";
}

void autohet::copyBatchDims(func::FuncOp from, func::FuncOp to) {
  llvm::StringMap<Attribute> dims;
  for (unsigned i = 0; i < from.getNumResults(); ++i)
    if (auto name = from.getResultAttrOfType<StringAttr>(i, het::kNameAttr))
      dims[name] = from.getResultAttr(i, het::kBatchDimAttr);
  for (unsigned i = 0; i < to.getNumResults(); ++i)
    if (auto name = to.getResultAttrOfType<StringAttr>(i, het::kNameAttr))
      if (Attribute dim = dims.lookup(name))
        to.setResultAttr(i, het::kBatchDimAttr, dim);
}
