//===- Reader.cpp - from an ONNX file to the onnx dialect -----------------===//
//
// Node by node, in the file's order wherever that is one. What is checked is
// what makes a file readable: its format, operator sets, names that are defined
// before they are used, and constants that are where they claim to be.
//
//===----------------------------------------------------------------------===//

#include "TensorReader.h"
#include "autohet/Dialect/Onnx/Onnx.h"
#include "autohet/Frontend/ONNX.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace autohet::onnx;
using ::onnx::AttributeProto;
using ::onnx::GraphProto;
using ::onnx::ModelProto;
using ::onnx::NodeProto;
using ::onnx::ValueInfoProto;

namespace {

/// The key under which dynamo's exporter names the modules that a node is in.
constexpr llvm::StringLiteral kNameScopes = "pkg.torch.onnx.name_scopes";

/// The key under which autohet.export lists all names of tied parameters: JSON,
/// {"head.weight": "wte.weight"}.
constexpr llvm::StringLiteral kTied = "autohet.tied";

class Reader {
public:
  Reader(StringRef path, MLIRContext &context)
      : path(path), builder(&context), tensors(path),
        fileLoc(FileLineColLoc::get(&context, path, 0, 0)) {}

  OwningOpRef<ModuleOp> read();

private:
  LogicalResult parse(StringRef bytes);
  LogicalResult readOpsets();
  LogicalResult readAliases(func::FuncOp function);
  LogicalResult readInputs(func::FuncOp function);
  LogicalResult readInitializers();
  LogicalResult sortNodes();
  LogicalResult readNode(const NodeProto &node, ArrayRef<TensorBytes> bytes);
  LogicalResult readConstantNode(const NodeProto &node,
                                 ArrayRef<TensorBytes> bytes, Location loc);
  LogicalResult readOutputs(func::FuncOp function);

  FailureOr<Attribute> readAttribute(const AttributeProto &attribute,
                                     const TensorBytes &bytes,
                                     const std::string &what, Location loc);
  LogicalResult define(StringRef name, Value value, Location loc);
  void createInitializer(StringRef name, const Constant &constant,
                         Location loc);

  std::string path;
  OpBuilder builder;
  TensorReader tensors;
  Location fileLoc;
  ModelProto model;
  TensorPlaces places;
  llvm::StringMap<int64_t> opsets;
  llvm::StringMap<Value> values;
  /// The nodes, each after those whose results it uses.
  SmallVector<int> order;
};

/// "" and "ai.onnx" are one domain.
StringRef canonicalDomain(StringRef domain) {
  return domain == "ai.onnx" ? StringRef() : domain;
}

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
  std::string module = name.rsplit('/').first.str();
  std::replace(module.begin(), module.end(), '/', '.');
  return module;
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

} // namespace

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

LogicalResult Reader::parse(StringRef bytes) {
  ScanResult scan = scanModel(bytes, places);
  // A model file begins with its ir_version: field 1, a varint.
  bool looksLikeModel = bytes.size() > 2 && bytes[0] == 0x08;
  if (scan.kind == ScanResult::Truncated && looksLikeModel)
    return emitError(fileLoc)
           << "'" << path << "' is truncated: it has " << bytes.size()
           << " bytes, and what begins at byte " << scan.offset
           << " does not end within them";
  if (bytes.size() > size_t(INT32_MAX))
    return emitError(fileLoc)
           << "'" << path << "' has " << bytes.size()
           << " bytes, but a protobuf message has less than 2 GiB: save the "
              "model with external data";
  if (scan.kind != ScanResult::Ok ||
      !model.ParseFromArray(bytes.data(), bytes.size()) ||
      !model.has_ir_version() || !model.has_graph())
    return emitError(fileLoc) << "'" << path << "' is not an ONNX model";
  return success();
}

LogicalResult Reader::readOpsets() {
  for (const auto &import : model.opset_import())
    opsets[canonicalDomain(import.domain())] = import.version();
  auto standard = opsets.find("");
  if (standard == opsets.end())
    return emitError(fileLoc)
           << "'" << path << "' imports no version of the ai.onnx operator set";
  if (standard->second < autohet::kFirstOpset ||
      standard->second > autohet::kLastOpset)
    return emitError(fileLoc)
           << "'" << path << "' uses opset " << standard->second
           << " of ai.onnx, wanted " << autohet::kFirstOpset << " to "
           << autohet::kLastOpset;
  return success();
}

