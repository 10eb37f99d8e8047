//===- AttentionTest.cpp - attention and its adjoint ----------------------===//

#include "KernelHarness.h"

#include "autohet/runtime/random.h"

using namespace autohet::test;

namespace {

enum MaskKind { NoMask, FloatMask, BoolMask };

struct AttentionCase {
  const char *name;
  int64_t batch, heads, kvHeads, queries, keys, depth, valueDepth;
  MaskKind mask;
  bool causal, zeroEmpty;
  double dropout;
};

/// A case's inputs, the kernels' text and the results in double precision.
struct Problem {
  explicit Problem(const AttentionCase &c)
      : c(c), query(random(c.batch * c.heads * c.queries * c.depth, 1)),
        key(random(c.batch * c.kvHeads * c.keys * c.depth, 2)),
        value(random(c.batch * c.kvHeads * c.keys * c.valueDepth, 3)),
        gradient(random(c.batch * c.heads * c.queries * c.valueDepth, 4)),
        floatMask(random(c.batch * c.queries * c.keys, 5)),
        boolMask(c.batch * c.keys) {
    for (size_t i = 0; i < boolMask.size(); ++i)
      boolMask[i] = i % 3 != 1;
    if (c.zeroEmpty) // the first sample sees nothing
      for (int64_t t = 0; t < c.keys; ++t)
        boolMask[t] = 0;
    context.seed = 99;
    context.step = 3;
    context.first_sample = 12;
    reference();
  }

  int64_t kvHead(int64_t head) const { return head * c.kvHeads / c.heads; }

  double factor(int64_t b, int64_t h, int64_t s, int64_t t) const {
    if (c.dropout == 0)
      return 1;
    uint64_t element =
        ((uint64_t(12 + b) * c.heads + h) * c.queries + s) * c.keys + t;
    return ah_dropout_keeps(99, 3, 5, element, float(c.dropout))
               ? 1 / (1 - c.dropout)
               : 0;
  }

  void reference() {
    int64_t B = c.batch, H = c.heads, S = c.queries, T = c.keys;
    int64_t D = c.depth, E = c.valueDepth;
    result.assign(B * H * S * E, 0);
    lse.assign(B * H * S, 0);
    dq.assign(query.size(), 0);
    dk.assign(key.size(), 0);
    dv.assign(value.size(), 0);
    std::vector<double> p(T), dp(T);
    for (int64_t b = 0; b < B; ++b)
      for (int64_t h = 0; h < H; ++h)
        for (int64_t s = 0; s < S; ++s) {
          int64_t row = (b * H + h) * S + s;
          int64_t base = (b * c.kvHeads + kvHead(h)) * T;
          double largest = -INFINITY, sum = 0;
          for (int64_t t = 0; t < T; ++t) {
            double score = 0;
            for (int64_t d = 0; d < D; ++d)
              score += double(query[row * D + d]) * key[(base + t) * D + d];
            score *= 0.25;
            if (c.mask == FloatMask)
              score += floatMask[(b * S + s) * T + t];
            if ((c.mask == BoolMask && !boolMask[b * T + t]) ||
                (c.causal && t > s + T - S))
              score = -INFINITY;
            p[t] = score;
            largest = std::max(largest, score);
          }
          bool empty = largest == -INFINITY;
          for (int64_t t = 0; t < T; ++t)
            sum += p[t] = empty ? 0 : std::exp(p[t] - largest);
          lse[row] = empty ? -INFINITY : largest + std::log(sum);
          double dot = 0;
          for (int64_t t = 0; t < T; ++t) {
            p[t] = empty ? 0 : p[t] / sum;
            dp[t] = 0;
            for (int64_t e = 0; e < E; ++e) {
              double v = value[(base + t) * E + e], g = gradient[row * E + e];
              result[row * E + e] += p[t] * factor(b, h, s, t) * v;
              dv[(base + t) * E + e] += p[t] * factor(b, h, s, t) * g;
              dp[t] += g * v;
            }
            dp[t] *= factor(b, h, s, t);
            dot += p[t] * dp[t];
          }
          for (int64_t t = 0; t < T; ++t)
            for (int64_t d = 0; d < D; ++d) {
              double ds = p[t] * (dp[t] - dot) * 0.25;
              dq[row * D + d] += ds * key[(base + t) * D + d];
              dk[(base + t) * D + d] += ds * query[row * D + d];
            }
        }
  }

