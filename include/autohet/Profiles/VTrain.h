//===- VTrain.h - measured training steps of vTrain -------------*- C++ -*-===//
//
// vTrain (VIA-Research/vTrain, MIT) publishes iteration times of Megatron on 2
// to 512 A100 and tables of NCCL's all-reduce.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PROFILES_VTRAIN_H
#define AUTOHET_PROFILES_VTRAIN_H

#include "autohet/Profiles/GpuStep.h"

namespace autohet {

struct MeasuredStep {
  TransformerShape shape;
  GridPlan plan;
  double measured_s = 0;
};

/// Rows of ground_truth_single.csv or ground_truth_multi.csv, by their column
/// names. The error names file, line and column name.
llvm::Expected<std::vector<MeasuredStep>>
parseMeasuredSteps(llvm::StringRef text, llvm::StringRef file);

/// A table such as trace/a100/AR_GPU8_1M_1024M_LUT.
llvm::Expected<AllReduceTable> parseAllReduceTable(llvm::StringRef text,
                                                   llvm::StringRef file);

struct VTrainData {
  std::vector<MeasuredStep> single, multi; ///< one node, several
  std::map<int64_t, AllReduceTable> all_reduce;
};
llvm::Expected<VTrainData> loadVTrainData(llvm::StringRef folder);

} // namespace autohet

#endif
