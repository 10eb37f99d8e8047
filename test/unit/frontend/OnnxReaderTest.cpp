//===- OnnxReaderTest.cpp - model files, whole, broken and hostile ----------===//
//
// Files are made with the schema's own classes, then damaged. Whatever a file
// holds, reading it ends with a module or a message, never with a crash.
//
//===----------------------------------------------------------------------===//

#include "autohet/Dialect/Onnx/Onnx.h"
#include "autohet/Frontend/ONNX.h"
#include "onnx-ml.pb.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cstring>
#include <fstream>
#include <map>

using namespace mlir;
using autohet::onnx::InitializerOp;
using testing::HasSubstr;

namespace {

class OnnxReader : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("onnx-reader", folder));
    context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
      messages += diagnostic.str() + "\n";
      return success();
    });
    model.set_ir_version(8);
    auto *opset = model.add_opset_import();
    opset->set_version(18);
    graph = model.mutable_graph();
    addInput("x", {2, 3});
    addNode("Relu", {"x"}, "y");
    graph->add_output()->set_name("y");
  }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  void list(const char *names, const char *key = "autohet.tied") {
    model.clear_metadata_props();
    auto *entry = model.add_metadata_props();
    entry->set_key(key);
    entry->set_value(names);
  }
  void addInput(const char *name, std::vector<int64_t> shape) {
    auto *input = graph->add_input();
    input->set_name(name);
    auto *tensor = input->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(onnx::TensorProto::FLOAT);
    for (int64_t extent : shape)
      tensor->mutable_shape()->add_dim()->set_dim_value(extent);
  }
  onnx::NodeProto *addNode(const char *type, std::vector<const char *> inputs,
                           const char *output) {
    auto *node = graph->add_node();
    node->set_op_type(type);
    node->set_name(std::string(type) + "_0");
    for (const char *input : inputs)
      node->add_input(input);
    node->add_output(output);
    return node;
  }
  onnx::TensorProto *addInitializer(const char *name,
                                    std::vector<int64_t> shape,
                                    int type = onnx::TensorProto::FLOAT) {
    auto *tensor = graph->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(type);
    for (int64_t extent : shape)
      tensor->add_dims(extent);
    return tensor;
  }
  onnx::TensorProto *addExternal(const char *location, const char *offset,
                                 const char *length) {
    auto *tensor = addInitializer("w", {2});
    tensor->set_data_location(onnx::TensorProto::EXTERNAL);
    for (auto [key, value] :
         {std::pair("location", location), std::pair("offset", offset),
          std::pair("length", length)})
      if (value) {
        auto *entry = tensor->add_external_data();
        entry->set_key(key);
        entry->set_value(value);
      }
    return tensor;
  }

  std::string path(const char *name) {
    llvm::SmallString<128> result(folder);
    llvm::sys::path::append(result, name);
    return result.str().str();
  }
  std::string write(const char *name, const std::string &bytes) {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }
  std::string serialized() { return model.SerializeAsString(); }

  OwningOpRef<ModuleOp> read(const std::string &bytes) {
    messages.clear();
    auto module = autohet::importOnnxFile(write("model.onnx", bytes), context);
    if (module) {
      EXPECT_TRUE(succeeded(verify(*module)));
    }
    return module;
  }
  OwningOpRef<ModuleOp> read() { return read(serialized()); }

  InitializerOp initializer(ModuleOp module, StringRef name) {
    InitializerOp found;
    module.walk([&](InitializerOp op) {
      if (op.getName() == name)
        found = op;
    });
    return found;
  }
  std::vector<float> floatsAt(InitializerOp op) {
    std::vector<float> values(*op.getBytes() / 4);
    std::ifstream file(op.getFile()->str(), std::ios::binary);
    file.seekg(*op.getOffset());
    file.read(reinterpret_cast<char *>(values.data()), *op.getBytes());
    return values;
  }

  MLIRContext context;
  llvm::SmallString<128> folder;
  std::string messages;
  onnx::ModelProto model;
  onnx::GraphProto *graph;
};

constexpr float kValues[2] = {1.5f, -2.0f};
std::string rawValues() {
  return std::string(reinterpret_cast<const char *>(kValues), sizeof(kValues));
}

