//===- ReadNodes.cpp - nodes, subgraphs and functions of a file -----------===//
//
// A node that calls a function of the model becomes the nodes of its body, with
// the call's attributes where the body refers to them. Subgraphs become
// regions: whoever gives nodes their meaning knows which of them runs.
//
//===----------------------------------------------------------------------===//

#include "Reader.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"
#include <map>

using namespace mlir;
using namespace autohet::onnx;
using ::onnx::AttributeProto;
using AttributeType = AttributeProto::AttributeType;
using ::onnx::FunctionProto;
using ::onnx::GraphProto;
using ::onnx::NodeProto;

/// A file decides how deep its functions and subgraphs nest, and how often
/// bodies are repeated.
static constexpr unsigned kMostDepth = 64;
static constexpr uint64_t kMostNodes = 1 << 20;

namespace {

/// The key under which dynamo's exporter names the modules that a node is in.
constexpr llvm::StringLiteral kNameScopes = "pkg.torch.onnx.name_scopes";

std::string describe(const NodeProto &node) {
  std::string name = node.name();
  if (name.empty() && node.output_size())
    name = node.output(0);
  return "node '" + name + "' (" + node.op_type() + ")";
}

/// The PyTorch module of a TorchScript node is in its name:
/// /h.0/attn/c_attn/MatMul is of h.0.attn.c_attn. Nodes of the model itself
/// have none.
std::string moduleOfName(StringRef name) {
  if (!name.consume_front("/") || !name.contains('/'))
    return "";
  SmallVector<StringRef> modules, path;
  name.rsplit('/').first.split(modules, '/');
  for (StringRef module : modules) {
    // What a list holds is called after the list: `layers.0` in `layers`, and
    // `layers.0.1` in `layers.0`.
    StringRef inList = module;
    if (!path.empty() && inList.consume_front(path.back()) &&
        inList.starts_with("."))
      path.back() = module;
    else
      path.push_back(module);
  }
  return llvm::join(path, ".");
}

/// The module's path: the last but one entry of a Python list of strings, such
/// as ['', 'model', 'model.layers.0', 'linear_1'].
std::string moduleOfScopes(StringRef list) {
  SmallVector<StringRef> entries;
  while (!list.empty()) {
    size_t begin = list.find_first_of("'\"");
    if (begin == StringRef::npos)
      break;
    size_t end = list.find(list[begin], begin + 1);
    if (end == StringRef::npos)
      break;
    entries.push_back(list.slice(begin + 1, end));
    list = list.drop_front(end + 1);
  }
  return entries.size() < 2 ? "" : entries[entries.size() - 2].str();
}

/// Where a tensor of attribute `index` lies; nowhere inside subgraphs and
/// functions, whose tensors are read at once.
TensorBytes bytesOf(ArrayRef<TensorBytes> bytes, int index) {
  return size_t(index) < bytes.size() ? bytes[index] : TensorBytes();
}

} // namespace

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

/// Optimizers leave files behind whose nodes are not sorted. Sorted ones keep
/// their order.
LogicalResult Reader::sortNodes() {
  const GraphProto &graph = model.graph();
  llvm::StringMap<int> producers;
  for (int i = 0; i < graph.node_size(); ++i)
    for (const std::string &output : graph.node(i).output())
      if (!output.empty()) // a result that is left out, not one called ""
        producers.try_emplace(output, i);
  enum State : char { New, Open, Done };
  std::vector<State> states(graph.node_size(), New);
  // A depth-first search with a stack of its own: a file decides its depth.
  SmallVector<int> stack;
  for (int root = 0; root < graph.node_size(); ++root) {
    stack.push_back(root);
    while (!stack.empty()) {
      int node = stack.back();
      if (states[node] != New) {
        stack.pop_back();
        if (states[node] == Open)
          order.push_back(node);
        states[node] = Done;
        continue;
      }
      states[node] = Open;
      for (const std::string &input : llvm::reverse(graph.node(node).input())) {
        auto producer = producers.find(input);
        if (producer == producers.end() || states[producer->second] == Done)
          continue;
        if (states[producer->second] == Open)
          return emitError(fileLoc) << describe(graph.node(node)) << " uses '"
                                    << input << "', which depends on it";
        stack.push_back(producer->second);
      }
    }
  }
  return success();
}

