//===- ConfigReaderTest.cpp - models from config.json -----------------------===//
//
// Parameter counts are those of the published models. What a config may leave
// out, what it must not say, and where a message points.
//
//===----------------------------------------------------------------------===//

#include "autohet/Dialect/Het/Het.h"
#include "autohet/Frontend/Config.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <fstream>

using namespace mlir;
using namespace autohet;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

class ConfigReader : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("config", folder));
    context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
      if (auto place = dyn_cast<FileLineColLoc>(diagnostic.getLocation()))
        messages += std::to_string(place.getLine()) + ":" +
                    std::to_string(place.getColumn()) + ": ";
      messages += diagnostic.str() + "\n";
      return success();
    });
    options.sequence_length = 16;
  }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  OwningOpRef<ModuleOp> read(llvm::StringRef text) {
    std::string path = (folder + "/config.json").str();
    std::ofstream(path) << text.str();
    messages.clear();
    return importConfigFile(path, options, context);
  }
  OwningOpRef<ModuleOp> good(llvm::StringRef text) {
    OwningOpRef<ModuleOp> model = read(text);
    EXPECT_THAT(messages, IsEmpty());
    EXPECT_TRUE(model && succeeded(verify(*model)));
    return model;
  }
  std::string refuse(llvm::StringRef text) {
    EXPECT_FALSE(read(text));
    return messages;
  }

  std::string print(llvm::StringRef text) {
    OwningOpRef<ModuleOp> model = good(text);
    std::string printed;
    llvm::raw_string_ostream stream(printed);
    if (model)
      model->print(stream);
    return printed;
  }
  int64_t countParameters(llvm::StringRef text) {
    OwningOpRef<ModuleOp> model = good(text);
    int64_t count = 0;
    if (model)
      for (auto source : model->getOps<het::WeightSourceOp>())
        count += source.getStoredType().getNumElements();
    return count;
  }

  MLIRContext context;
  ConfigOptions options;
  llvm::SmallString<128> folder;
  std::string messages;
};

const char *const gpt2 = R"({
  "model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12,
  "vocab_size": 50257, "n_positions": 1024
})";
const char *const llama = R"({
  "model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64,
  "num_attention_heads": 8, "num_key_value_heads": 2,
  "intermediate_size": 96, "vocab_size": 128
})";

std::string edited(llvm::StringRef text, llvm::StringRef from,
                   llvm::StringRef to) {
  auto [before, after] = text.split(from);
  EXPECT_NE(before, text) << "no " << from.str();
  return (before + to + after).str();
}

} // namespace

// As the file spells it, which is what a user can look for.
TEST_F(ConfigReader, KeysAreNamedAsTheFileHasThem) {
  EXPECT_THAT(refuse(edited(gpt2, "\"n_head\": 12", "\"n_head\": 7")),
              HasSubstr("'n_head' does not fit"));
  EXPECT_THAT(
      refuse(edited(gpt2, "\"n_head\": 12", "\"num_attention_heads\": 7")),
      HasSubstr("'num_attention_heads' does not fit"));
  EXPECT_THAT(refuse(edited(gpt2, "\"n_head\": 12,", "")),
              HasSubstr("needs 'n_head' or 'num_attention_heads'"));
}