LogicalResult Reader::readAliases(func::FuncOp function) {
  for (const auto &entry : model.metadata_props()) {
    if (entry.key() != kTied)
      continue;
    auto parsed = llvm::json::parse(entry.value());
    if (!parsed)
      return emitError(fileLoc) << "metadata '" << kTied << "' of '" << path
                                << "': " << llvm::toString(parsed.takeError());
    const llvm::json::Object *names = parsed->getAsObject();
    SmallVector<NamedAttribute> aliases;
    if (names)
      for (const auto &[alias, name] : *names)
        if (std::optional<StringRef> text = name.getAsString();
            text && !alias.str().empty())
          aliases.push_back(
              builder.getNamedAttr(alias.str(), builder.getStringAttr(*text)));
    if (!names || aliases.size() != names->size())
      return emitError(fileLoc) << "metadata '" << kTied << "' of '" << path
                                << "' is no object of names";
    function->setAttr(kAliasesAttr, builder.getDictionaryAttr(aliases));
  }
  return success();
}

OwningOpRef<ModuleOp> Reader::read() {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer) {
    emitError(fileLoc) << "cannot read '" << path
                       << "': " << buffer.getError().message();
    return {};
  }
  if (failed(parse((*buffer)->getBuffer())) || failed(readOpsets()))
    return {};
  if (model.graph().sparse_initializer_size()) {
    emitError(fileLoc) << "'" << path
                       << "' has sparse initializers, which are not supported";
    return {};
  }

  OwningOpRef<ModuleOp> module(ModuleOp::create(fileLoc));
  if (!model.producer_name().empty())
    (*module)->setAttr("onnx.producer",
                       builder.getStringAttr(model.producer_name() + " " +
                                             model.producer_version()));
  builder.setInsertionPointToStart(module->getBody());
  auto function = func::FuncOp::create(builder, fileLoc, "model",
                                       builder.getFunctionType({}, {}));
  builder.setInsertionPointToStart(function.addEntryBlock());
  if (failed(readAliases(function)) || failed(readInitializers()) ||
      failed(readInputs(function)))
    return {};
  const GraphProto &graph = model.graph();
  if (failed(sortNodes()))
    return {};
  for (int i : order)
    if (failed(readNode(graph.node(i), places.attributes[i])))
      return {};
  if (failed(readOutputs(function)))
    return {};
  return module;
}

//===----------------------------------------------------------------------===//
// Names and constants
//===----------------------------------------------------------------------===//

LogicalResult Reader::define(StringRef name, Value value, Location loc) {
  if (!values.try_emplace(name, value).second)
    return emitError(loc) << "'" << path << "' defines '" << name << "' twice";
  return success();
}

void Reader::createInitializer(StringRef name, const Constant &constant,
                               Location loc) {
  Value value;
  if (constant.value)
    value = InitializerOp::create(builder, loc, constant.type,
                                  builder.getStringAttr(name), constant.value,
                                  nullptr, nullptr, nullptr);
  else
    value = InitializerOp::create(
        builder, loc, constant.type, builder.getStringAttr(name), nullptr,
        builder.getStringAttr(constant.file),
        builder.getI64IntegerAttr(constant.place.offset),
        builder.getI64IntegerAttr(constant.place.size));
  values[name] = value;
}

