//===- FormatCluster.cpp - writes cluster.yaml ------------------------------===//
//
// What the reader reads back as the same cluster, in the units that people use.
//
//===----------------------------------------------------------------------===//

#include "autohet/Cluster/Cluster.h"
#include "autohet/Support/Quantity.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

namespace autohet {

/// Units from large to small.
static llvm::ArrayRef<llvm::StringRef> unitsOf(Dimension dimension) {
  static const llvm::StringRef none[] = {""}, money[] = {"USD/h"},
                               bytes[] = {"GiB", "MiB", "KiB", "B"},
                               rates[] = {"TB/s", "GB/s", "MB/s", "B/s"},
                               flops[] = {"TFLOP/s", "GFLOP/s", "MFLOP/s",
                                          "FLOP/s"},
                               times[] = {"s", "ms", "us", "ns"};
  switch (dimension) {
  case Dimension::None:
    return none;
  case Dimension::Bytes:
    return bytes;
  case Dimension::BytesPerSecond:
    return rates;
  case Dimension::FlopsPerSecond:
    return flops;
  case Dimension::Seconds:
    return times;
  case Dimension::DollarsPerHour:
    return money;
  }
  llvm_unreachable("unknown dimension");
}

/// As few digits as read back as the same number, in the largest unit that
/// needs no more of them.
static std::string exact(double value, Dimension dimension) {
  std::string text;
  llvm::ArrayRef<llvm::StringRef> units = unitsOf(dimension);
  for (int digits : {3, 6, 9, 17})
    for (llvm::StringRef unit : units) {
      llvm::Expected<double> scale =
          parseQuantity(("1 " + unit).str(), dimension);
      double scaled = value / llvm::cantFail(std::move(scale));
      if (scaled < 1 && unit != units.back())
        continue;
      text.clear();
      llvm::raw_string_ostream(text) << llvm::format("%.*g", digits, scaled);
      bool isPlain = !llvm::StringRef(text).contains('e');
      if (!unit.empty())
        text += " " + unit.str();
      llvm::Expected<double> back = parseQuantity(text, dimension);
      // The unit's product may round in the last bit.
      if (std::abs(llvm::cantFail(std::move(back)) - value) <= 1e-15 * value &&
          (isPlain || unit == units.back()))
        return text;
    }
  return text;
}

/// In quotes where YAML would read something else.
static std::string named(llvm::StringRef name) {
  bool isPlain = !name.empty() && llvm::isAlpha(name.front()) &&
                 llvm::all_of(name, [](char c) {
                   return llvm::isAlnum(c) || c == '-' || c == '_' || c == '.';
                 });
  if (isPlain && name != "null" && name != "true" && name != "false")
    return name.str();
  std::string text = "\"";
  for (char c : name)
    text += (c == '"' || c == '\\' ? "\\" : "") + std::string(1, c);
  return text + "\"";
}

static std::string linkText(const Link &link) {
  return "bandwidth: " +
         exact(link.bandwidth_bytes_per_s, Dimension::BytesPerSecond) +
         ", latency: " + exact(link.latency_s, Dimension::Seconds);
}

static void writeKind(const DeviceKind &kind, llvm::raw_ostream &os) {
  os << "  " << named(kind.name) << ":\n";
  auto rate = [&](llvm::StringRef key, double value, Dimension dimension) {
    if (value > 0)
      os << "    " << key << ": " << exact(value, dimension) << "\n";
  };
  rate("memory", kind.memory_bytes, Dimension::Bytes);
  rate("flops", kind.flops_per_s, Dimension::FlopsPerSecond);
  rate("flops_bf16", kind.flops_bf16_per_s, Dimension::FlopsPerSecond);
  rate("flops_fp16", kind.flops_fp16_per_s, Dimension::FlopsPerSecond);
  rate("attention_flops", kind.attention_flops_per_s,
       Dimension::FlopsPerSecond);
  rate("elementwise_flops", kind.elementwise_flops_per_s,
       Dimension::FlopsPerSecond);
  rate("memory_bandwidth", kind.memory_bandwidth_bytes_per_s,
       Dimension::BytesPerSecond);
  rate("host_bandwidth", kind.host_bandwidth_bytes_per_s,
       Dimension::BytesPerSecond);
  os << "    overhead: " << exact(kind.overhead_s, Dimension::Seconds) << "\n";
  rate("relative_speed", kind.relative_speed, Dimension::None);
  os << "    threads: " << kind.threads << "\n";
  rate("price", kind.usd_per_hour, Dimension::DollarsPerHour);
  if (kind.target == Target())
    return;
  os << "    target: {";
  if (!kind.target.triple.empty())
    os << "triple: " << kind.target.triple
       << (kind.target.features.empty() ? "" : ", ");
  if (!kind.target.features.empty())
    os << "features: [" << llvm::join(kind.target.features, ", ") << "]";
  os << "}\n";
}

std::string formatCluster(const Cluster &cluster) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "format: 1\nkinds:\n";
  for (const DeviceKind &kind : cluster.kinds)
    writeKind(kind, os);
  os << "nodes:\n";
  for (const Node &node : cluster.nodes) {
    os << "  - name: " << named(node.name) << "\n";
    if (!node.address.empty())
      os << "    address: " << named(node.address) << "\n";
    if (node.nic_bytes_per_s > 0)
      os << "    nic: "
         << exact(node.nic_bytes_per_s, Dimension::BytesPerSecond) << "\n";
    if (node.inside)
      os << "    link: {" << linkText(*node.inside) << "}\n";
    os << "    devices: [";
    llvm::ArrayRef<Device> devices =
        cluster.devices().slice(node.first_device, node.device_count);
    for (size_t begin = 0, end; begin < devices.size(); begin = end) {
      for (end = begin + 1;
           end < devices.size() && devices[end].kind == devices[begin].kind;)
        ++end;
      os << (begin ? ", " : "")
         << "{kind: " << named(cluster.kinds[devices[begin].kind].name)
         << ", count: " << end - begin << "}";
    }
    os << "]\n";
  }
  os << "links:\n  intra_node: {" << linkText(cluster.intra_node)
     << "}\n  inter_node: {" << linkText(cluster.inter_node) << "}\n";
  if (!cluster.overrides.empty())
    os << "  overrides:\n";
  for (const LinkOverride &one : cluster.overrides)
    os << "    - {from: " << named(one.from) << ", to: " << named(one.to)
       << ", " << linkText(one.link) << "}\n";
  return text;
}

} // namespace autohet