TEST_F(ConfigReader, CountsOfPublishedModels) {
  EXPECT_EQ(countParameters(gpt2), 124439808);
  // BERT-Large: 335,141,888 with its pooler in place of the head.
  int64_t pooler = 1024 * 1024 + 1024,
          head = 1024 * 1024 + 1024 + 2 * 1024 + 30522;
  EXPECT_EQ(countParameters(R"({
    "model_type": "bert", "num_hidden_layers": 24, "hidden_size": 1024,
    "num_attention_heads": 16, "intermediate_size": 4096,
    "vocab_size": 30522})"),
            335141888 - pooler + head);
  EXPECT_EQ(countParameters(R"({
    "model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096,
    "num_attention_heads": 32, "intermediate_size": 11008,
    "vocab_size": 32000})"),
            6738415616);
  // The same model by its first release's keys.
  EXPECT_EQ(countParameters(R"({"dim": 4096, "multiple_of": 256,
    "n_heads": 32, "n_layers": 32, "norm_eps": 1e-06, "vocab_size": 32000})"),
            6738415616);
  EXPECT_EQ(countParameters(R"({
    "model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096,
    "num_attention_heads": 32, "num_key_value_heads": 8,
    "intermediate_size": 14336, "vocab_size": 128256})"),
            8030261248);
  EXPECT_EQ(countParameters(R"({
    "model_type": "mistral", "num_hidden_layers": 32, "hidden_size": 4096,
    "num_attention_heads": 32, "num_key_value_heads": 8,
    "intermediate_size": 14336, "vocab_size": 32000})"),
            7241732096);
  EXPECT_EQ(countParameters(R"({
    "model_type": "qwen2", "num_hidden_layers": 28, "hidden_size": 3584,
    "num_attention_heads": 28, "num_key_value_heads": 4,
    "intermediate_size": 18944, "vocab_size": 152064})"),
            7615616512);
  EXPECT_EQ(countParameters(R"({
    "model_type": "gemma", "num_hidden_layers": 18, "hidden_size": 2048,
    "num_attention_heads": 8, "num_key_value_heads": 1, "head_dim": 256,
    "intermediate_size": 16384, "vocab_size": 256000})"),
            2506172416);
  EXPECT_EQ(countParameters(R"({
    "model_type": "gpt_neox", "num_hidden_layers": 32, "hidden_size": 4096,
    "num_attention_heads": 32, "intermediate_size": 16384,
    "vocab_size": 50432})"),
            6857302016);
  EXPECT_EQ(countParameters(R"({
    "model_type": "phi", "num_hidden_layers": 32, "hidden_size": 2560,
    "num_attention_heads": 32, "intermediate_size": 10240,
    "vocab_size": 51200})"),
            2779683840);
  EXPECT_EQ(countParameters(R"({
    "model_type": "mixtral", "num_hidden_layers": 32, "hidden_size": 4096,
    "num_attention_heads": 32, "intermediate_size": 14336,
    "num_local_experts": 8, "vocab_size": 32000})"),
            46702792704);
}

TEST_F(ConfigReader, Experts) {
  std::string mixtral = edited(llama, "llama", "mixtral");
  std::string printed = print(mixtral);
  for (const char *name :
       {"model.layers.0.block_sparse_moe.gate.weight",
        "model.layers.0.block_sparse_moe.experts.0.w1.weight",
        "model.layers.1.block_sparse_moe.experts.7.w2.weight",
        "model.layers.1.block_sparse_moe.experts.7.w3.weight"})
    EXPECT_THAT(printed, HasSubstr(name));
  auto with = [&](const std::string &keys) {
    return edited(mixtral, "\"vocab_size\"", keys + ", \"vocab_size\"");
  };
  EXPECT_EQ(print(with("\"num_local_experts\": 8, \"moe_frequency\": 1")),
            printed);
  EXPECT_THAT(refuse(with("\"num_experts_per_tok\": 9")),
              HasSubstr("'num_experts_per_tok' must be at most the 8 experts, "
                        "found 9"));
  EXPECT_THAT(refuse(with("\"router_jitter_noise\": 0.1")),
              HasSubstr("'router_jitter_noise' draws noise"));
  EXPECT_THAT(refuse(with("\"moe_frequency\": 2")),
              HasSubstr("'moe_frequency' must be 1"));
  // The balance of experts has a part in the loss unless its factor is 0.
  EXPECT_THAT(printed, Not(HasSubstr("aux_loss")));
  EXPECT_THAT(print(with("\"output_router_logits\": true")),
              HasSubstr("{het.loss_factor = 1.000000e-03 : f64, het.name = "
                        "\"aux_loss\"}"));
  EXPECT_THAT(print(with("\"output_router_logits\": true, "
                         "\"router_aux_loss_coef\": 0.02")),
              HasSubstr("het.loss_factor = 2.000000e-02"));
  EXPECT_EQ(print(with("\"router_aux_loss_coef\": 0.02")), printed);
  EXPECT_EQ(print(with("\"output_router_logits\": true, "
                       "\"router_aux_loss_coef\": 0")),
            printed);
}