//===----------------------------------------------------------------------===//
// Whole files
//===----------------------------------------------------------------------===//

TEST_F(OnnxReader, PlacesOfWeights) {
  addInitializer("raw", {2})->set_raw_data(rawValues());
  auto *typed = addInitializer("typed", {2});
  for (float value : kValues)
    typed->add_float_data(value);
  auto *node = addNode("Constant", {}, "c");
  auto *attribute = node->add_attribute();
  attribute->set_name("value");
  attribute->set_type(onnx::AttributeProto::TENSOR);
  attribute->mutable_t()->set_data_type(onnx::TensorProto::FLOAT);
  attribute->mutable_t()->add_dims(2);
  attribute->mutable_t()->set_raw_data(rawValues());
  auto module = read();
  ASSERT_TRUE(module) << messages;
  for (const char *name : {"raw", "typed", "c"})
    EXPECT_THAT(floatsAt(initializer(*module, name)),
                testing::ElementsAre(1.5f, -2.0f))
        << name;
}

TEST_F(OnnxReader, ExternalWeights) {
  write("w.bin", "pad!" + rawValues());
  addExternal("w.bin", "4", "8");
  auto module = read();
  ASSERT_TRUE(module) << messages;
  EXPECT_THAT(floatsAt(initializer(*module, "w")),
              testing::ElementsAre(1.5f, -2.0f));
}

// What a file leaves out is 0, and as long as its shape says; each tensor may
// be in a file of its own.
TEST_F(OnnxReader, ExternalDefaults) {
  write("w.bin", rawValues() + "more");
  addExternal("w.bin", nullptr, nullptr);
  write("ids.bin", std::string("\7\0\0\0\0\0\0\0", 8));
  addExternal("ids.bin", nullptr, nullptr);
  auto *ids = graph->mutable_initializer(1);
  ids->set_name("ids");
  ids->clear_dims();
  ids->set_data_type(onnx::TensorProto::INT64);
  auto module = read();
  ASSERT_TRUE(module) << messages;
  EXPECT_THAT(floatsAt(initializer(*module, "w")),
              testing::ElementsAre(1.5f, -2.0f));
  auto value = cast<DenseElementsAttr>(*initializer(*module, "ids").getValue());
  EXPECT_EQ(value.getSplatValue<int64_t>(), 7);
}

TEST_F(OnnxReader, SmallConstantsAreValues) {
  auto *ints = addInitializer("ints", {2}, onnx::TensorProto::INT64);
  ints->add_int64_data(-1);
  ints->add_int64_data(32);
  auto *flags = addInitializer("flags", {2}, onnx::TensorProto::BOOL);
  flags->set_raw_data(std::string("\1\0", 2));
  addInitializer("one", {})->set_raw_data(rawValues().substr(0, 4));
  addInitializer("none", {0}, onnx::TensorProto::INT64);
  auto module = read();
  ASSERT_TRUE(module) << messages;
  auto value = [&](const char *name) {
    return cast<DenseElementsAttr>(*initializer(*module, name).getValue());
  };
  EXPECT_THAT(llvm::to_vector(value("ints").getValues<int64_t>()),
              testing::ElementsAre(-1, 32));
  EXPECT_THAT(llvm::to_vector(value("flags").getValues<bool>()),
              testing::ElementsAre(true, false));
  EXPECT_EQ(*value("one").getValues<float>().begin(), 1.5f);
  EXPECT_EQ(value("none").getNumElements(), 0);
}

TEST_F(OnnxReader, ScopesAndSymbols) {
  auto *dim = graph->mutable_input(0)
                  ->mutable_type()
                  ->mutable_tensor_type()
                  ->mutable_shape()
                  ->mutable_dim(0);
  dim->set_dim_param("batch");
  addNode("Neg", {"y"}, "c")->set_name("/h.0/attn/c_attn/Neg");
  // Lists in lists bear the whole path.
  addNode("Neg", {"c"}, "a")->set_name("/blocks.1/blocks.1.0/q/Neg");
  auto *dynamo = addNode("Neg", {"a", ""}, "b");
  auto *entry = dynamo->add_metadata_props();
  entry->set_key("pkg.torch.onnx.name_scopes");
  entry->set_value("['', 'model', 'model.layers.0', 'neg_1']");
  auto module = read();
  ASSERT_TRUE(module) << messages;
  auto function = *module->getOps<func::FuncOp>().begin();
  auto dims = function.getArgAttrOfType<ArrayAttr>(0, autohet::onnx::kDimsAttr);
  ASSERT_TRUE(dims);
  EXPECT_EQ(cast<StringAttr>(dims[0]).getValue(), "batch");
  std::vector<std::string> scopes;
  function.walk([&](autohet::onnx::NodeOp node) {
    scopes.push_back(node.getScope().value_or("-").str());
  });
  EXPECT_THAT(scopes, testing::ElementsAre("-", "h.0.attn.c_attn",
                                           "blocks.1.0.q", "model.layers.0"));
}