LogicalResult Reader::readInitializers() {
  const GraphProto &graph = model.graph();
  for (int i = 0; i < graph.initializer_size(); ++i) {
    const auto &tensor = graph.initializer(i);
    Location loc = NameLoc::get(builder.getStringAttr(tensor.name()), fileLoc);
    if (values.count(tensor.name()))
      return emitError(loc)
             << "'" << path << "' defines '" << tensor.name() << "' twice";
    auto constant = tensors.read(tensor, places.initializers[i],
                                 "initializer '" + tensor.name() + "'", loc);
    if (failed(constant))
      return failure();
    createInitializer(tensor.name(), *constant, loc);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Inputs and outputs
//===----------------------------------------------------------------------===//

LogicalResult Reader::readInputs(func::FuncOp function) {
  for (const ValueInfoProto &input : model.graph().input()) {
    // Old files list their initializers among the inputs.
    if (values.count(input.name()))
      continue;
    Location loc = NameLoc::get(builder.getStringAttr(input.name()), fileLoc);
    if (!input.type().has_tensor_type() ||
        !input.type().tensor_type().has_shape())
      return emitError(loc)
             << "input '" << input.name() << "' is not a tensor of known rank";
    const auto &tensor = input.type().tensor_type();
    Type element = convertElementType(tensor.elem_type(),
                                      "input '" + input.name() + "'", loc);
    if (!element)
      return failure();
    SmallVector<int64_t> shape;
    SmallVector<Attribute> dims;
    bool isStatic = true;
    for (const auto &dim : tensor.shape().dim()) {
      if (dim.has_dim_value() && dim.dim_value() >= 0) {
        shape.push_back(dim.dim_value());
        dims.push_back(builder.getI64IntegerAttr(dim.dim_value()));
        continue;
      }
      // Unnamed dims get a name, so that a user can bind them.
      std::string symbol = dim.dim_param();
      if (symbol.empty())
        symbol = input.name() + "." + std::to_string(shape.size());
      shape.push_back(ShapedType::kDynamic);
      dims.push_back(builder.getStringAttr(symbol));
      isStatic = false;
    }
    SmallVector<NamedAttribute> attributes{
        builder.getNamedAttr(kNameAttr, builder.getStringAttr(input.name()))};
    if (!isStatic)
      attributes.push_back(
          builder.getNamedAttr(kDimsAttr, builder.getArrayAttr(dims)));
    unsigned index = function.getNumArguments();
    if (failed(function.insertArgument(
            index, RankedTensorType::get(shape, element),
            builder.getDictionaryAttr(attributes), loc)) ||
        failed(define(input.name(), function.getArgument(index), loc)))
      return failure();
  }
  return success();
}

LogicalResult Reader::readOutputs(func::FuncOp function) {
  SmallVector<Value> results;
  SmallVector<Type> types;
  SmallVector<Attribute> attributes;
  for (const ValueInfoProto &output : model.graph().output()) {
    Value value = values.lookup(output.name());
    if (!value)
      return emitError(fileLoc)
             << "output '" << output.name() << "' is no value of the graph";
    results.push_back(value);
    types.push_back(value.getType());
    attributes.push_back(builder.getDictionaryAttr(
        builder.getNamedAttr(kNameAttr, builder.getStringAttr(output.name()))));
  }
  func::ReturnOp::create(builder, fileLoc, results);
  function.setType(builder.getFunctionType(function.getArgumentTypes(), types));
  function.setAllResultAttrs(attributes);
  return success();
}

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
    // Subgraphs and the like. Ops that have them are reported, with all others
    // that are unknown, by the pass that gives ops their meaning.
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
  const AttributeProto &attribute = node.attribute(0);
  Constant constant;
  if (attribute.name() == "value") {
    auto read = tensors.read(attribute.t(), bytes[0], what, loc);
    if (failed(read))
      return failure();
    constant = *read;
  } else {
    auto ranked = [&](size_t size, Type element) {
      return RankedTensorType::get({int64_t(size)}, element);
    };
    Type f32 = builder.getF32Type(), i64 = builder.getI64Type();
    if (attribute.name() == "value_float")
      constant.value =
          DenseElementsAttr::get(RankedTensorType::get({}, f32), attribute.f());
    else if (attribute.name() == "value_int")
      constant.value =
          DenseElementsAttr::get(RankedTensorType::get({}, i64), attribute.i());
    else if (attribute.name() == "value_ints")
      constant.value = DenseElementsAttr::get(
          ranked(attribute.ints_size(), i64),
          ArrayRef<int64_t>(attribute.ints().data(), attribute.ints_size()));
    else if (attribute.name() == "value_floats")
      constant.value = DenseElementsAttr::get(
          ranked(attribute.floats_size(), f32),
          ArrayRef<float>(attribute.floats().data(), attribute.floats_size()));
    else
      return emitError(loc) << what << " has attribute '" << attribute.name()
                            << "', which is not supported";
    constant.type = cast<RankedTensorType>(constant.value.getType());
  }
  if (values.count(node.output(0)))
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
  auto opset = opsets.find(domain);
  if (opset == opsets.end())
    return emitError(loc) << what << " is of domain '" << domain
                          << "', of which the file imports no version";
  if (domain.empty() && node.op_type() == "Constant")
    return readConstantNode(node, bytes, loc);

  SmallVector<Value> inputs;
  for (const std::string &input : node.input()) {
    if (input.empty()) {
      inputs.push_back(NoneOp::create(builder, loc, builder.getNoneType()));
      continue;
    }
    Value value = values.lookup(input);
    if (!value)
      return emitError(loc)
             << what << " uses '" << input << "', which nothing defines";
    inputs.push_back(value);
  }
  SmallVector<NamedAttribute> fields;
  llvm::StringMap<bool> seen;
  for (int i = 0; i < node.attribute_size(); ++i) {
    const AttributeProto &attribute = node.attribute(i);
    if (attribute.name().empty() ||
        !seen.try_emplace(attribute.name(), true).second)
      return emitError(loc)
             << what << " has an attribute without a name of its own";
    auto value =
        readAttribute(attribute, bytes[i],
                      what + ": attribute '" + attribute.name() + "'", loc);
    if (failed(value))
      return failure();
    fields.push_back(builder.getNamedAttr(attribute.name(), *value));
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
      builder.getDictionaryAttr(fields));
  for (auto [output, result] : llvm::zip_equal(node.output(), op.getResults()))
    if (!output.empty() && failed(define(output, result, loc)))
      return failure();
  return success();
}

OwningOpRef<ModuleOp> autohet::importOnnxFile(StringRef path,
                                              MLIRContext &context) {
  context.loadDialect<OnnxDialect, func::FuncDialect>();
  return Reader(path, context).read();
}