  /// The text that both kernels share.
  std::string attributes() const {
    std::string text = "{scale = 0.25 : f64, kv_heads = array<i64: ";
    for (int64_t h = 0; h < c.heads; ++h)
      text += (h ? ", " : "") + std::to_string(kvHead(h));
    text += ">";
    if (c.causal)
      text += ", causal";
    if (c.zeroEmpty)
      text += ", zero_empty_rows";
    if (c.dropout > 0)
      text += ", dropout_p = " + std::to_string(c.dropout) +
              " : f64, dropout_op_id = 5 : i64";
    return text;
  }
  std::string maskType() const {
    if (c.mask == FloatMask)
      return tensorType({c.batch, 1, c.queries, c.keys});
    return tensorType({c.batch, 1, 1, c.keys}, "i1");
  }
  std::string text(bool backward) const {
    std::string q = tensorType({c.batch, c.heads, c.queries, c.depth});
    std::string k = tensorType({c.batch, c.kvHeads, c.keys, c.depth});
    std::string v = tensorType({c.batch, c.kvHeads, c.keys, c.valueDepth});
    std::string o = tensorType({c.batch, c.heads, c.queries, c.valueDepth});
    std::string l = tensorType({c.batch, c.heads, c.queries});
    std::vector<std::string> types = {q, k, v};
    if (backward)
      types.insert(types.end(), {o, l, o});
    size_t count = types.size() + (c.mask != NoMask);
    if (c.mask != NoMask)
      types.push_back(maskType());
    std::string arguments, names, list;
    for (size_t i = 0; i < count; ++i) {
      std::string comma = i ? ", " : "", name = "%a" + std::to_string(i);
      arguments += comma + name + ": " + types[i];
      names += comma + name;
      list += comma + types[i];
    }
    std::string results = backward ? q + ", " + k + ", " + v : o + ", " + l;
    std::string segments = backward ? "1, 1, 1, 1, 1, 1" : "1, 1, 1";
    return "func.func @k(" + arguments + ") -> (" + results + ") {\n %r:" +
           (backward ? "3 = het.attention_backward " : "2 = het.attention ") +
           names + " " + attributes() + "} : (" + list + ") -> (" + results +
           ")\n return " + (backward ? "%r#0, %r#1, %r#2" : "%r#0, %r#1") +
           " : " + results + "\n}";
  }
  void appendMask(std::vector<void *> &operands) {
    if (c.mask == FloatMask)
      operands.push_back(floatMask);
    if (c.mask == BoolMask)
      operands.push_back(boolMask);
  }