//===----------------------------------------------------------------------===//
// Broken files
//===----------------------------------------------------------------------===//

TEST_F(OnnxReader, NamesOfTiedParameters) {
  list(R"({"head.weight": "wte.weight"})");
  auto module = read();
  ASSERT_TRUE(module) << messages;
  auto function = *module->getOps<func::FuncOp>().begin();
  auto aliases =
      function->getAttrOfType<DictionaryAttr>(autohet::onnx::kAliasesAttr);
  ASSERT_TRUE(aliases);
  EXPECT_EQ(aliases.getAs<StringAttr>("head.weight").getValue(), "wte.weight");
  for (const char *broken : {"{", "[]", R"({"a": 1})", R"({"": "a"})"}) {
    list(broken);
    messages.clear();
    EXPECT_FALSE(read());
    EXPECT_THAT(messages, HasSubstr("metadata 'autohet.tied'"));
  }
}

// One number is a value, and stays with its user, unless the file says that it
// is a parameter.
TEST_F(OnnxReader, ListedParametersOfOneElement) {
  for (const char *name : {"scale", "two"}) {
    auto *tensor = graph->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::FLOAT);
    tensor->set_raw_data(std::string(4, '\1'));
  }
  list(R"(["scale"])", "autohet.parameters");
  auto module = read();
  ASSERT_TRUE(module) << messages;
  std::map<std::string, bool> isInFile;
  module->walk([&](InitializerOp op) {
    isInFile[op.getName().str()] = op.getFile().has_value();
  });
  EXPECT_TRUE(isInFile.at("scale"));
  EXPECT_FALSE(isInFile.at("two"));
}

TEST_F(OnnxReader, NamesOfParameters) {
  list(R"(["wte.weight", "bias"])", "autohet.parameters");
  auto module = read();
  ASSERT_TRUE(module) << messages;
  auto function = *module->getOps<func::FuncOp>().begin();
  auto names =
      function->getAttrOfType<ArrayAttr>(autohet::onnx::kParametersAttr);
  ASSERT_TRUE(names);
  EXPECT_EQ(names.size(), 2u);
  for (const char *broken : {"[", "{}", "[1]"}) {
    list(broken, "autohet.parameters");
    messages.clear();
    EXPECT_FALSE(read());
    EXPECT_THAT(messages, HasSubstr("metadata 'autohet.parameters'"));
  }
}

TEST_F(OnnxReader, NamesOfFrozenParameters) {
  list(R"(["wte.weight"])", "autohet.frozen");
  auto module = read();
  ASSERT_TRUE(module) << messages;
  auto function = *module->getOps<func::FuncOp>().begin();
  auto names = function->getAttrOfType<ArrayAttr>(autohet::onnx::kFrozenAttr);
  ASSERT_TRUE(names);
  EXPECT_EQ(names.size(), 1u);
  list(R"({"wte.weight": true})", "autohet.frozen");
  messages.clear();
  EXPECT_FALSE(read());
  EXPECT_THAT(messages, HasSubstr("metadata 'autohet.frozen'"));
}

TEST_F(OnnxReader, NotAModel) {
  for (const char *bytes :
       {"", "hello, world", "\x89PNG\r\n\x1a\n", "{\"architectures\": []}"}) {
    EXPECT_FALSE(read(bytes));
    EXPECT_THAT(messages, HasSubstr("is not an ONNX model")) << bytes;
  }
  messages.clear();
  EXPECT_FALSE(autohet::importOnnxFile(path("nowhere.onnx"), context));
  EXPECT_THAT(messages, HasSubstr("cannot read"));
}

