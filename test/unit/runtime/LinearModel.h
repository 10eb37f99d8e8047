//===- LinearModel.h - a model small enough to check by hand -----*- C++ -*-===//
//
// y = x w, loss = sum (y - t)^2 / count, over microbatches: dy = 2 (y - t) /
// count, dw += x^T dy. One feature in, one out.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_TEST_UNIT_RUNTIME_LINEARMODEL_H
#define AUTOHET_TEST_UNIT_RUNTIME_LINEARMODEL_H

#include "ProgramBuilder.h"

#include "core/Error.h"
#include "data/Safetensors.h"

#include <cstdlib>
#include <unistd.h>

namespace autohet::runtime::test {

/// A folder that goes away with the test.
class TemporaryFolder {
public:
  TemporaryFolder() {
    char pattern[] = "/tmp/autohet-unit-XXXXXX";
    if (!mkdtemp(pattern))
      abort();
    path = std::string(pattern) + "/";
  }
  ~TemporaryFolder() {
    std::string command = "rm -rf '" + path + "'";
    if (system(command.c_str()) != 0)
      perror("rm");
  }
  std::string operator/(const std::string &name) const { return path + name; }
  std::string path;
};

inline void writeFile(const std::string &path, const std::string &bytes) {
  FILE *file = fopen(path.c_str(), "wb");
  fwrite(bytes.data(), 1, bytes.size(), file);
  fclose(file);
}

inline void writeFloats(const std::string &path, const std::string &name,
                        std::vector<int64_t> shape,
                        const std::vector<float> &values) {
  writeSafetensors(path, {{name, AH_F32, shape,
                           [&] { return (const void *)values.data(); }}});
}

inline std::vector<float> readFloats(const std::string &path,
                                     const std::string &name) {
  SafetensorsFile file(path);
  const TensorInfo &info = file.get(name);
  std::vector<float> values(info.elements());
  memcpy(values.data(), file.data(info), info.bytes);
  return values;
}

class LinearModel : public ProgramBuilder {
public:
  explicit LinearModel(uint32_t microbatches, uint32_t size,
                       ah_optimizer optimizer = AH_SGD) {
    header.optimizer = optimizer;
    batch(microbatches, size);
    int64_t n = size;
    uint32_t w = parameter("w", {1, 1});
    uint32_t weight = parameters[w].parameter_buffer;
    uint32_t gradient = parameters[w].gradient_buffer;
    uint32_t x = buffer("x", AH_SPACE_ARENA, AH_F32, {n, 1}, 2);
    uint32_t t = buffer("t", AH_SPACE_ARENA, AH_F32, {n, 1}, 2);
    uint32_t y = buffer("y", AH_SPACE_ARENA, AH_F32, {n, 1}, 2);
    uint32_t dy = buffer("dy", AH_SPACE_ARENA, AH_F32, {n, 1});
    uint32_t loss = buffer("loss", AH_SPACE_ARENA, AH_F32, {});
    uint32_t size_ = buffer("size", AH_SPACE_CONSTANT, AH_F32, {n});
    uint32_t inX = port(inputs, "x", AH_F32, {n, 1});
    uint32_t inT = port(inputs, "t", AH_F32, {n, 1}, AH_BIND_LABELS, true);
    uint32_t outY = port(outputs, "y", AH_F32, {n, 1});
    rows() = n;
    gemms.push_back({1, n, 1, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 0, 1, {}});
    gemms.push_back({1, 1, 1, n, 1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, {}});
    uint32_t lossKernel =
        kernel([](void *const *operands, ah_kernel_context *) -> int64_t {
          auto *y = (float *)operands[0], *t = (float *)operands[1],
               *dy = (float *)operands[2];
          auto *loss = (float *)operands[3], *inverse = (float *)operands[4];
          *loss = 0;
          for (int64_t i = 0; i < rows(); ++i) {
            *loss += (y[i] - t[i]) * (y[i] - t[i]) * *inverse;
            dy[i] = 2 * (y[i] - t[i]) * *inverse;
          }
          return 0;
        });
    stream("compute");
    command(AH_HOOK, "begin", {}, {0});
    command(AH_LOOP, "microbatches", {}, {0, microbatches});
    command(AH_FEED, "feed x", {x}, {inX});
    command(AH_FEED, "feed t", {t}, {inT});
    command(AH_GEMM, "forward", {x, weight, y}, {0});
    command(AH_OUTPUT, "output", {y}, {outY});
    command(AH_LAUNCH, "squares",
            {y, t, dy, loss, scalar(AH_SCALAR_INVERSE_LABEL_COUNT)},
            {lossKernel});
    command(AH_LOSS, "loss", {loss});
    command(AH_GEMM, "backward", {x, dy, gradient}, {1});
    command(AH_END_LOOP, "end");
    command(AH_NORM, "norm w", {gradient}, {w});
    command(AH_AGREE, "agree");
    std::vector<uint32_t> updated = {weight, gradient};
    if (optimizer != AH_SGD)
      updated.insert(updated.end(), {parameters[w].state_buffers[0],
                                     parameters[w].state_buffers[1]});
    command(AH_UPDATE, "update w", updated, {w});
    command(AH_HOOK, "end", {}, {1});
    (void)size_;
  }

private:
  // Of one microbatch; kernels are plain functions.
  static int64_t &rows() {
    static int64_t rows;
    return rows;
  }
};

} // namespace autohet::runtime::test

#endif
