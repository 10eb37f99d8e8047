//===- Case.h - one model with its inputs and expected outputs ---*- C++ -*-===//
//
// The layout of ONNX's backend tests: model.onnx and test_data_set_N with
// input_*.pb and output_*.pb.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_TOOLS_CONFORMANCE_CASE_H
#define AUTOHET_TOOLS_CONFORMANCE_CASE_H

#include <string>
#include <vector>

namespace autohet::conformance {

struct Settings {
  std::string compiler; ///< autohet-compile
  std::string work;     ///< a folder of our own
  std::vector<std::string> compileOptions;
  double rtol = 1e-3, atol = 1e-7;
  double timeout_s = 60;
  unsigned extent = 2; ///< of symbolic dims, where no inputs say it
  bool keep = false;   ///< what was built
};

enum class Outcome {
  Pass,
  Compiled, ///< there is nothing to compare with
  Refused,  ///< a message that says what is not supported
  Wrong,    ///< numbers, shapes or types differ
  Crash     ///< anything else
};

struct CaseResult {
  std::string folder, name;
  std::vector<std::string> ops; ///< op types of the graph's nodes
  Outcome outcome = Outcome::Crash;
  std::string detail;             ///< the reason; one line
  std::vector<std::string> bound; ///< inputs whose values were compiled in
  double seconds = 0;
};

/// `path` is a folder of that layout, or a model file, which is compiled only.
CaseResult runCase(const std::string &path, const Settings &settings);

} // namespace autohet::conformance

#endif