/// The types of what an attribute holds: one, or none where a writer leaves out
/// a value that is 0 or empty.
static SmallVector<AttributeType> heldTypes(const AttributeProto &attribute) {
  const std::pair<bool, AttributeType> held[] = {
      {attribute.has_f(), AttributeProto::FLOAT},
      {attribute.has_i(), AttributeProto::INT},
      {attribute.has_s(), AttributeProto::STRING},
      {attribute.has_t(), AttributeProto::TENSOR},
      {attribute.has_g(), AttributeProto::GRAPH},
      {attribute.has_sparse_tensor(), AttributeProto::SPARSE_TENSOR},
      {attribute.has_tp(), AttributeProto::TYPE_PROTO},
      {attribute.floats_size() > 0, AttributeProto::FLOATS},
      {attribute.ints_size() > 0, AttributeProto::INTS},
      {attribute.strings_size() > 0, AttributeProto::STRINGS},
      {attribute.tensors_size() > 0, AttributeProto::TENSORS},
      {attribute.graphs_size() > 0, AttributeProto::GRAPHS},
      {attribute.sparse_tensors_size() > 0, AttributeProto::SPARSE_TENSORS},
      {attribute.type_protos_size() > 0, AttributeProto::TYPE_PROTOS}};
  SmallVector<AttributeType> types;
  for (const auto &[isHeld, type] : held)
    if (isHeld)
      types.push_back(type);
  return types;
}

/// Nobody can say which of two things an attribute means that says one and
/// holds another.
LogicalResult Reader::checkAttribute(const AttributeProto &attribute,
                                     const std::string &what, Location loc) {
  if (attribute.type() == AttributeProto::UNDEFINED)
    return emitError(loc) << what
                          << " is of no known type, wanted FLOAT, INT, STRING, "
                             "TENSOR, GRAPH, or a list of these";
  for (AttributeType held : heldTypes(attribute))
    if (held != attribute.type())
      return emitError(loc)
             << what << " says that it is "
             << AttributeProto::AttributeType_Name(attribute.type())
             << ", but holds " << AttributeProto::AttributeType_Name(held);
  // No writer can leave these out: there is no empty one.
  if ((attribute.type() == AttributeProto::TENSOR && !attribute.has_t()) ||
      (attribute.type() == AttributeProto::GRAPH && !attribute.has_g()))
    return emitError(loc) << what << " says that it is "
                          << AttributeProto::AttributeType_Name(
                                 attribute.type())
                          << ", but holds nothing";
  return success();
}

FailureOr<Attribute> Reader::readAttribute(const AttributeProto &attribute,
                                           const TensorBytes &bytes,
                                           const std::string &what,
                                           Location loc) {
  switch (attribute.type()) {
  case AttributeProto::FLOAT:
    return Attribute(builder.getF32FloatAttr(attribute.f()));
  case AttributeProto::INT:
    return Attribute(builder.getI64IntegerAttr(attribute.i()));
  case AttributeProto::STRING:
    return Attribute(builder.getStringAttr(attribute.s()));
  case AttributeProto::FLOATS:
    return Attribute(builder.getDenseF32ArrayAttr(SmallVector<float>(
        attribute.floats().begin(), attribute.floats().end())));
  case AttributeProto::INTS:
    return Attribute(builder.getDenseI64ArrayAttr(SmallVector<int64_t>(
        attribute.ints().begin(), attribute.ints().end())));
  case AttributeProto::STRINGS: {
    SmallVector<Attribute> strings;
    for (const std::string &string : attribute.strings())
      strings.push_back(builder.getStringAttr(string));
    return Attribute(builder.getArrayAttr(strings));
  }
  case AttributeProto::TENSOR: {
    auto constant = tensors.read(attribute.t(), bytes, what, loc);
    if (failed(constant))
      return failure();
    if (constant->value)
      return Attribute(constant->value);
    emitError(loc) << what << " is a tensor of "
                   << constant->type.getNumElements()
                   << " floats, which only a Constant may hold";
    return failure();
  }
  default:
    // Ops that have something else are reported, with all others that are
    // unknown, by the pass that gives ops their meaning. Subgraphs are regions.
    return Attribute(builder.getStringAttr(
        "<" + AttributeProto::AttributeType_Name(attribute.type()) + ">"));
  }
}