TEST_F(OnnxReader, EveryTruncation) {
  addInitializer("raw", {2})->set_raw_data(rawValues());
  std::string whole = serialized();
  for (size_t size = 0; size < whole.size(); ++size) {
    bool accepted = bool(read(whole.substr(0, size)));
    // A cut between fields is a smaller file, which has something missing.
    EXPECT_FALSE(accepted) << size;
    EXPECT_FALSE(messages.empty()) << size;
  }
  read(whole.substr(0, whole.size() / 2));
  EXPECT_THAT(messages, HasSubstr("is truncated: it has"));
}

TEST_F(OnnxReader, EveryFlippedByte) {
  addInitializer("raw", {2})->set_raw_data(rawValues());
  std::string whole = serialized();
  for (size_t i = 0; i < whole.size(); ++i)
    for (char flip : {'\x01', '\x80', '\xff'}) {
      std::string damaged = whole;
      damaged[i] ^= flip;
      if (!read(damaged)) {
        EXPECT_FALSE(messages.empty()) << i;
      }
    }
}

TEST_F(OnnxReader, OperatorSets) {
  for (int version : {0, 29}) {
    model.mutable_opset_import(0)->set_version(version);
    EXPECT_FALSE(read());
    EXPECT_THAT(messages, HasSubstr("uses opset " + std::to_string(version) +
                                    " of ai.onnx, wanted 1 to 28"));
  }
  model.mutable_opset_import(0)->set_version(18);
  onnx::NodeProto *node = addNode("FastGelu", {"y"}, "z");
  node->set_domain("com.microsoft");
  EXPECT_TRUE(read());
  EXPECT_THAT(messages, HasSubstr("imports no version of domain "
                                  "'com.microsoft': 1 is taken, the only one"));
  node->set_domain("org.example");
  EXPECT_FALSE(read());
  EXPECT_THAT(
      messages,
      HasSubstr("node 'FastGelu_0' (FastGelu) is of domain 'org.example', "
                "of which the file imports no version"));
  model.clear_opset_import();
  EXPECT_FALSE(read());
  EXPECT_THAT(messages,
              HasSubstr("imports no version of the ai.onnx operator set"));
  node->clear_domain();
  model.set_ir_version(2); // before there were versions
  auto module = read();
  ASSERT_TRUE(module) << messages;
  module->walk([](autohet::onnx::NodeOp op) { EXPECT_EQ(op.getOpset(), 1u); });
}

TEST_F(OnnxReader, Overloads) {
  for (auto [overload, body] : {std::pair("", "Neg"), {"b", "Exp"}}) {
    auto *function = model.add_functions();
    function->set_domain("local");
    function->set_name("f");
    function->set_overload(overload);
    function->add_input("a");
    function->add_output("b");
    auto *import = function->add_opset_import();
    import->set_version(18);
    auto *inner = function->add_node();
    inner->set_op_type(body);
    inner->add_input("a");
    inner->add_output("b");
  }
  auto *node = addNode("f", {"y"}, "z");
  node->set_domain("local");
  node->set_overload("b");
  auto module = read();
  ASSERT_TRUE(module) << messages;
  std::vector<std::string> types;
  module->walk(
      [&](autohet::onnx::NodeOp op) { types.push_back(op.getOpType().str()); });
  EXPECT_THAT(types, testing::Contains("Exp"));
  EXPECT_THAT(types, testing::Not(testing::Contains("Neg")));
  node->set_overload("c");
  EXPECT_FALSE(read());
}

