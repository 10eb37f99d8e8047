//===- ModelFile.cpp - from a model's file to het ---------------------------===//

#include "autohet/Passes/Model/ModelFile.h"
#include "autohet/Dialect/Onnx/Onnx.h"
#include "autohet/Frontend/Config.h"
#include "autohet/Frontend/ONNX.h"
#include "autohet/Passes/Model/Pipeline.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace autohet;

bool ModelFile::isConfig() const { return isConfigFile(path); }

/// Options of ONNX files do nothing for a config, and the other way round: a
/// user who gives one expects something of it.
static LogicalResult checkOptions(const ModelFile &file, MLIRContext &context) {
  Location unknown = UnknownLoc::get(&context);
  bool isConfig = file.isConfig();
  for (auto [isGiven, option] :
       {std::pair(!file.dims.empty(), "--dim"),
        std::pair(!file.batch_dim.empty(), "--batch-dim"),
        std::pair(!file.ties.empty(), "--tie"),
        std::pair(!file.shared.empty(), "--shared"),
        std::pair(!file.constants.empty(), "--constant")})
    if (isConfig && isGiven)
      return emitError(unknown)
             << option << " is for ONNX files; " << file.path << " is a config";
  for (auto [isGiven, option] :
       {std::pair(file.sequence_length != 0, "--seq-len"),
        std::pair(file.padding_mask, "--padding-mask"),
        std::pair(!file.dropout, "--no-dropout")})
    if (!isConfig && isGiven)
      return emitError(unknown)
             << option << " is for configs; " << file.path
             << " has its inputs and ops already"
             << (file.sequence_length ? " (bind symbolic dims with --dim)"
                                      : "");
  return success();
}

FailureOr<int64_t> autohet::batchOf(const ModelFile &file,
                                    MLIRContext &context) {
  if (file.isConfig() || !file.batch_dim.empty())
    return 0;
  OwningOpRef<ModuleOp> imported = importOnnxFile(file.path, context);
  if (!imported)
    return failure();
  for (auto graph : imported->getOps<func::FuncOp>()) {
    BlockArgument samples = findBatchInput(graph);
    if (!samples)
      continue;
    auto dims = graph.getArgAttrOfType<ArrayAttr>(samples.getArgNumber(),
                                                  onnx::kDimsAttr);
    auto symbol = dims ? dyn_cast<StringAttr>(dims[0]) : StringAttr();
    if (!symbol)
      return cast<RankedTensorType>(samples.getType()).getDimSize(0);
    for (StringRef binding : file.dims) {
      auto [name, extent] = binding.split('=');
      int64_t bound = 0;
      if (name == symbol.getValue() && !extent.getAsInteger(10, bound))
        return bound;
    }
    return 0;
  }
  return 0;
}

FailureOr<OwningOpRef<ModuleOp>> autohet::readModel(const ModelFile &file,
                                                    int64_t batch,
                                                    bool differentiate,
                                                    MLIRContext &context) {
  if (failed(checkOptions(file, context)))
    return failure();
  ModelPipelineOptions pipeline;
  pipeline.freeze = file.freeze;
  pipeline.loss = file.loss;
  pipeline.output = file.loss_output;
  pipeline.ignoreIndex = file.ignore_index;
  pipeline.differentiate = differentiate;
  pipeline.inference = file.inference;
  PassManager passes(&context);
  OwningOpRef<ModuleOp> model;
  if (file.isConfig()) {
    ConfigOptions config;
    config.batch = batch ? batch : 1;
    config.sequence_length = file.sequence_length;
    config.padding_mask = file.padding_mask;
    config.dropout = file.dropout;
    config.loss_terms = !file.inference;
    config.shapes_only = file.shapes_only;
    config.list_ignored = file.verbose;
    model = importConfigFile(file.path, config, context);
    buildTrainingPipeline(passes, pipeline);
  } else {
    pipeline.batch = batch;
    pipeline.batchDim = file.batch_dim;
    pipeline.dims = llvm::to_vector(file.dims);
    pipeline.ties = llvm::to_vector(file.ties);
    pipeline.shared = llvm::to_vector(file.shared);
    pipeline.constants = file.constants;
    model = importOnnxFile(file.path, context);
    if (model && file.prepare_graph)
      for (auto graph : model->getOps<func::FuncOp>())
        if (failed(file.prepare_graph(graph)))
          return failure();
    buildModelPipeline(passes, pipeline);
  }
  if (!model || failed(passes.run(*model)))
    return failure();
  return model;
}