TEST_F(ConfigReader, NullIsAbsentIsDefault) {
  std::string plain = print(gpt2);
  EXPECT_EQ(
      print(edited(gpt2, "\"n_layer\"", "\"n_inner\": null, \"n_layer\"")),
      plain);
  EXPECT_EQ(
      print(edited(gpt2, "\"n_layer\"", "\"n_inner\": 3072, \"n_layer\"")),
      plain);
  plain = print(edited(llama, "\"num_key_value_heads\": 2,", ""));
  for (const char *same :
       {"\"num_key_value_heads\": null,", "\"num_key_value_heads\": 8,",
        "\"rope_scaling\": null,", "\"rope_theta\": 10000.0,",
        "\"head_dim\": 8,", "\"tie_word_embeddings\": false,",
        "\"rope_parameters\": {\"rope_theta\": 10000.0, \"rope_type\": "
        "\"default\"},"})
    EXPECT_EQ(print(edited(llama, "\"num_key_value_heads\": 2,", same)), plain)
        << same;
  EXPECT_NE(print(edited(llama, "\"vocab_size\"",
                         "\"rope_scaling\": {\"type\": \"linear\", \"factor\": "
                         "4}, \"vocab_size\"")),
            print(llama));
}

TEST_F(ConfigReader, TiedHeadsAreOneParameter) {
  EXPECT_EQ(
      countParameters(edited(llama, "\"vocab_size\"",
                             "\"tie_word_embeddings\": true, \"vocab_size\"")) +
          128 * 64,
      countParameters(llama));
}

TEST_F(ConfigReader, Dropout) {
  EXPECT_THAT(print(gpt2), HasSubstr("het.dropout"));
  options.dropout = false;
  EXPECT_THAT(print(gpt2), testing::Not(HasSubstr("dropout")));
}

TEST_F(ConfigReader, Refuses) {
  EXPECT_THAT(refuse("{"), HasSubstr("not JSON"));
  EXPECT_THAT(refuse("[1]"), HasSubstr("must map keys to values"));
  EXPECT_THAT(refuse("{}"), HasSubstr("has no 'model_type'"));
  EXPECT_THAT(refuse(R"({"model_type": "t5"})"),
              HasSubstr("1:16: unknown model_type 't5'; known families: gpt2"));
  EXPECT_THAT(refuse(edited(gpt2, "768", "770")),
              HasSubstr("12 heads of equal size must make the hidden size of "
                        "770"));
  EXPECT_THAT(refuse(edited(gpt2, "\"n_head\": 12", "\"n_head\": \"12\"")),
              HasSubstr("2:65: 'n_head' must be a whole number"));
  EXPECT_THAT(refuse(edited(gpt2, "\"n_layer\": 12,", "")),
              HasSubstr("needs 'n_layer'"));
  EXPECT_THAT(refuse(edited(llama, "\"num_key_value_heads\": 2",
                            "\"num_key_value_heads\": 5")),
              HasSubstr("must divide the 8 attention heads, found 5"));
  EXPECT_THAT(refuse(edited(llama, "\"num_key_value_heads\": 2",
                            "\"num_key_value_heads\": 0")),
              HasSubstr("must be at least 1, found 0"));
  EXPECT_THAT(refuse(edited(llama, "\"vocab_size\"",
                            "\"head_dim\": 7, \"vocab_size\"")),
              HasSubstr("'head_dim' must be even"));
  EXPECT_THAT(
      refuse(edited(llama, "\"vocab_size\"", "\"mystery\": 1, \"vocab_size\"")),
      HasSubstr("4:28: 'mystery' is not known"));
  EXPECT_THAT(refuse(edited(llama, "\"vocab_size\"",
                            "\"hidden_act\": \"mish\", \"vocab_size\"")),
              HasSubstr("'hidden_act' is 'mish'; supported are gelu"));
  EXPECT_THAT(refuse(edited(llama, "\"vocab_size\"",
                            "\"architectures\": [\"LlamaForTokenStuff\"], "
                            "\"vocab_size\"")),
              HasSubstr("architecture 'LlamaForTokenStuff' is not supported"));
  EXPECT_THAT(refuse(edited(llama, "\"vocab_size\"",
                            "\"rope_scaling\": {\"type\": \"stretched\"}, "
                            "\"vocab_size\"")),
              HasSubstr("'type' of rope_scaling is 'stretched'"));
  EXPECT_THAT(refuse(edited(llama, "\"vocab_size\"",
                            "\"rope_scaling\": {\"type\": \"longrope\", "
                            "\"short_factor\": [1], \"long_factor\": [2], "
                            "\"original_max_position_embeddings\": 64}, "
                            "\"vocab_size\"")),
              HasSubstr("'rope_scaling' lists 1 factors, wanted one for each "
                        "of 4 pairs"));
  // What is a count only once it is multiplied.
  EXPECT_THAT(refuse(edited(llama, "\"vocab_size\"",
                            "\"rope_scaling\": {\"partial_rotary_factor\": "
                            "1e308}, \"vocab_size\"")),
              HasSubstr("'partial_rotary_factor' must be the part of a head "
                        "that rotates, a number from 0 to 1"));
  EXPECT_THAT(refuse(R"({"dim": 64, "n_layers": 2, "n_heads": 4,
                         "vocab_size": 32, "ffn_dim_multiplier": 1e300})"),
              HasSubstr("'ffn_dim_multiplier' makes MLPs whose width is not "
                        "from 1 to 16777216"));
  options.sequence_length = 2048;
  EXPECT_THAT(refuse(gpt2), HasSubstr("longer than the model's 1024"));
}

