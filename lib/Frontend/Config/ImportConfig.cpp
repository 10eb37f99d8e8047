//===- ImportConfig.cpp - from config.json to the model -------------------===//

#include "Family.h"
#include "autohet/Support/Extents.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace autohet;
using namespace autohet::config;

/// In each of the two tables of a rotary model: 256 MiB.
static constexpr int64_t kMostAngles = 1 << 26;

bool autohet::isConfigFile(StringRef path) {
  return llvm::sys::path::extension(path) == ".json";
}

//===----------------------------------------------------------------------===//
// What families have in common
//===----------------------------------------------------------------------===//

Activation config::readActivation(ConfigKeys &keys, StringRef key,
                                  StringRef fallback) {
  std::string name = keys.word({key}, fallback);
  auto known = llvm::StringSwitch<std::optional<Activation>>(name)
                   .Case("gelu", Activation::GeluErf)
                   .Cases({"gelu_new", "gelu_pytorch_tanh", "gelu_fast"},
                          Activation::GeluTanh)
                   .Cases({"silu", "swish"}, Activation::Silu)
                   .Case("relu", Activation::Relu)
                   .Default(std::nullopt);
  if (!known)
    keys.refuse(key, "is '" + name +
                         "'; supported are gelu, gelu_new, gelu_pytorch_tanh, "
                         "gelu_fast, silu, swish and relu");
  return known.value_or(Activation::GeluErf);
}

int64_t config::readHeadDim(ConfigKeys &keys, int64_t hidden, int64_t heads,
                            bool isFree, std::optional<int64_t> fallback) {
  bool divides = hidden % heads == 0;
  if (isFree && (fallback || keys.has("head_dim"))) {
    int64_t dim = keys.count({"head_dim"}, fallback);
    if (dim % 2)
      keys.refuse("head_dim", "must be even, for halves of a head rotate");
    return dim;
  }
  int64_t dim = keys.count({"head_dim"}, std::max<int64_t>(1, hidden / heads));
  StringRef headsKey = "num_attention_heads";
  for (StringRef spelling : {"n_head", "n_heads"})
    if (keys.has(spelling))
      headsKey = spelling;
  if (!divides || dim * heads != hidden)
    keys.refuse(keys.has("head_dim") ? "head_dim" : headsKey,
                "does not fit: " + llvm::Twine(heads) +
                    " heads of equal size must make the hidden size of " +
                    llvm::Twine(hidden) +
                    (keys.has("head_dim")
                         ? ", found heads of " + std::to_string(dim)
                         : std::string()));
  return dim;
}

void config::readArchitecture(ConfigKeys &keys, ArrayRef<StringRef> supported) {
  const Tree *list = keys.get("architectures");
  if (!list)
    return;
  if (list->kind != Tree::Kind::Sequence)
    return keys.refuse("architectures",
                       "must be a list, found " + list->describe());
  for (const Tree &item : list->items)
    if (!llvm::is_contained(supported, StringRef(item.text)))
      keys.errorList().add(item.location,
                           "architecture '" + item.text +
                               "' is not supported; of this family it is " +
                               llvm::join(supported, ", "));
}

//===----------------------------------------------------------------------===//
// Families
//===----------------------------------------------------------------------===//

