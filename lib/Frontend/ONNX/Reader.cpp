//===- Reader.cpp - from an ONNX file to the onnx dialect -----------------===//
//
// Node by node, in the file's order wherever that is one. What is checked is
// what makes a file readable: its format, operator sets, names that are defined
// before they are used, and constants that are where they claim to be.
//
//===----------------------------------------------------------------------===//

#include "Reader.h"
#include "autohet/Frontend/ONNX.h"
#include "autohet/Support/InputFile.h"
#include "autohet/Support/Tree.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace autohet::onnx;
using ::onnx::GraphProto;
using ::onnx::TensorProto;
using ::onnx::ValueInfoProto;

/// The key under which autohet.export lists all names of tied parameters: JSON,
/// {"head.weight": "wte.weight"}.
static constexpr llvm::StringLiteral kTied = "autohet.tied";
/// And the names of all parameters, as a JSON array: other constants are none.
static constexpr llvm::StringLiteral kParameters = "autohet.parameters";
/// And of those among them that require no gradient.
static constexpr llvm::StringLiteral kFrozen = "autohet.frozen";

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
  // Files from before operator sets had versions are of the first.
  if (opsets.empty() && model.ir_version() < 3)
    opsets[""] = 1;
  if (opsets.empty())
    return emitError(fileLoc)
           << "'" << path << "' imports no version of the ai.onnx operator set";
  // Nodes of a domain that is not imported are refused one by one.
  auto standard = opsets.find("");
  if (standard != opsets.end() && (standard->second < autohet::kFirstOpset ||
                                   standard->second > autohet::kLastOpset))
    return emitError(fileLoc)
           << "'" << path << "' uses opset " << standard->second
           << " of ai.onnx, wanted " << autohet::kFirstOpset << " to "
           << autohet::kLastOpset;
  return success();
}

LogicalResult Reader::readMetadata(func::FuncOp function) {
  for (const auto &entry : model.metadata_props()) {
    bool isTied = entry.key() == kTied;
    if (!isTied && entry.key() != kParameters && entry.key() != kFrozen)
      continue;
    auto error = [&] {
      return emitError(fileLoc)
             << "metadata '" << entry.key() << "' of '" << path << "'";
    };
    if (autohet::findDeepJson(entry.value()))
      return error() << ": nested too deeply";
    auto parsed = llvm::json::parse(entry.value());
    if (!parsed)
      return error() << ": " << llvm::toString(parsed.takeError());
    if (!isTied) {
      SmallVector<StringRef> names;
      const llvm::json::Array *list = parsed->getAsArray();
      for (size_t i = 0; list && i < list->size(); ++i)
        if (std::optional<StringRef> text = (*list)[i].getAsString())
          names.push_back(*text);
      if (!list || names.size() != list->size())
        return error() << " is no array of names";
      function->setAttr(entry.key() == kFrozen ? kFrozenAttr : kParametersAttr,
                        builder.getStrArrayAttr(names));
      if (entry.key() == kParameters)
        parameters.insert_range(names);
      continue;
    }
    const llvm::json::Object *names = parsed->getAsObject();
    SmallVector<NamedAttribute> aliases;
    if (names)
      for (const auto &[alias, name] : *names)
        if (std::optional<StringRef> text = name.getAsString();
            text && !alias.str().empty())
          aliases.push_back(
              builder.getNamedAttr(alias.str(), builder.getStringAttr(*text)));
    if (!names || aliases.size() != names->size())
      return error() << " is no object of names";
    function->setAttr(kAliasesAttr, builder.getDictionaryAttr(aliases));
  }
  return success();
}

