//===- OnnxAliases.cpp - other names of tied parameters -------------------===//
//
// A tied parameter has several names in PyTorch, and a file has one constant
// for them, named after one of its modules. The others are the names of the
// modules that use it, as far as these show that they name what they use in
// PyTorch's way: an attribute of any name can be multiplied by, and would be
// called `weight` here.
//
//===----------------------------------------------------------------------===//

#include "OnnxParameters.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace autohet;
using onnx::InitializerOp;
using onnx::NodeOp;

static StringRef moduleOf(NodeOp node) { return node.getScope().value_or(""); }

static bool isProduct(NodeOp node) {
  return node.getOpType() == "MatMul" || node.getOpType() == "Gemm";
}

/// The modules that use a constant as an Embedding or a Linear uses its weight;
/// "" for any other use.
static void collectModules(Value value, SmallVectorImpl<StringRef> &modules) {
  for (OpOperand *use : usesOf(value)) {
    auto node = dyn_cast<NodeOp>(use->getOwner());
    unsigned index = use->getOperandNumber();
    if (node && node.getOpType() == "Transpose")
      collectModules(node->getResult(0), modules);
    else if (node && ((node.getOpType() == "Gather" && index == 0) ||
                      (isProduct(node) && index == 1)))
      modules.push_back(moduleOf(node));
    else
      modules.push_back("");
  }
}

/// The constant that a product's right operand is, or is the transpose of.
static InitializerOp weightOf(NodeOp product) {
  // What its op asks of a node's operands is not checked yet.
  if (product.getInputs().size() < 2)
    return {};
  Value weight = product.getInputs()[1];
  if (auto node = weight.getDefiningOp<NodeOp>())
    if (node.getOpType() == "Transpose" && !node.getInputs().empty())
      weight = node.getInputs()[0];
  return weight.getDefiningOp<InitializerOp>();
}

/// The product that a constant is added to as a bias, in one module.
static NodeOp biasedProduct(InitializerOp constant) {
  if (!constant->hasOneUse())
    return {};
  OpOperand &use = *constant->use_begin();
  auto node = dyn_cast<NodeOp>(use.getOwner());
  if (!node || moduleOf(node).empty())
    return {};
  if (node.getOpType() == "Gemm" && use.getOperandNumber() == 2)
    return node;
  if (node.getOpType() != "Add" || node.getInputs().size() != 2)
    return {};
  Value other = node.getInputs()[1 - use.getOperandNumber()];
  auto product = other.getDefiningOp<NodeOp>();
  if (product && isProduct(product) && moduleOf(product) == moduleOf(node))
    return product;
  return {};
}

InitializerOp OnnxParameters::originalOf(InitializerOp constant) {
  while (InitializerOp original = parameters[constant].original)
    constant = original;
  return constant;
}

/// What is something else's name is no alias; a tied copy is nothing else.
void OnnxParameters::addAlias(Parameter &parameter, const std::string &name,
                              llvm::StringSet<> &taken) {
  if (taken.insert(name).second)
    parameter.aliases.push_back(name);
}

LogicalResult OnnxParameters::nameAliases(func::FuncOp graph) {
  llvm::StringSet<> taken;
  for (auto constant : graph.getOps<InitializerOp>()) {
    auto found = parameters.find(constant);
    if (found != parameters.end() && found->second.original)
      continue;
    taken.insert(constant.getName());
    if (found != parameters.end())
      taken.insert(found->second.name);
  }
  auto listed = graph->getAttrOfType<DictionaryAttr>(onnx::kAliasesAttr);
  if (listed)
    for (NamedAttribute entry : listed) {
      auto name = dyn_cast<StringAttr>(entry.getValue());
      if (!name)
        return emitError(graph.getLoc())
               << onnx::kAliasesAttr << ": " << entry.getName()
               << " is another name of " << entry.getValue()
               << ", wanted a constant's name";
      // What the graph does not use is not in the file.
      if (InitializerOp constant = find(name))
        addAlias(parameters[originalOf(constant)],
                 entry.getName().getValue().str(), taken);
    }
  if (!listed)
    nameByModules(graph, taken);
  for (auto &[op, copy] : parameters) {
    if (!copy.original || isCounterName(copy.name))
      continue;
    Parameter &parameter = parameters[originalOf(copy.original)];
    // A name belongs to PyTorch's layout; this one's would be the transpose.
    if (copy.copyIsTransposed == (copy.transposed != parameter.transposed))
      addAlias(parameter, copy.name, taken);
  }
  if (!listed)
    nameBiases(taken);
  return success();
}

void OnnxParameters::nameByModules(func::FuncOp graph,
                                   llvm::StringSet<> &taken) {
  // An Embedding or a Linear holds no other module.
  llvm::StringSet<> parents;
  for (auto node : graph.getOps<NodeOp>())
    for (StringRef path = moduleOf(node); path.contains('.');) {
      path = path.rsplit('.').first;
      parents.insert(path);
    }
  llvm::MapVector<Operation *, SmallVector<StringRef>> modules;
  for (auto &[op, parameter] : parameters)
    collectModules(cast<InitializerOp>(op),
                   modules[originalOf(cast<InitializerOp>(op))]);
  for (auto &[op, users] : modules) {
    Parameter &parameter = parameters[op];
    SmallVector<std::string> names;
    for (StringRef module : users)
      if (!module.empty() && !parents.contains(module))
        names.push_back((module + ".weight").str());
    // One of them gave the constant its name: so the others are names, too.
    if (users.size() > 1 && llvm::is_contained(names, parameter.name))
      for (const std::string &name : names)
        if (nameOfFirstCall(name) != parameter.name)
          addAlias(parameter, name, taken);
  }
}

/// The bias of a Linear whose weight is tied may be tied as well.
void OnnxParameters::nameBiases(llvm::StringSet<> &taken) {
  for (auto &[op, parameter] : parameters) {
    NodeOp product = biasedProduct(cast<InitializerOp>(op));
    InitializerOp weight = product ? weightOf(product) : InitializerOp();
    if (!weight || !parameters.contains(weight) || parameter.original)
      continue;
    const Parameter &tied = parameters[originalOf(weight)];
    std::string module = moduleOf(product).str();
    if (!tied.aliases.empty() &&
        (tied.name == module + ".weight" ||
         llvm::is_contained(tied.aliases, module + ".weight")))
      addAlias(parameter, module + ".bias", taken);
  }
}
