//===- FuzzOnnx.cpp - any bytes as a model --------------------------------===//
//
// Any file either becomes a model in `het` or is refused by a diagnostic. The
// Model phase is part of it: most of what a file claims (shapes, axes, indices)
// is believed or refused there.
//
//===----------------------------------------------------------------------===//

#include "FuzzFile.h"
#include "MutateMessage.h"

#include "autohet/Frontend/ONNX.h"
#include "autohet/Passes/Model/Pipeline.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t largest);

/// Mostly changes of fields, sometimes of bytes.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,
                                          size_t largest, unsigned seed) {
  static const MessageKind models(ONNX_DESCRIPTORS, "onnx.ModelProto");
  static google::protobuf::LogHandler *quiet [[maybe_unused]] =
      google::protobuf::SetLogHandler(nullptr);
  std::mt19937 random(seed);
  std::unique_ptr<google::protobuf::Message> model = models.create();
  if (random() % 8 == 0 || !model->ParseFromArray(data, size))
    return LLVMFuzzerMutate(data, size, largest);
  for (unsigned changes = 1 + random() % 3; changes; --changes)
    mutateMessage(*model, random);
  size_t written = model->ByteSizeLong();
  if (written > largest || !model->SerializeToArray(data, largest))
    return size;
  return written;
}

/// Whether the bytes are a model; a batch of 0 is the file's own.
static bool build(const std::string &path, int64_t batch, bool differentiate) {
  // A context of its own: attributes live as long as it, and would pile up.
  MLIRContext context(MLIRContext::Threading::DISABLED);
  bool refused = false;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    refused |= diagnostic.getSeverity() == DiagnosticSeverity::Error;
    return success();
  });
  OwningOpRef<ModuleOp> model = autohet::importOnnxFile(path, context);
  bool built = false;
  if (model) {
    autohet::ModelPipelineOptions options;
    options.batch = batch;
    options.differentiate = differentiate;
    PassManager passes(&context);
    autohet::buildModelPipeline(passes, options);
    built = succeeded(passes.run(*model));
  }
  if (!built && !refused)
    abort(); // refused without a word
  return built;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  FuzzFile file(data, size);
  // A file whose batch is free needs one to be said; most files of one op have
  // nothing to train.
  if (build(file.path(), 0, false))
    build(file.path(), 0, true);
  else if (build(file.path(), 2, false))
    build(file.path(), 2, true);
  return 0;
}