OwningOpRef<ModuleOp> Reader::read() {
  auto buffer = readInputFile(path, kMostModelBytes);
  if (!buffer) {
    emitError(fileLoc) << "model '" << path
                       << "': " << llvm::toString(buffer.takeError());
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
  readDeclared(model.graph().value_info()); // outputs have them themselves
  if (failed(readMetadata(function)) || failed(readInitializers()) ||
      failed(readInputs(function)))
    return {};
  if (failed(sortNodes()))
    return {};
  for (int i : order)
    if (failed(readNode(model.graph().node(i), places.attributes[i])))
      return {};
  if (failed(readOutputs(function)))
    return {};
  function.walk([&](NodeOp node) { setDeclared(node); });
  return module;
}

//===----------------------------------------------------------------------===//
// Names and constants
//===----------------------------------------------------------------------===//

LogicalResult Reader::define(StringRef name, Value value, Location loc) {
  if (!scope->values.try_emplace(name, value).second)
    return emitError(loc) << "'" << path << "' defines '" << name << "' twice";
  declare(name, value);
  return success();
}

/// What a file says of a value's type: null where it says nothing.
static Attribute declaredType(const ::onnx::TypeProto &type,
                              MLIRContext *context) {
  using ::onnx::TypeProto;
  switch (type.value_case()) {
  case TypeProto::kTensorType:
    break;
  case TypeProto::VALUE_NOT_SET:
    return {};
  default:
    return StringAttr::get(context, "no tensor");
  }
  const auto &tensor = type.tensor_type();
  if (tensor.elem_type() == TensorProto::UNDEFINED)
    return {};
  Type element = elementType(tensor.elem_type(), context);
  if (!element)
    return StringAttr::get(context,
                           "a tensor of " + nameOfElement(tensor.elem_type()));
  if (!tensor.has_shape())
    return TypeAttr::get(UnrankedTensorType::get(element));
  SmallVector<int64_t> shape;
  for (const auto &dim : tensor.shape().dim())
    shape.push_back(dim.has_dim_value() && dim.dim_value() >= 0
                        ? dim.dim_value()
                        : ShapedType::kDynamic);
  return TypeAttr::get(RankedTensorType::get(shape, element));
}

/// Whether a value of type `found` can be what is said to be `declared`.
static bool agree(ShapedType declared, ShapedType found) {
  return declared.getElementType() == found.getElementType() &&
         succeeded(verifyCompatibleShape(declared, found));
}

void Reader::readDeclared(const Declarations &values) {
  for (const ValueInfoProto &value : values)
    if (Attribute type = declaredType(value.type(), builder.getContext()))
      scope->declared[value.name()] = type;
}

void Reader::declare(StringRef name, Value value) {
  if (Attribute type = scope->declared.lookup(name))
    declaredTypes[value] = type;
}

/// All at once, as a node may have as many results as a file has room for.
void Reader::setDeclared(NodeOp node) {
  SmallVector<Attribute> types;
  bool isAny = false;
  for (Value result : node.getResults()) {
    Attribute type = declaredTypes.lookup(result);
    isAny |= bool(type);
    types.push_back(type ? type : builder.getUnitAttr());
  }
  if (isAny)
    node.setDeclaredAttr(builder.getArrayAttr(types));
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
  scope->values[name] = value;
}

LogicalResult Reader::readInitializers() {
  const GraphProto &graph = model.graph();
  for (int i = 0; i < graph.initializer_size(); ++i) {
    const auto &tensor = graph.initializer(i);
    Location loc = NameLoc::get(builder.getStringAttr(tensor.name()), fileLoc);
    if (scope->values.count(tensor.name()))
      return emitError(loc)
             << "'" << path << "' defines '" << tensor.name() << "' twice";
    auto constant = tensors.read(
        tensor, places.initializers[i], "initializer '" + tensor.name() + "'",
        loc, /*isParameter=*/parameters.contains(tensor.name()));
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
    Location loc = NameLoc::get(builder.getStringAttr(input.name()), fileLoc);
    // Old files list their initializers among the inputs.
    if (Value constant = scope->values.lookup(input.name())) {
      auto declared = dyn_cast_or_null<TypeAttr>(
          declaredType(input.type(), builder.getContext()));
      auto type = cast<ShapedType>(constant.getType());
      if (declared && !agree(cast<ShapedType>(declared.getValue()), type))
        return emitError(loc)
               << "input '" << input.name() << "' is " << declared.getValue()
               << ", but the initializer of that name is " << type;
      continue;
    }
    if (!input.type().has_tensor_type() ||
        !input.type().tensor_type().has_shape())
      return emitError(loc)
             << "input '" << input.name() << "' is not a tensor of known rank"
             << (input.type().has_tensor_type()
                     ? ": its shape must be given, dims may be names"
                     : ": sequences and optional values are not supported");
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
  if (model.graph().output().empty())
    return emitError(fileLoc)
           << "'" << path << "' has no outputs: there is nothing to compute";
  for (const ValueInfoProto &output : model.graph().output()) {
    Value value = scope->lookup(output.name());
    if (!value)
      return emitError(fileLoc)
             << "output '" << output.name() << "' is no value of the graph";
    results.push_back(value);
    types.push_back(value.getType());
    SmallVector<NamedAttribute> facts{
        builder.getNamedAttr(kNameAttr, builder.getStringAttr(output.name()))};
    if (Attribute type = declaredType(output.type(), builder.getContext()))
      facts.push_back(builder.getNamedAttr(kDeclaredAttr, type));
    attributes.push_back(builder.getDictionaryAttr(facts));
  }
  func::ReturnOp::create(builder, fileLoc, results);
  function.setType(builder.getFunctionType(function.getArgumentTypes(), types));
  function.setAllResultAttrs(attributes);
  return success();
}

OwningOpRef<ModuleOp> autohet::importOnnxFile(StringRef path,
                                              MLIRContext &context) {
  context.loadDialect<OnnxDialect, func::FuncDialect>();
  return Reader(path, context).read();
}