/// `f` applies LeakyRelu, with the slope that calls give; `g` calls it.
TEST_F(OnnxReader, AttributesOfCalls) {
  for (auto [name, body] : {std::pair("f", "LeakyRelu"), {"g", "f"}}) {
    auto *function = model.add_functions();
    function->set_domain("local");
    function->set_name(name);
    function->add_input("a");
    function->add_output("b");
    function->add_opset_import()->set_version(18);
    auto *local = function->add_opset_import();
    local->set_domain("local");
    local->set_version(1);
    auto *inner = function->add_node();
    inner->set_op_type(body);
    inner->set_domain(std::string(name) == "g" ? "local" : "");
    inner->add_input("a");
    inner->add_output("b");
    auto *slope = inner->add_attribute();
    slope->set_name(std::string(name) == "g" ? "slope" : "alpha");
    slope->set_ref_attr_name("slope");
    slope->set_type(onnx::AttributeProto::FLOAT);
  }
  auto *ofF = model.mutable_functions(0)->add_attribute_proto();
  ofF->set_name("slope");
  ofF->set_type(onnx::AttributeProto::FLOAT);
  ofF->set_f(0.25);
  model.mutable_functions(1)->add_attribute("slope");
  auto *node = addNode("g", {"y"}, "z");
  node->set_domain("local");
  auto slope = [&] {
    auto module = read();
    EXPECT_TRUE(module) << messages;
    std::optional<double> found;
    if (module)
      module->walk([&](autohet::onnx::NodeOp op) {
        if (auto alpha = op.getFields().getAs<FloatAttr>("alpha"))
          found = alpha.getValueAsDouble();
      });
    return found;
  };
  EXPECT_EQ(slope(), 0.25); // the default, through a call that leaves it out
  auto *given = node->add_attribute();
  given->set_name("slope");
  given->set_type(onnx::AttributeProto::FLOAT);
  given->set_f(0.5);
  EXPECT_EQ(slope(), 0.5);
  given->set_name("slop");
  EXPECT_FALSE(read());
  EXPECT_THAT(messages, HasSubstr("node 'g_0' (g) has attribute 'slop', which "
                                  "its function does not name"));
  given->set_name("slope");
  *node->add_attribute() = *given;
  EXPECT_FALSE(read());
  EXPECT_THAT(messages, HasSubstr("has attribute 'slope' twice"));
}

// "" is a result that is left out and an operand that is: no edge.
TEST_F(OnnxReader, LeftOutResultsAreNoEdges) {
  onnx::NodeProto *node = addNode("Dropout", {"y", "", ""}, "z");
  node->add_output("");
  EXPECT_TRUE(read());
}

TEST_F(OnnxReader, Names) {
  addNode("Neg", {"later"}, "z");
  EXPECT_FALSE(read());
  EXPECT_THAT(
      messages,
      HasSubstr("node 'Neg_0' (Neg) uses 'later', which nothing defines"));
  graph->mutable_node(1)->set_input(0, "y");
  graph->mutable_node(1)->set_output(0, "y");
  EXPECT_FALSE(read());
  EXPECT_THAT(messages, HasSubstr("defines 'y' twice"));
  graph->mutable_node(1)->set_output(0, "z");
  graph->mutable_output(0)->set_name("nothing");
  EXPECT_FALSE(read());
  EXPECT_THAT(messages, HasSubstr("output 'nothing' is no value of the graph"));
}

TEST_F(OnnxReader, ElementTypes) {
  auto *half = addInitializer("half", {2}, onnx::TensorProto::FLOAT16);
  half->set_raw_data("1234");
  EXPECT_TRUE(read());
  half->set_data_type(onnx::TensorProto::BFLOAT16);
  EXPECT_TRUE(read());
  half->set_data_type(onnx::TensorProto::STRING);
  EXPECT_FALSE(read());
  EXPECT_THAT(messages, HasSubstr("is STRING, which is not supported"));
  half->set_data_type(12345);
  EXPECT_FALSE(read());
  EXPECT_THAT(messages, HasSubstr("is type 12345"));
}

TEST_F(OnnxReader, Sizes) {
  auto *tensor = addInitializer("w", {3});
  tensor->set_raw_data(rawValues());
  EXPECT_FALSE(read());
  EXPECT_THAT(messages, HasSubstr("initializer 'w' holds 8 bytes, wanted 12"));
  tensor->set_dims(0, -3);
  EXPECT_FALSE(read());
  EXPECT_THAT(messages, HasSubstr("impossible shape"));
  tensor->set_dims(0, INT64_MAX);
  EXPECT_FALSE(read());
  EXPECT_THAT(messages, HasSubstr("impossible shape"));
  graph->clear_initializer();
  addInitializer("i", {2}, onnx::TensorProto::INT64)->add_int64_data(1);
  EXPECT_FALSE(read());
  EXPECT_THAT(messages, HasSubstr("does not hold the 2 elements"));
  graph->clear_initializer();
  auto *packed = addInitializer("p", {3}, onnx::TensorProto::INT4);
  packed->set_raw_data("1");
  EXPECT_FALSE(read());
  EXPECT_THAT(messages, HasSubstr("holds 1 bytes, wanted 2"));
  packed->clear_raw_data();
  packed->add_int32_data(0x21);
  EXPECT_FALSE(read());
  EXPECT_THAT(messages, HasSubstr("does not hold the 3 elements"));
}