TEST_F(ConfigReader, RefusesDefaultsThatFollowFromTooMuch) {
  EXPECT_THAT(refuse(R"({"model_type": "gpt2", "n_layer": 2, "n_head": 4,
                         "n_embd": 4194308, "vocab_size": 8})"),
              HasSubstr("'n_inner' is 16777232 by default, wanted at most"));
}

// Found by fuzzing: a hidden size of 1,000,000 took 4 GB for its angles.
TEST_F(ConfigReader, RefusesTablesThatNoMemoryHolds) {
  options.sequence_length = 0;
  auto withHeads = [](const char *dim, const char *positions) {
    return edited(llama, "\"vocab_size\"",
                  std::string("\"head_dim\": ") + dim +
                      ", \"max_position_embeddings\": " + positions +
                      ", \"vocab_size\"");
  };
  EXPECT_THAT(refuse(withHeads("16", "16777216")),
              HasSubstr("sequences of 16777216 are too long: choose shorter "
                        "ones (--seq-len at most 1048576)"));
  EXPECT_THAT(refuse(withHeads("256", "1048576")),
              HasSubstr("sequences of 1048576 are too long for heads that turn "
                        "by 128 angles: choose shorter ones (--seq-len at most "
                        "524288)"));
  // Whose costs alone are asked for has no tables.
  options.shapes_only = true;
  EXPECT_TRUE(read(withHeads("128", "1048576"))) << messages;
  options.shapes_only = false;
  options.sequence_length = 16;
  EXPECT_TRUE(read(withHeads("16", "16777216"))) << messages;
}

TEST_F(ConfigReader, RefusesTensorsThatNoDeviceHolds) {
  EXPECT_THAT(refuse(edited(gpt2, "768", "4194300")),
              HasSubstr("the sizes make parameter "
                        "'transformer.h.0.attn.c_attn.weight' "
                        "'tensor<4194300x4194300xf32>', wanted at most 2^40 "
                        "elements"));
  options.sequence_length = 1048576;
  EXPECT_THAT(refuse(edited(llama, "128", "16777216")),
              HasSubstr("the sizes make a value of 'lm_head' "
                        "'tensor<1x1048576x16777216xf32>', wanted at most"));
}

TEST_F(ConfigReader, RefusesWhatIsNoDecoder) {
  auto with = [&](const std::string &keys) {
    return edited(llama, "\"vocab_size\"", keys + ", \"vocab_size\"");
  };
  EXPECT_EQ(print(with("\"is_encoder_decoder\": false, \"pruned_heads\": {}, "
                       "\"top_k\": 50, \"chunk_size_feed_forward\": 8")),
            print(llama));
  EXPECT_THAT(
      refuse(with("\"is_encoder_decoder\": true")),
      HasSubstr("'is_encoder_decoder' is true, which is not supported"));
  EXPECT_THAT(refuse(with("\"pruned_heads\": {\"0\": [1]}")),
              HasSubstr("'pruned_heads' takes heads away"));
}

TEST_F(ConfigReader, ListsWhatChangesNothing) {
  options.list_ignored = true;
  EXPECT_TRUE(read(
      edited(llama, "\"vocab_size\"", "\"use_cache\": true, \"vocab_size\"")));
  EXPECT_THAT(messages, HasSubstr("'use_cache' changes nothing here"));
  EXPECT_THAT(messages, testing::Not(HasSubstr("'model_type'")));
}