namespace {

struct FamilyEntry {
  StringLiteral model_type;
  std::unique_ptr<Family> (*create)();
};
constexpr FamilyEntry families[] = {
    {"gpt2", createGpt2},        {"bert", createBert},
    {"llama", createLlama},      {"mistral", createMistral},
    {"mixtral", createMixtral},  {"qwen2", createQwen2},
    {"qwen3", createQwen3},      {"gemma", createGemma},
    {"gpt_neox", createGptNeox}, {"phi", createPhi},
};

/// Nothing here changes what a training step computes in float32: names, ids
/// of special tokens, options of generation, numbers that only draw weights,
/// pieces in which the same is computed, and switches of other frameworks.
constexpr StringLiteral harmlessKeys[] = {
    "_attn_implementation",
    "_attn_implementation_autoset",
    "_name_or_path",
    "auto_map",
    "bad_words_ids",
    "begin_suppress_tokens",
    "bos_token_id",
    "chunk_size_feed_forward",
    "cls_token_id",
    "cross_attention_hidden_size",
    "decoder_start_token_id",
    "diversity_penalty",
    "do_sample",
    "dtype",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "eos_token_id",
    "exponential_decay_length_penalty",
    "finetuning_task",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "gradient_checkpointing",
    "id2label",
    "initializer_range",
    "label2id",
    "length_penalty",
    "mask_token_id",
    "max_length",
    "min_length",
    "move_model_to_device",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_labels",
    "num_return_sequences",
    "output_attentions",
    "output_hidden_states",
    "output_past",
    "output_scores",
    "pad_token_id",
    "prefix",
    "problem_type",
    "remove_invalid_values",
    "repetition_penalty",
    "return_dict",
    "return_dict_in_generate",
    "selective_checkpoint_enabled",
    "sep_token_id",
    "sequence_parallel_enabled",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "tf_legacy_loss",
    "tie_encoder_decoder",
    "tokenizer_class",
    "top_k",
    "top_p",
    "torch_dtype",
    "torchscript",
    "transformers_version",
    "typical_p",
    "use_bfloat16",
    "use_cache",
    "use_flash_attention",
    "use_return_dict",
};

/// Without `model_type`, what a file's keys say.
StringRef guessFamily(const Tree &tree) {
  auto hasAll = [&](ArrayRef<StringRef> keys) {
    return llvm::all_of(keys, [&](StringRef key) { return tree.find(key); });
  };
  if (hasAll({"n_embd", "n_layer", "n_head"}))
    return "gpt2";
  if (hasAll({"dim", "n_layers", "n_heads"}))
    return "meta";
  if (hasAll({"type_vocab_size", "num_hidden_layers"}))
    return "bert";
  return "";
}

std::unique_ptr<Family> findFamily(const Tree &tree, ErrorList &errors) {
  std::vector<StringRef> known;
  for (const FamilyEntry &entry : families)
    known.push_back(entry.model_type);
  const Tree *type = tree.find("model_type");
  if (type && type->kind == Tree::Kind::Null)
    type = nullptr;
  StringRef name = type ? StringRef(type->text) : guessFamily(tree);
  if (!type && name == "meta")
    return createMetaLlama();
  for (const FamilyEntry &entry : families)
    if (entry.model_type == name)
      return entry.create();
  if (!type)
    errors.add(tree.location,
               "has no 'model_type', and its keys do not tell the family; "
               "known families: " +
                   llvm::join(known, ", "));
  else
    errors.add(type->location,
               "unknown model_type '" + name +
                   "'; known families: " + llvm::join(known, ", "));
  return nullptr;
}

/// Each size of a config is bounded, but not their products.
LogicalResult refuseLarge(ModuleOp model, Location file) {
  WalkResult walked = model.walk([&](Operation *op) {
    for (Value result : op->getResults()) {
      auto type = dyn_cast<RankedTensorType>(result.getType());
      if (!type || countElements(type.getShape()))
        continue;
      InFlightDiagnostic error = emitError(file) << "the sizes make ";
      if (auto parameter = dyn_cast<het::ParameterOp>(op))
        error << "parameter '" << parameter.getName() << "' ";
      else if (auto name = dyn_cast<NameLoc>(op->getLoc()))
        error << "a value of '" << name.getName().getValue() << "' ";
      error << type << ", wanted at most 2^40 elements";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

/// One diagnostic for each line of an error, at its place.
void emit(StringRef path, llvm::Error problem, MLIRContext &context) {
  std::string message = llvm::toString(std::move(problem));
  for (StringRef line : llvm::split(message, '\n')) {
    unsigned row = 0, column = 0;
    StringRef rest = line;
    if (rest.consume_front(path) && rest.consume_front(":") &&
        !rest.consumeInteger(10, row) && rest.consume_front(":"))
      rest.consumeInteger(10, column);
    size_t text = line.find(": error: ");
    emitError(FileLineColLoc::get(&context, path, row, column),
              text == StringRef::npos
                  ? line
                  : line.substr(text + strlen(": error: ")));
  }
}

} // namespace

OwningOpRef<ModuleOp> autohet::importConfigFile(StringRef path,
                                                const ConfigOptions &options,
                                                MLIRContext &context) {
  context.loadDialect<het::HetDialect, func::FuncDialect>();
  auto fail = [&](llvm::Error problem) {
    emit(path, std::move(problem), context);
    return nullptr;
  };
  llvm::Expected<std::string> text = readTextFile(path);
  if (!text)
    return fail(text.takeError());
  llvm::Expected<Tree> tree = parseJson(*text, path);
  if (!tree)
    return fail(tree.takeError());
  ErrorList errors(path);
  if (tree->kind != Tree::Kind::Mapping) {
    errors.add(tree->location,
               "a model's config must map keys to values, found " +
                   tree->describe());
    return fail(errors.take());
  }
  std::unique_ptr<Family> family = findFamily(*tree, errors);
  ConfigKeys keys(*tree, errors);
  keys.ignore(
      SmallVector<StringRef>(std::begin(harmlessKeys), std::end(harmlessKeys)));
  if (family) {
    keys.get("model_type"); // has chosen the family
    family->read(keys);
    keys.requireFlag("is_encoder_decoder", false);
    if (const Tree *pruned = keys.get("pruned_heads");
        pruned && !pruned->entries.empty())
      keys.refuse("pruned_heads",
                  "takes heads away, which is not supported: it must be empty");
    keys.finish();
  }
  if (llvm::Error problem = errors.take())
    return fail(std::move(problem));

  Location file = FileLineColLoc::get(&context, path, 0, 0);
  int64_t length = options.sequence_length ? options.sequence_length
                                           : family->longestSequence();
  if (length > family->longestSequence() && !family->mayBeLonger()) {
    emitError(file) << "sequences of " << length
                    << " are longer than the model's "
                    << family->longestSequence() << " positions";
    return nullptr;
  }
  // The tables are constants: a config of one line may not ask for any memory.
  int64_t pairs = family->rotaryDims() / 2;
  int64_t longest = pairs ? std::min(kLongestSequence, kMostAngles / pairs)
                          : kLongestSequence;
  if (length > longest) {
    InFlightDiagnostic error = emitError(file)
                               << "sequences of " << length << " are too long";
    if (longest < kLongestSequence)
      error << " for heads that turn by " << pairs << " angles";
    error << ": choose shorter ones (--seq-len at most " << longest << ")";
    return nullptr;
  }
  if (length > family->longestSequence())
    emitWarning(file)
        << "sequences of " << length << " are longer than the model's "
        << family->longestSequence()
        << " positions; rotary ones go on, but weights that were trained for "
           "fewer may not do well";
  if (options.list_ignored)
    for (const std::string &key : keys.ignored())
      emitRemark(file) << "'" << key << "' changes nothing here";
  GraphBuilder graph(file, options, length);
  OwningOpRef<ModuleOp> model = graph.finish(family->build(graph));
  if (failed(refuseLarge(*model, file)))
    return nullptr;
  return model;
}