TEST_F(OnnxReader, AttributesHoldWhatTheySay) {
  auto *attribute = addNode("Softmax", {"y"}, "z")->add_attribute();
  attribute->set_name("axis");
  attribute->set_f(1);
  EXPECT_FALSE(read());
  EXPECT_THAT(messages, HasSubstr("node 'Softmax_0' (Softmax): attribute "
                                  "'axis' is of no known type, wanted FLOAT"));
  attribute->set_type(onnx::AttributeProto::INT);
  EXPECT_FALSE(read());
  EXPECT_THAT(messages,
              HasSubstr("attribute 'axis' says that it is INT, but holds "
                        "FLOAT"));
  attribute->set_i(1); // both
  EXPECT_FALSE(read());
  attribute->clear_f();
  EXPECT_TRUE(read()) << messages;
  attribute->clear_i(); // as writers of protobuf 3 leave out a 0
  EXPECT_TRUE(read()) << messages;
  attribute->add_floats(1);
  EXPECT_FALSE(read());
  EXPECT_THAT(messages, HasSubstr("says that it is INT, but holds FLOATS"));
  attribute->clear_floats();
  attribute->set_type(onnx::AttributeProto::TENSOR);
  EXPECT_FALSE(read());
  EXPECT_THAT(messages, HasSubstr("says that it is TENSOR, but holds nothing"));
}

TEST_F(OnnxReader, ConstantsHoldWhatTheySay) {
  auto *attribute = addNode("Constant", {}, "c")->add_attribute();
  attribute->set_name("value_float");
  attribute->set_type(onnx::AttributeProto::INT);
  attribute->set_i(2);
  EXPECT_FALSE(read());
  EXPECT_THAT(messages, HasSubstr("node 'Constant_0' (Constant): attribute "
                                  "'value_float' is INT, wanted FLOAT"));
  attribute->set_type(onnx::AttributeProto::FLOAT);
  EXPECT_FALSE(read());
  EXPECT_THAT(messages, HasSubstr("says that it is FLOAT, but holds INT"));
  attribute->clear_i();
  attribute->set_f(2);
  EXPECT_TRUE(read()) << messages;
  attribute->set_name("value");
  EXPECT_FALSE(read());
  EXPECT_THAT(messages, HasSubstr("'value' is FLOAT, wanted TENSOR"));
}

TEST_F(OnnxReader, DeclaredTypes) {
  using onnx::TensorProto;
  graph->mutable_output(0)->mutable_type()->mutable_sequence_type();
  addNode("Relu", {"y"}, "z");
  addNode("Relu", {"z"}, "s");
  auto *value = graph->add_value_info();
  value->set_name("z");
  auto *tensor = value->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(TensorProto::FLOAT16);
  tensor->mutable_shape()->add_dim()->set_dim_param("n");
  tensor->mutable_shape()->add_dim()->set_dim_value(3);
  graph->add_value_info()->set_name("y"); // says nothing
  value = graph->add_value_info();
  value->set_name("s");
  value->mutable_type()->mutable_tensor_type()->set_elem_type(
      TensorProto::STRING);
  auto module = read();
  ASSERT_TRUE(module) << messages;
  std::string text;
  llvm::raw_string_ostream(text) << *module;
  EXPECT_THAT(text, HasSubstr("{onnx.declared = \"no tensor\""));
  EXPECT_THAT(text, HasSubstr("declared [tensor<?x3xf16>]"));
  EXPECT_THAT(text, HasSubstr("declared [\"a tensor of STRING\"]"));
}

