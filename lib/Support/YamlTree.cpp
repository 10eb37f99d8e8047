//===- YamlTree.cpp - fills a Tree from YAML ------------------------------===//
//
// LLVM's parser, without what makes YAML files surprising: one document, plain
// keys, no anchors, no aliases, no key twice.
//
//===----------------------------------------------------------------------===//

#include "autohet/Support/Tree.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/YAMLParser.h"

namespace yaml = llvm::yaml;

namespace autohet {
namespace {

class YamlReader {
public:
  YamlReader(llvm::StringRef text, llvm::StringRef file)
      : file(file), stream(llvm::MemoryBufferRef(text, file), sources,
                           /*ShowColors=*/false) {
    // The parser prints what it finds; the first message becomes our error.
    sources.setDiagHandler(
        [](const llvm::SMDiagnostic &diagnostic, void *context) {
          auto *self = static_cast<YamlReader *>(context);
          self->fail({static_cast<unsigned>(diagnostic.getLineNo()),
                      static_cast<unsigned>(diagnostic.getColumnNo() + 1)},
                     diagnostic.getMessage());
        },
        this);
  }

  llvm::Expected<Tree> read() {
    Tree tree;
    auto document = stream.begin();
    if (document != stream.end()) {
      convert(document->getRoot(), tree);
      if (firstError.empty() && ++document != stream.end())
        fail({}, "more than one document");
    }
    if (!firstError.empty())
      return llvm::createStringError(firstError);
    if (stream.failed())
      return makeError(file, {}, "not YAML");
    return tree;
  }

private:
  void fail(TextLocation location, const llvm::Twine &message) {
    if (firstError.empty())
      firstError = formatError(file, location, message);
  }

  TextLocation locate(const yaml::Node &node) {
    // What the parser puts where it found no node has no place in the text.
    llvm::SMLoc start = node.getSourceRange().Start;
    if (!start.isValid() || !sources.FindBufferContainingLoc(start))
      return {};
    auto [line, column] = sources.getLineAndColumn(start);
    return {line, column};
  }

  // Must visit every node even after an error: the parser cannot skip half a
  // collection. Only where nodes nest too deeply nothing is asked any more: the
  // parser reads on demand, and skipping what is left would recurse as well.
  void convert(yaml::Node *node, Tree &tree, unsigned depth = 0) {
    if (!node || isTooDeep)
      return;
    tree.location = locate(*node);
    if (depth > maxTreeDepth) {
      isTooDeep = true;
      return fail(tree.location, "nested too deeply");
    }
    if (!node->getAnchor().empty())
      fail(tree.location, "anchors are not supported");
    if (auto *scalar = llvm::dyn_cast<yaml::ScalarNode>(node)) {
      llvm::SmallString<64> storage;
      tree.text = scalar->getValue(storage).str();
      llvm::StringRef raw = scalar->getRawValue();
      tree.quoted = raw.starts_with("\"") || raw.starts_with("'");
      bool isNull = !tree.quoted && (tree.text.empty() || tree.text == "null" ||
                                     tree.text == "~");
      tree.kind = isNull ? Tree::Kind::Null : Tree::Kind::Scalar;
    } else if (auto *block = llvm::dyn_cast<yaml::BlockScalarNode>(node)) {
      tree.kind = Tree::Kind::Scalar;
      tree.text = block->getValue().str();
      tree.quoted = true;
    } else if (auto *sequence = llvm::dyn_cast<yaml::SequenceNode>(node)) {
      tree.kind = Tree::Kind::Sequence;
      for (yaml::Node &item : *sequence) {
        convert(&item, tree.items.emplace_back(), depth + 1);
        if (isTooDeep)
          return;
      }
    } else if (auto *mapping = llvm::dyn_cast<yaml::MappingNode>(node)) {
      tree.kind = Tree::Kind::Mapping;
      for (yaml::KeyValueNode &entry : *mapping) {
        convertEntry(entry, tree, depth + 1);
        if (isTooDeep)
          return;
      }
    } else if (llvm::isa<yaml::AliasNode>(node)) {
      fail(tree.location, "aliases are not supported");
    }
  }

  void convertEntry(yaml::KeyValueNode &node, Tree &mapping, unsigned depth) {
    Tree key, value;
    convert(node.getKey(), key, depth);
    if (isTooDeep)
      return;
    convert(node.getValue(), value, depth);
    if (isTooDeep)
      return;
    if (key.kind != Tree::Kind::Scalar)
      fail(key.location, "a key must be plain text, found " + key.describe());
    else if (mapping.find(key.text))
      fail(key.location, "key '" + key.text + "' is given twice");
    if (!value.location.line)
      value.location = key.location;
    mapping.entries.push_back({key.text, key.location, std::move(value)});
  }

  llvm::StringRef file;
  llvm::SourceMgr sources;
  yaml::Stream stream;
  std::string firstError;
  bool isTooDeep = false;
};

} // namespace

llvm::Expected<Tree> parseYaml(llvm::StringRef text, llvm::StringRef file) {
  // The parser takes other bytes for the end of what it reads.
  if (llvm::Error wrong = checkUtf8(text, file))
    return std::move(wrong);
  return YamlReader(text, file).read();
}

} // namespace autohet
