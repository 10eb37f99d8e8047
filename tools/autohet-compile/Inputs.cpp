//===- Inputs.cpp - what feeds a model, and where its samples lie -----------===//

#include "Inputs.h"

#include "autohet/Dialect/Het/Het.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace autohet;

/// On an argument: where its values come from without a data file of its name.
static constexpr llvm::StringLiteral kKindAttr = "het.kind";

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
    model.setArgAttr(i, kKindAttr, StringAttr::get(context, kind));
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
      model.setArgAttr(argument.getArgNumber(), "het.vocabulary",
                       IntegerAttr::get(IntegerType::get(context, 64),
                                        op.getTable().getType().getDimSize(0)));
  });
  model.walk([&](het::CrossEntropyOp op) {
    if (auto argument = dyn_cast<BlockArgument>(op.getLabels()))
      model.setArgAttr(
          argument.getArgNumber(), "het.vocabulary",
          IntegerAttr::get(IntegerType::get(context, 64),
                           op.getLogits().getType().getShape().back()));
  });
  return success();
}

std::string autohet::formatInputs(func::FuncOp model) {
  std::string text = "inputs:";
  for (unsigned i = 0; i < model.getNumArguments(); ++i)
    if (StringAttr name = inputName(model, i))
      if (auto kind = model.getArgAttrOfType<StringAttr>(i, kKindAttr))
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