// Files of old list their initializers among the inputs.
TEST_F(OnnxReader, InitializersAmongInputs) {
  addInitializer("w", {2})->set_raw_data(rawValues());
  addInput("w", {2});
  EXPECT_TRUE(read()) << messages;
  auto *type = graph->mutable_input(1)->mutable_type()->mutable_tensor_type();
  type->mutable_shape()->mutable_dim(0)->set_dim_value(3);
  EXPECT_FALSE(read());
  EXPECT_THAT(messages,
              HasSubstr("input 'w' is 'tensor<3xf32>', but the initializer of "
                        "that name is 'tensor<2xf32>'"));
  type->clear_shape();
  EXPECT_TRUE(read()) << messages;
  type->set_elem_type(onnx::TensorProto::INT64);
  EXPECT_FALSE(read());
}

TEST_F(OnnxReader, UnsortedNodes) {
  graph->mutable_node(0)->set_input(0, "later");
  addNode("Neg", {"x"}, "later");
  auto module = read();
  ASSERT_TRUE(module) << messages;
  std::vector<std::string> types;
  module->walk([&](autohet::onnx::NodeOp node) {
    types.push_back(node.getOpType().str());
  });
  EXPECT_THAT(types, testing::ElementsAre("Neg", "Relu"));
  graph->mutable_node(1)->set_input(0, "y");
  EXPECT_FALSE(read());
  EXPECT_THAT(messages, HasSubstr("which depends on it"));
}

TEST_F(OnnxReader, InputWithoutShape) {
  graph->mutable_input(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  EXPECT_FALSE(read());
  EXPECT_THAT(messages, HasSubstr("input 'x' is not a tensor of known rank"));
}

TEST_F(OnnxReader, Subgraphs) {
  auto *attribute = addNode("If", {"y"}, "z")->add_attribute();
  attribute->set_name("then_branch");
  attribute->set_type(onnx::AttributeProto::GRAPH);
  attribute->mutable_g()->set_name("then");
  // Read; the pass that gives nodes their meaning lists it as unsupported.
  EXPECT_TRUE(read()) << messages;
}

//===----------------------------------------------------------------------===//
// External data
//===----------------------------------------------------------------------===//

TEST_F(OnnxReader, ExternalMissing) {
  addExternal("gone.bin", nullptr, nullptr);
  EXPECT_FALSE(read());
  EXPECT_THAT(messages, HasSubstr("initializer 'w': external data"));
  EXPECT_THAT(messages, HasSubstr("gone.bin' is missing"));
}

TEST_F(OnnxReader, ExternalShort) {
  write("w.bin", rawValues());
  addExternal("w.bin", "4", "8");
  EXPECT_FALSE(read());
  EXPECT_THAT(messages, HasSubstr("has 8 bytes, wanted 8 from offset 4 on"));
}

TEST_F(OnnxReader, ExternalLength) {
  write("w.bin", rawValues());
  addExternal("w.bin", "0", "4");
  EXPECT_FALSE(read());
  EXPECT_THAT(messages,
              HasSubstr("external data has 4 bytes, wanted 8 for its shape"));
}

TEST_F(OnnxReader, ExternalNumbers) {
  addExternal("w.bin", "-4", "8");
  EXPECT_FALSE(read());
  EXPECT_THAT(messages,
              HasSubstr("external data has offset '-4', wanted a number"));
}

TEST_F(OnnxReader, ExternalOutside) {
  for (const char *location : {"../w.bin", "/etc/passwd", "a/../../w.bin"}) {
    graph->clear_initializer();
    addExternal(location, nullptr, nullptr);
    EXPECT_FALSE(read());
    EXPECT_THAT(messages, HasSubstr("is outside the model's folder"))
        << location;
  }
}

TEST_F(OnnxReader, ExternalOutsideByLink) {
  ASSERT_FALSE(llvm::sys::fs::create_link("/etc/passwd", path("w.bin")));
  addExternal("w.bin", nullptr, nullptr);
  EXPECT_FALSE(read());
  EXPECT_THAT(messages, HasSubstr("is outside the model's folder"));
}

TEST_F(OnnxReader, ExternalNowhere) {
  addExternal(nullptr, "0", "8");
  EXPECT_FALSE(read());
  EXPECT_THAT(messages, HasSubstr("external data names no file"));
}

} // namespace
