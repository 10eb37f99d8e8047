//===- JobFile.cpp - all options of a job in one file ---------------------===//
//
// A job file is the command line in another form, so it is turned into
// arguments and the tools read those: there is one place that knows what an
// option means.
//
//===----------------------------------------------------------------------===//

#include "autohet/Job/JobFile.h"
#include "autohet/Support/TreeReader.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

using namespace autohet;

static bool isFlag(const JobOption &option) { return option.value.empty(); }
static bool mayBeBare(const JobOption &option) {
  return isFlag(option) || option.value.front() == '[';
}

/// One scalar; `true` and `false` mean with and without where an option may
/// stand alone.
static void readScalar(const JobOption &option, const Tree &tree,
                       std::vector<JobArgument> &arguments, ErrorList &errors) {
  std::string name = "'" + option.name + "'";
  bool isBool = tree.kind == Tree::Kind::Scalar && !tree.quoted &&
                (tree.text == "true" || tree.text == "false");
  if (mayBeBare(option) && isBool) {
    if (tree.text == "true")
      arguments.push_back({option.name, "--" + option.name});
    return;
  }
  if (isFlag(option)) {
    errors.add(tree.location,
               name + " must be true or false, found " + tree.describe());
    return;
  }
  std::string value;
  if (readString(tree, name, value, errors))
    arguments.push_back({option.name, "--" + option.name + "=" + value});
}

static void readSection(const Tree &root, llvm::StringRef section,
                        llvm::ArrayRef<JobOption> options,
                        std::vector<JobArgument> &arguments,
                        ErrorList &errors) {
  MappingReader reader(root, ("the section '" + section + "'").str(), errors);
  for (const JobOption &option : options) {
    const Tree *value = reader.get(option.name);
    if (!value)
      continue;
    if (value->kind != Tree::Kind::Sequence) {
      readScalar(option, *value, arguments, errors);
      continue;
    }
    if (!option.repeats)
      errors.add(value->location,
                 "'" + option.name + "' is given once, found a list");
    for (const Tree &item : value->items)
      readScalar(option, item, arguments, errors);
  }
  reader.finish();
}

llvm::Expected<JobFile>
autohet::readJobFile(llvm::StringRef path,
                     llvm::ArrayRef<JobOption> runOptions) {
  llvm::Expected<std::string> text = readTextFile(path);
  if (!text)
    return text.takeError();
  llvm::Expected<Tree> tree = parseYaml(*text, path);
  if (!tree)
    return tree.takeError();
  JobFile job;
  ErrorList errors(path);
  MappingReader reader(*tree, "a job file", errors);
  reader.optional("model", job.model);
  reader.optional("output", job.output);
  if (const Tree *section = reader.get("compile"))
    readSection(*section, "compile", compileOptions(), job.compile, errors);
  if (const Tree *section = reader.get("run"))
    readSection(*section, "run", runOptions, job.run, errors);
  reader.finish();
  if (llvm::Error error = errors.take())
    return std::move(error);
  return job;
}

std::vector<std::string>
autohet::argumentsBeside(llvm::ArrayRef<JobArgument> section,
                         llvm::ArrayRef<std::string> commandLine) {
  auto isTyped = [&](llvm::StringRef name) {
    return llvm::any_of(commandLine, [&](llvm::StringRef argument) {
      return argument.consume_front("-") &&
             (argument.consume_front("-"), true) &&
             argument.split('=').first == name;
    });
  };
  std::vector<std::string> result;
  for (const JobArgument &argument : section)
    if (!isTyped(argument.name))
      result.push_back(argument.text);
  return result;
}