/// `Constant` is how TorchScript's exporter writes what others call
/// initializers.
LogicalResult Reader::readConstantNode(const NodeProto &node,
                                       ArrayRef<TensorBytes> bytes,
                                       Location loc) {
  std::string what = describe(node);
  if (node.attribute_size() != 1 || node.output_size() != 1)
    return emitError(loc) << what << " needs one attribute and one output";
  const AttributeProto *resolved = resolve(node.attribute(0));
  if (!resolved)
    return emitError(loc) << what << " has the value of attribute '"
                          << node.attribute(0).ref_attr_name()
                          << "', which its function is not given";
  const AttributeProto &attribute = *resolved;
  StringRef kind = node.attribute(0).name();
  auto wanted = llvm::StringSwitch<AttributeType>(kind)
                    .Case("value", AttributeProto::TENSOR)
                    .Case("value_float", AttributeProto::FLOAT)
                    .Case("value_floats", AttributeProto::FLOATS)
                    .Case("value_int", AttributeProto::INT)
                    .Case("value_ints", AttributeProto::INTS)
                    .Default(AttributeProto::UNDEFINED);
  if (wanted == AttributeProto::UNDEFINED)
    return emitError(loc) << what << " has attribute '" << kind
                          << "', which is not supported";
  std::string which = what + ": attribute '" + kind.str() + "'";
  if (failed(checkAttribute(attribute, which, loc)))
    return failure();
  if (attribute.type() != wanted)
    return emitError(loc) << which << " is "
                          << AttributeProto::AttributeType_Name(
                                 attribute.type())
                          << ", wanted "
                          << AttributeProto::AttributeType_Name(wanted);
  Constant constant;
  if (kind == "value") {
    auto read = tensors.read(attribute.t(), bytesOf(bytes, 0), what, loc);
    if (failed(read))
      return failure();
    constant = *read;
  } else {
    auto ranked = [&](size_t size, Type element) {
      return RankedTensorType::get({int64_t(size)}, element);
    };
    Type f32 = builder.getF32Type(), i64 = builder.getI64Type();
    if (kind == "value_float")
      constant.value =
          DenseElementsAttr::get(RankedTensorType::get({}, f32), attribute.f());
    else if (kind == "value_int")
      constant.value =
          DenseElementsAttr::get(RankedTensorType::get({}, i64), attribute.i());
    else if (kind == "value_ints")
      constant.value = DenseElementsAttr::get(
          ranked(attribute.ints_size(), i64),
          ArrayRef<int64_t>(attribute.ints().data(), attribute.ints_size()));
    else
      constant.value = DenseElementsAttr::get(
          ranked(attribute.floats_size(), f32),
          ArrayRef<float>(attribute.floats().data(), attribute.floats_size()));
    constant.type = cast<RankedTensorType>(constant.value.getType());
  }
  if (scope->values.count(node.output(0)))
    return emitError(loc) << "'" << path << "' defines '" << node.output(0)
                          << "' twice";
  createInitializer(node.output(0), constant, loc);
  return success();
}