  AttentionCase c;
  Floats query, key, value, gradient, floatMask;
  Bools boolMask;
  ah_kernel_context context = {};
  std::vector<double> result, lse, dq, dk, dv;
};

class Attention : public testing::TestWithParam<AttentionCase> {};

TEST_P(Attention, Forward) {
  Problem problem(GetParam());
  Kernel kernel(problem.text(/*backward=*/false));
  Floats result(problem.result.size()), lse(problem.lse.size());
  std::vector<void *> operands = {problem.query, problem.key, problem.value};
  problem.appendMask(operands);
  operands.insert(operands.end(), {result, lse});
  ASSERT_EQ(kernel(operands, &problem.context), 0);
  expectNear(
      result, [&](size_t i) { return problem.result[i]; }, 3e-6, "result");
  expectNear(lse, [&](size_t i) { return problem.lse[i]; }, 1e-6, "lse");
}

TEST_P(Attention, Backward) {
  Problem problem(GetParam());
  Kernel kernel(problem.text(/*backward=*/true));
  Floats result(problem.result.size()), lse(problem.lse.size());
  for (size_t i = 0; i < result.size(); ++i)
    result[i] = float(problem.result[i]);
  for (size_t i = 0; i < lse.size(); ++i)
    lse[i] = float(problem.lse[i]);
  Floats dq(problem.dq.size()), dk(problem.dk.size()), dv(problem.dv.size());
  std::vector<void *> operands = {problem.query, problem.key, problem.value,
                                  result,        lse,         problem.gradient};
  problem.appendMask(operands);
  operands.insert(operands.end(), {dq, dk, dv});
  ASSERT_EQ(kernel(operands, &problem.context), 0);
  expectNear(dq, [&](size_t i) { return problem.dq[i]; }, 1e-5, "dq");
  expectNear(dk, [&](size_t i) { return problem.dk[i]; }, 1e-5, "dk");
  expectNear(dv, [&](size_t i) { return problem.dv[i]; }, 1e-5, "dv");
}

/// Self-attention without projections: query, key and value are one operand,
/// and what results hold before is nobody's.
TEST(AttentionOfOneValue, BackwardEqualsThatOfThree) {
  const std::string q = "tensor<1x2x40x8xf32>", l = "tensor<1x2x40xf32>";
  auto text = [&](bool isOne) {
    std::string names = isOne ? "%q, %q, %q" : "%q, %k, %v";
    std::string arguments =
        isOne ? "%q: " + q : "%q: " + q + ", %k: " + q + ", %v: " + q;
    return "func.func @k(" + arguments + ", %o: " + q + ", %l: " + l +
           ", %g: " + q + ") -> (" + q + ", " + q + ", " + q +
           ") {\n %d:3 = het.attention_backward " + names +
           ", %o, %l, %g {scale = 0.5 : f64, causal, kv_heads = array<i64: 0, "
           "1>} : (" +
           q + ", " + q + ", " + q + ", " + q + ", " + l + ", " + q + ") -> (" +
           q + ", " + q + ", " + q + ")\n return %d#0, %d#1, %d#2 : " + q +
           ", " + q + ", " + q + "\n}";
  };
  constexpr int64_t size = 2 * 40 * 8;
  Floats x = random(size, 1), o = random(size, 2), lse = random(80, 3),
         g = random(size, 4);
  // Not zeros, of which sums might begin by chance.
  Floats one[] = {random(size, 5), random(size, 6), random(size, 7)};
  Floats three[] = {random(size, 8), random(size, 9), random(size, 10)};
  Kernel ofOne(text(true)), ofThree(text(false));
  ASSERT_EQ(ofOne({x, o, lse, g, one[0], one[1], one[2]}), 0);
  ASSERT_EQ(ofThree({x, x, x, o, lse, g, three[0], three[1], three[2]}), 0);
  for (int result = 0; result < 3; ++result)
    for (int64_t i = 0; i < size; ++i)
      ASSERT_EQ(one[result][i], three[result][i]) << result << ", " << i;
}

INSTANTIATE_TEST_SUITE_P(
    Cases, Attention,
    testing::Values(
        AttentionCase{"plain", 2, 3, 3, 12, 12, 16, 16, NoMask, false, false,
                      0},
        AttentionCase{"causal", 1, 2, 2, 77, 77, 16, 16, NoMask, true, false,
                      0},
        AttentionCase{"causalCache", 1, 1, 1, 5, 40, 8, 8, NoMask, true, false,
                      0},
        AttentionCase{"shared", 2, 8, 2, 33, 33, 8, 12, NoMask, true, false, 0},
        AttentionCase{"additive", 2, 2, 1, 9, 21, 8, 8, FloatMask, false, false,
                      0},
        AttentionCase{"boolean", 2, 2, 2, 40, 17, 8, 8, BoolMask, false, true,
                      0},
        AttentionCase{"dropout", 2, 2, 2, 34, 34, 8, 8, NoMask, true, false,
                      0.25},
        AttentionCase{"one", 1, 1, 1, 1, 1, 4, 4, NoMask, true, false, 0}),
    [](const auto &info) { return info.param.name; });

} // namespace