LogicalResult Reader::readNode(const NodeProto &node,
                               ArrayRef<TensorBytes> bytes) {
  std::string what = describe(node);
  StringRef name = node.name();
  if (name.empty() && node.output_size())
    name = node.output(0);
  Location loc = NameLoc::get(builder.getStringAttr(name), fileLoc);
  StringRef domain = canonicalDomain(node.domain());
  const FunctionProto *function = findFunction(node);
  auto opset = opsets.find(domain);
  if (opset == opsets.end() && domain == "com.microsoft") {
    // There is one version; onnxruntime, whose optimiser writes such files,
    // reads them.
    emitWarning(fileLoc) << "'" << path << "' imports no version of domain '"
                         << domain << "': 1 is taken, the only one";
    opset = opsets.try_emplace(domain, 1).first;
  }
  if (opset == opsets.end() && !function)
    return emitError(loc) << what << " is of domain '" << domain
                          << "', of which the file imports no version";
  if (++nodeCount > kMostNodes)
    return emitError(loc) << "the model's functions make more than "
                          << kMostNodes << " nodes";
  if (domain.empty() && node.op_type() == "Constant")
    return readConstantNode(node, bytes, loc);

  SmallVector<Value> inputs;
  for (const std::string &input : node.input()) {
    if (input.empty()) {
      inputs.push_back(NoneOp::create(builder, loc, builder.getNoneType()));
      continue;
    }
    Value value = scope->lookup(input);
    if (!value)
      return emitError(loc)
             << what << " uses '" << input << "', which nothing defines";
    inputs.push_back(value);
  }
  if (function)
    return readCall(node, *function, inputs, loc);
  SmallVector<NamedAttribute> fields;
  std::map<std::string, const GraphProto *>
      subgraphs; // in the order of regions
  llvm::StringSet<> seen;
  for (int i = 0; i < node.attribute_size(); ++i) {
    const AttributeProto &named = node.attribute(i);
    if (named.name().empty() || !seen.insert(named.name()).second)
      return emitError(loc)
             << what << " has an attribute without a name of its own";
    const AttributeProto *attribute = resolve(named);
    if (!attribute)
      continue; // the call leaves it out
    std::string which = what + ": attribute '" + named.name() + "'";
    if (failed(checkAttribute(*attribute, which, loc)))
      return failure();
    if (attribute->type() == AttributeProto::GRAPH)
      subgraphs[named.name()] = &attribute->g();
    auto value = readAttribute(*attribute, bytesOf(bytes, i), which, loc);
    if (failed(value))
      return failure();
    fields.push_back(builder.getNamedAttr(named.name(), *value));
  }
  std::string module = moduleOfName(node.name());
  for (const auto &entry : node.metadata_props())
    if (entry.key() == kNameScopes)
      module = moduleOfScopes(entry.value());

  SmallVector<Type> types(node.output_size(),
                          ValueType::get(builder.getContext()));
  auto op = NodeOp::create(
      builder, loc, types, builder.getStringAttr(node.op_type()), inputs,
      builder.getI64IntegerAttr(opset->second),
      domain.empty() ? StringAttr() : builder.getStringAttr(domain),
      module.empty() ? StringAttr() : builder.getStringAttr(module),
      builder.getDictionaryAttr(fields), /*declared=*/ArrayAttr(),
      subgraphs.size());
  for (auto [region, subgraph] : llvm::zip_equal(op.getBodies(), subgraphs))
    if (failed(readSubgraph(*subgraph.second, region, loc)))
      return failure();
  for (auto [output, result] : llvm::zip_equal(node.output(), op.getResults()))
    if (!output.empty() && failed(define(output, result, loc)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Subgraphs and functions
//===----------------------------------------------------------------------===//

/// An attribute of a function's body may be one of the call; null where the
/// call leaves that out.
const AttributeProto *Reader::resolve(const AttributeProto &attribute) const {
  if (attribute.ref_attr_name().empty())
    return &attribute;
  return attributes ? attributes->lookup(attribute.ref_attr_name()) : nullptr;
}

const FunctionProto *Reader::findFunction(const NodeProto &node) const {
  for (const FunctionProto &function : model.functions())
    if (function.name() == node.op_type() &&
        function.overload() == node.overload() &&
        canonicalDomain(function.domain()) == canonicalDomain(node.domain()))
      return &function;
  return nullptr;
}

LogicalResult Reader::readSubgraph(const GraphProto &graph, Region &region,
                                   Location loc) {
  if (++depth > kMostDepth)
    return emitError(loc) << "subgraphs and functions nest deeper than "
                          << kMostDepth;
  Scope inner;
  inner.outer = scope;
  Scope *outer = std::exchange(scope, &inner);
  OpBuilder::InsertionGuard guard(builder);
  auto restore = llvm::scope_exit([&] {
    scope = outer;
    --depth;
  });
  Block &block = region.emplaceBlock();
  builder.setInsertionPointToStart(&block);
  readDeclared(graph.value_info());
  readDeclared(graph.output());
  for (const auto &input : graph.input())
    if (failed(define(
            input.name(),
            block.addArgument(ValueType::get(builder.getContext()), loc), loc)))
      return failure();
  for (const auto &tensor : graph.initializer()) {
    auto constant = tensors.read(tensor, TensorBytes(),
                                 "initializer '" + tensor.name() + "'", loc);
    if (failed(constant))
      return failure();
    createInitializer(tensor.name(), *constant, loc);
  }
  for (const NodeProto &node : graph.node())
    if (failed(readNode(node, {})))
      return failure();
  SmallVector<Value> results;
  for (const auto &output : graph.output()) {
    results.push_back(scope->lookup(output.name()));
    if (!results.back())
      return emitError(loc)
             << "output '" << output.name() << "' is no value of its subgraph";
  }
  YieldOp::create(builder, loc, results);
  return success();
}

LogicalResult Reader::readCall(const NodeProto &node,
                               const FunctionProto &function,
                               ArrayRef<Value> inputs, Location loc) {
  if (++depth > kMostDepth)
    return emitError(loc) << "subgraphs and functions nest deeper than "
                          << kMostDepth;
  if (int(inputs.size()) > function.input_size() ||
      node.output_size() > function.output_size())
    return emitError(loc) << describe(node) << " has " << inputs.size()
                          << " inputs and " << node.output_size()
                          << " outputs, its function " << function.input_size()
                          << " and " << function.output_size();
  Attributes given; // null: left out, and without a default
  for (const std::string &name : function.attribute())
    given[name] = nullptr;
  for (const AttributeProto &attribute : function.attribute_proto())
    given[attribute.name()] = &attribute;
  llvm::StringSet<> seen;
  for (const AttributeProto &attribute : node.attribute()) {
    if (!seen.insert(attribute.name()).second)
      return emitError(loc) << describe(node) << " has attribute '"
                            << attribute.name() << "' twice";
    auto place = given.find(attribute.name());
    if (place == given.end())
      return emitError(loc)
             << describe(node) << " has attribute '" << attribute.name()
             << "', which its function does not name";
    if (const AttributeProto *value = resolve(attribute))
      place->second = value; // else the call around leaves it out, too
  }
  Opsets own;
  for (const auto &import : function.opset_import())
    own[canonicalDomain(import.domain())] = import.version();
  Scope inner;
  for (int i = 0; i < function.input_size(); ++i)
    inner.values[function.input(i)] =
        i < int(inputs.size())
            ? inputs[i]
            : NoneOp::create(builder, loc, builder.getNoneType());

  Scope *outer = std::exchange(scope, &inner);
  std::swap(opsets, own);
  const Attributes *around = std::exchange(attributes, &given);
  auto restore = [&] {
    scope = outer;
    std::swap(opsets, own);
    attributes = around;
    --depth;
  };
  for (const NodeProto &inner : function.node())
    if (failed(readNode(inner, {}))) {
      restore();
      return failure();
    }
  restore();
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty())
      continue;
    Value value = inner.lookup(function.output(i));
    if (!value)
      return emitError(loc)
             << describe(node) << ": output '" << function.output(i)
             << "' is no value of its function";
    if (failed(define(node.output(i), value, loc)))
      return failure();
  }
  return success();
}
